"""CacheRead and CacheWrite keep the part of a buffer that a loop reads, or updates, in a copy: a tile or a scalar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tirlite.analysis.facts import Facts
from tirlite.ir.equal import structural_equal
from tirlite.ir.expr import Buffer, Load, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.rewrite import Rule, rewrite
from tirlite.ir.stmt import Allocate, For, ForKind, SeqStmt, Store
from tirlite.ir.walk import defined_in, is_steady, loads_in, mentions, reads
from tirlite.record import record
from tirlite.rewrite.vectors.local_elements import in_scalars
from tirlite.schedules.handle import BufferName, LoopName, buffer_named, chain_to
from tirlite.schedules.loop_facts import is_in_bounds
from tirlite.schedules.order import demand_any_order, elements_touched, settled
from tirlite.schedules.step import ScheduleStep, does_not_fit, with_loop

if TYPE_CHECKING:
    from tirlite.schedules.index_ranges import CachedRegion


@record
class CacheRead(ScheduleStep):
    """Copies the part of a buffer that the body of `at` reads, at the begin of the body, with the buffer's axes.

    Along an axis, the part is a window of constant extent around the variable of a loop, if there is one; else the
    whole axis. The copy is an allocation `x.cached`, placed by the storage planner as any other; the loops that fill it
    are `x.axis0`, `x.axis1` and so on. To copy in the order in which loops read, use `pack`. Refused if the body writes
    the buffer, or reads it through views or by vectors.
    """

    buffer: BufferName
    at: LoopName

    def rewritten(self, facts: Facts) -> PrimFunc:
        from tirlite.schedules.index_ranges import cached_region

        around = chain_to(facts.func, self.at)
        at = around[-1]
        buffer = buffer_named(facts.func, self.buffer, at)
        demand_any_order(self, at)
        loads = elements_touched(self, facts, buffer, at, written=False)
        part = cached_region(facts, buffer, loads, around)
        body = rewrite(at.body, {Load: part.moved})
        made = (Allocate(part.cached, span=at.span), *part.loaded().stmts, *body.stmts)
        return with_loop(facts, at, (at.replaced(body=SeqStmt(made)),))


@record
class CacheWrite(ScheduleStep):
    """Keeps the part of a buffer that the body of `at` updates in a copy, loaded before and stored after.

    A single element becomes a local scalar, held in a register. A larger part becomes a tile `y.cached`: along each
    axis a window of constant extent around the variable of a loop, if there is one; else the whole axis. The loops that
    load it are `y.axis0` and so on, those that store it `y.axis0.stored`. A body that sets all first loads none.

    Refused if the body uses the buffer through views or by vectors, if a single element is not proved in bounds (loops
    over a tile are clipped to the buffer), and if parallel iterations would store each other's elements.
    """

    buffer: BufferName
    at: LoopName

    def rewritten(self, facts: Facts) -> PrimFunc:
        around = chain_to(facts.func, self.at)
        at = around[-1]
        buffer = buffer_named(facts.func, self.buffer, at)
        demand_any_order(self, at)
        accesses = elements_touched(self, facts, buffer, at, written=True)
        first = next(node for node in accesses if isinstance(node, Store))
        inside = defined_in(at.body)
        if any(not structural_equal(_element(node), _element(first)) for node in accesses) or any(
            not is_steady(index) or mentions(index, inside) for index in first.indices
        ):
            return settled(self, self._tiled(facts, buffer, accesses, around), around)
        if not is_in_bounds(facts.func, around, first):
            raise does_not_fit(self, f"the element of `{buffer.name}` is not proved to be in bounds")
        begun = (first,) if _is_set_first(at.body, buffer) else ()
        made = with_loop(facts, at, (at.replaced(body=in_scalars(at.body, {buffer: (first,)}, begun)),))
        return settled(self, made, [loop for loop in around if loop.kind is ForKind.REDUCE])

    def _tiled(
        self, facts: Facts, buffer: Buffer, accesses: Sequence[Load | Store], around: tuple[For, ...]
    ) -> PrimFunc:
        """The function with a tile of the buffer in the body of the innermost of the loops `around`."""
        from tirlite.schedules.index_ranges import cached_region

        at, part = around[-1], cached_region(facts, buffer, accesses, around)
        rules: dict[type[Node], Rule] = {Load: part.moved, Store: part.moved}
        body = rewrite(at.body, rules)
        loaded = () if _is_filled_first(facts, at.body, part) else part.loaded().stmts
        made = (Allocate(part.cached, span=at.span), *loaded, *body.stmts, *part.stored().stmts)
        return with_loop(facts, at, (at.replaced(body=SeqStmt(made)),))


def _element(node: Load | Store) -> Load:
    return Load(node.buffer, node.indices)


def _is_set_first(body: SeqStmt, buffer: Buffer) -> bool:
    first = body.stmts[0]
    if not isinstance(first, Store) or first.buffer is not buffer:
        return False
    return not reads(buffer, first.value)


def _is_filled_first(facts: Facts, body: SeqStmt, part: CachedRegion) -> bool:
    """Whether a body begins with a nest that sets every element of a tile before reading it."""
    nest: list[For] = []
    stmt = body.stmts[0]
    while isinstance(stmt, For) and stmt.step == 1 and stmt.body.stmts:
        nest.append(stmt)
        stmt = stmt.body.stmts[0]
    if not isinstance(stmt, Store) or stmt.buffer is not part.buffer:
        return False
    loops = {loop.var: loop for loop in nest}
    if any(loop.var not in stmt.indices for loop in nest):
        return False
    for axis, index in enumerate(stmt.indices):
        start, stop = part.ends(axis)
        loop = loops.pop(index, None) if isinstance(index, Var) else None
        first, behind = (index, None) if loop is None else (loop.start, loop.stop)
        if facts.space.size(first) != facts.space.size(start):
            return False
        if (facts.space.size(first) + 1 if behind is None else facts.space.size(behind)) != facts.space.size(stop):
            return False
    wanted = _element(stmt)
    found = [node for node in loads_in(nest[0] if nest else stmt) if node.buffer is part.buffer]
    return all(structural_equal(node, wanted) for node in found) and not reads(part.buffer, stmt.value)
