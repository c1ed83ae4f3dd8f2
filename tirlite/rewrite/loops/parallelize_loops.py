"""ParallelizeLoops distributes loops with provably independent iterations over workers."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.patterns import has_much_to_do
from tirlite.ir.checked import has_check
from tirlite.ir.dtype import i64
from tirlite.ir.expr import GE, Buffer, IntImm, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.stmt import Allocate, Assert, AttrStmt, For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store, While
from tirlite.ir.walk import accesses_in, composites, statements
from tirlite.rewrite.pipeline import FactsPass

# An iteration's allocations exist once per worker. This many bytes stay in a worker's own cache, as does a row of up to
# this many elements per step along it; arrays of that many elements are in registers.
_MOST_BYTES = 1 << 15
_MOST_ELEMENTS = 16
# Loops nested deeper are not considered.
_DEEPEST = 3
# Nests with at most this many iterations in all finish before a worker wakes up.
_FEWEST = 128


class ParallelizeLoops(FactsPass):
    """Makes serial loops parallel: the outermost ones whose iterations are proved independent.

    Such a loop contains loops or computes elementary functions; its iterations allocate no more than a row or a small
    table (with `sparing`, only scalars), assert nothing, call nothing and access nothing volatile. At run time, loops
    with little to do stay in the calling thread. `alone_from`: a loop that does less, but is all that the function
    does, is parallel from this many iterations on (0: never), in a branch that calls with fewer iterations never
    compile. For functions in normal form (see `Normalize`).
    """

    sparing: bool = False
    alone_from: int = 0

    def rewritten(self, facts: Facts) -> PrimFunc:
        made = _outermost(facts.func.body, facts, self.sparing)
        if not made:
            return _shared_alone(facts, self.alone_from) if self.alone_from else facts.func
        from tirlite.rewrite.normalize import exchanged

        return exchanged(facts.func, made)


def _outermost(body: SeqStmt, facts: Facts, sparing: bool) -> dict[For, tuple[Stmt, ...]]:
    """What replaces the loops to make parallel, none of which is inside of another."""
    found: dict[For, tuple[Stmt, ...]] = {}
    stack: list[tuple[Stmt, int]] = [(body, 0)]
    while stack:
        stmt, depth = stack.pop()
        if isinstance(stmt, SeqStmt):
            stack += ((each, depth) for each in composites(stmt) if type(each) is not While)
        elif not isinstance(stmt, For):
            stack += ((body, depth) for body in stmt.bodies)
        elif stmt.kind is ForKind.SERIAL and _is_independent(stmt, facts, sparing):
            found[stmt] = (stmt.replaced(kind=ForKind.PARALLEL),)
        elif For in stmt.body.kinds and (strips := _by_columns(stmt, facts)) is not None:
            found[stmt] = strips
        elif stmt.kind is ForKind.SERIAL and depth < _DEEPEST:
            stack.append((stmt.body, depth + 1))
    return found


def _by_columns(loop: For, facts: Facts) -> tuple[Stmt, ...] | None:
    """What replaces a loop over rows that depend on each other, if workers can share their columns."""
    from tirlite.rewrite.loops.shared_columns import shared_columns

    return shared_columns(loop, facts)


def _shared_alone(facts: Facts, least: int) -> PrimFunc:
    """The function with its only loop parallel from `least` iterations on, if it allocates nothing but scalars."""
    before: list[Stmt] = [*facts.func.body.stmts]
    loop = before.pop() if before else None
    while isinstance(loop, AttrStmt) and loop.body.stmts:
        *inside, loop = loop.body.stmts
        before += inside
    if not isinstance(loop, For) or loop.kind is not ForKind.SERIAL or loop.step != 1:
        return facts.func
    if not all(isinstance(stmt, Let | Assert) for stmt in before):
        return facts.func
    if not _is_independent(loop, facts, sparing=True, is_alone=True):
        return facts.func
    from tirlite.rewrite.normalize import exchanged

    parallel = loop.replaced(kind=ForKind.PARALLEL)
    if least == 1 or loop.values is not None:
        is_long = least == 1 or len(loop.values or ()) >= least
        return exchanged(facts.func, {loop: (parallel,)}) if is_long else facts.func
    is_longer = GE(loop.count, const(least, i64))
    choice = IfThenElse(is_longer, SeqStmt((parallel,)), SeqStmt((loop,)), span=loop.span)
    return exchanged(facts.func, {loop: (choice,)})


def _is_independent(loop: For, facts: Facts, sparing: bool, *, is_alone: bool = False) -> bool:
    inside = [*statements(loop.body)]
    is_worth_it = (is_alone or has_much_to_do(loop)) and any(isinstance(stmt, Store) for stmt in inside)
    loops = (loop, *(stmt for stmt in inside if isinstance(stmt, For)))
    counts = [len(each.values) for each in loops if each.values is not None]
    if len(counts) == len(loops) and prod(counts) <= _FEWEST:
        return False
    # A loop that may fault stays in order, so that the stores before the fault are those of the serial loop.
    may_move = is_worth_it and all(map(_may_run_beside, inside)) and not has_check(loop)
    own = [stmt.buffer for stmt in inside if isinstance(stmt, Allocate)]
    may_move = may_move and not any(access.buffer.volatile for access in accesses_in(loop))
    return may_move and _is_little(own, sparing) and facts.is_independent(loop)


def _may_run_beside(stmt: Stmt) -> bool:
    """Whether iterations with this statement may run in any order."""
    return isinstance(stmt, Allocate | Store | Let | While) or (
        isinstance(stmt, For | IfThenElse | AttrStmt) and getattr(stmt, "kind", None) is not ForKind.THREAD
    )


def _is_little(own: Iterable[Buffer], sparing: bool) -> bool:
    """Whether these allocations are small enough for each worker to have its own."""
    total = 0
    for buffer in own:
        known = [extent.value for extent in buffer.shape if isinstance(extent, IntImm)]
        unknown = len(buffer.shape) - len(known)
        if unknown == 0 and prod(known) <= _MOST_ELEMENTS:
            continue
        is_row = unknown == 1 and prod(known) <= _MOST_ELEMENTS
        total += 0 if is_row else prod(known) * buffer.dtype.bytes
        if sparing or unknown > 1 or buffer.scope != "global" or total > _MOST_BYTES:
            return False
    return True
