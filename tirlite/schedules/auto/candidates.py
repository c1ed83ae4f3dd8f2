"""Recognizes functions that have something to schedule, before the modules that schedule it are imported."""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.ir import Allocate, For, ForKind, Let, Load, PrimFunc, Store, statements_of, walk
from tirlite.ir.shapes import constant_bytes
from tirlite.ir.walk import loads_in

# In functions with more loops, each step would take too long.
_MOST_LOOPS = 48
# At most this many nests and accesses in a time step: each pair of accesses is analysed for dependences.
_MOST_NESTS, _MOST_ACCESSES = 4, 64
_PLAIN = (ForKind.SERIAL, ForKind.PARALLEL)
# This many bytes stay in the L2 cache.
_LITTLE = 256 * 1024


def has_chains(func: PrimFunc) -> bool:
    """Whether there are large temporaries, and at least two loops but not very many."""
    if next(large_temporaries(func), None) is None:
        return False
    return 2 <= sum(1 for _ in statements_of(func.body, For)) <= _MOST_LOOPS


def large_temporaries(func: PrimFunc) -> Iterator[Allocate]:
    """The `global` allocations with two axes or more whose size exceeds what a cache keeps, or is unknown."""
    for stmt in statements_of(func.body, Allocate):
        buffer = stmt.buffer
        size = constant_bytes(buffer)
        if len(buffer.shape) > 1 and buffer.scope == "global" and (size is None or size > _LITTLE):
            yield stmt


def has_rows(func: PrimFunc) -> bool:
    """Whether a loop has two others in its body, among not very many loops."""
    loops = [*statements_of(func.body, For)]
    return 3 <= len(loops) <= _MOST_LOOPS and any(is_row(each) for each in loops)


def is_row(loop: For) -> bool:
    """Whether the body of a loop directly contains two loops or more."""
    return sum(isinstance(stmt, For) for stmt in loop.body.stmts) > 1


def is_down_columns(loop: For) -> bool:
    """Whether an iteration is only serial recurrences: one loop over local scalars, or several over arrays."""
    inside = [stmt for stmt in loop.body.stmts if isinstance(stmt, For)]
    if loop.kind not in _PLAIN or loop.step != 1 or not inside or any(e.kind is not ForKind.SERIAL for e in inside):
        return False
    if not all(isinstance(each, Store | Let) for steps in inside for each in steps.body.stmts):
        return False
    has_own = isinstance(loop.body.stmts[0], Allocate)
    carries = len(inside) == 1 if has_own else all(map(_reads_what_it_writes, inside))
    return carries and loop.body.kinds <= {Allocate, Store, For}


def _reads_what_it_writes(loop: For) -> bool:
    """Whether a loop loads from an array that it stores to, at another index."""
    from tirlite.ir.equal import are_equal  # most functions have no such loops

    stores = [stmt for stmt in loop.body.stmts if isinstance(stmt, Store)]
    loads = list(loads_in(loop.body))
    return any(
        load.buffer is store.buffer and not are_equal(load.indices, store.indices) for load in loads for store in stores
    )


def has_stencils(func: PrimFunc) -> bool:
    """Whether a loop iterates nests over the same arrays."""
    loops = [*statements_of(func.body, For)]
    return 3 <= len(loops) <= _MOST_LOOPS and any(is_iterated(each) for each in loops)


def is_iterated(loop: For) -> bool:
    """Whether a serial loop repeats the same nests over rows, which read what they have written."""
    nests = loop.body.stmts
    if loop.kind is not ForKind.SERIAL or loop.step != 1 or not 1 <= len(nests) <= _MOST_NESTS:
        return False
    if not all(isinstance(each, For) and _is_over_rows(each) for each in nests):
        return False
    nodes = [*walk(loop.body)]
    written = {node.buffer for node in nodes if isinstance(node, Store)}
    read = {node.buffer for node in nodes if isinstance(node, Load)}
    accesses = sum(isinstance(node, Load | Store) for node in nodes)
    if accesses > _MOST_ACCESSES or loop.var in nodes:
        return False
    return bool(written & read) and all(len(each.shape) > 1 for each in written)


def _is_over_rows(loop: For) -> bool:
    """Whether a loop contains only one loop, which contains only stores and lets."""
    inner = loop.body.stmts[0] if len(loop.body.stmts) == 1 else None
    plain = loop.kind in _PLAIN and loop.step == 1
    return plain and isinstance(inner, For) and inner.body.kinds <= {Store, Let}
