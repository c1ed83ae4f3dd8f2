"""Tells functions that have something to schedule, before anything is loaded that could."""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.ir import Allocate, For, PrimFunc, statements_of
from tirlite.ir.shapes import constant_bytes

# Of a function with more loops than that, each step would take long.
_MOST_LOOPS = 48
# So many bytes stay in the second cache.
_LITTLE = 256 * 1024


def has_chains(func: PrimFunc) -> bool:
    """Whether there are large temporaries, and two nests or more, but not very many."""
    if next(large_temporaries(func), None) is None:
        return False
    return 2 <= sum(1 for _ in statements_of(func.body, For)) <= _MOST_LOOPS


def large_temporaries(func: PrimFunc) -> Iterator[Allocate]:
    """The allocations of two axes or more that may have more bytes than a cache keeps, in no memory of its own."""
    for stmt in statements_of(func.body, Allocate):
        buffer = stmt.buffer
        size = constant_bytes(buffer)
        if len(buffer.shape) > 1 and buffer.scope == "global" and (size is None or size > _LITTLE):
            yield stmt


def has_rows(func: PrimFunc) -> bool:
    """Whether there is a loop with two others in its body, of not very many."""
    loops = [*statements_of(func.body, For)]
    return 3 <= len(loops) <= _MOST_LOOPS and any(is_row(each) for each in loops)


def is_row(loop: For) -> bool:
    """Whether two loops or more stand in the body of a loop."""
    return sum(isinstance(stmt, For) for stmt in loop.body.stmts) > 1
