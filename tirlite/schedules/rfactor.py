"""Rfactor gives each iteration of a reduction a partial result of its own, and combines these afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.reductions import AnyUpdate, Update
from tirlite.analysis.loops.regrouping import updates_in
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Expr, Sub, Var, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.rewrite import rewrite
from tirlite.ir.stmt import For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store, While
from tirlite.ir.walk import defined_in, is_steady, mentions, statements
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.reductions import message_of
from tirlite.rewrite.vectors.lane_partials import Partials
from tirlite.schedules.handle import LoopName, chain_to, loop_named
from tirlite.schedules.loop_facts import is_in_bounds, trips
from tirlite.schedules.order import demand_any_order
from tirlite.schedules.step import ScheduleStep, demand_plain, does_not_fit, with_loop


@record
class Rfactor(ScheduleStep):
    """Gives each iteration of `loop` a partial result for what the nested `tl.reduce` loops from `at` inwards combine.

    The partial results are an allocation `y.partial` (two for `tl.argmax` and `tl.argmin`), initialized in a loop
    `p.begun` before `at` and combined in `p.combined` after it. `loop` becomes a `range` with independent iterations,
    for vectors or workers. Results are those of the reduction regrouped as the IR shows. Refused, naming the accesses,
    unless the loops combine values into the same elements throughout, which are proved in bounds.
    """

    loop: LoopName
    at: LoopName | None = None

    def rewritten(self, facts: Facts) -> PrimFunc:
        chain = chain_to(facts.func, self.loop)
        loop, at = chain[-1], loop_named(facts.func, self.at or self.loop)
        if at not in chain:
            raise does_not_fit(self, f"the loop over `{loop.var.name}` does not stand in `{at.var.name}`")
        around, nest = chain[: chain.index(at) + 1], chain[chain.index(at) :]
        for each in nest:
            if each.kind is not ForKind.REDUCE:
                raise does_not_fit(self, f"the loop over `{each.var.name}` is no `tl.reduce`")
        demand_any_order(self, at)
        demand_plain(self, loop)
        count = trips(facts, loop)
        if count is None or mentions(count, defined_in(at.body)) or mentions(count, at.var):
            raise does_not_fit(self, f"how often the loop over `{loop.var.name}` runs is decided inside")
        partials = [Partials(each, count) for each in self._updates(facts, at, around)]
        place = folded(Sub(loop.var, loop.start))
        made = {
            stmt: (() if number else (*each.taken(place),))
            for each in partials
            for number, stmt in enumerate(each.replaced)
        }

        def taken(stmt: Store | Let) -> Stmt | tuple[Stmt, ...]:
            return made.get(stmt, stmt)

        def independent(each: For) -> For:
            return each.replaced(kind=ForKind.SERIAL) if each.var is loop.var else each

        between = rewrite(SeqStmt((at,)), {Store: taken, Let: taken, For: independent})
        begun = _over(count, loop, ".begun", [each.begun for each in partials])
        combined = _over(count, loop, ".combined", [each.ended for each in partials])
        if all(isinstance(each.update, Update) for each in partials):
            combined = combined.replaced(kind=ForKind.REDUCE)
        declared = (stmt for each in partials for stmt in each.declared())
        return with_loop(facts, at, (*declared, begun, *between.stmts, combined))

    def _updates(self, facts: Facts, at: For, around: tuple[For, ...]) -> Iterator[AnyUpdate]:
        """The updates of the reduction. Raises KernelError unless each always updates the same element."""
        found = updates_in(at, facts)
        if not isinstance(found, tuple):
            raise message_of(found, at.var.name).error()
        inside = defined_in(at)
        if not found:
            raise does_not_fit(self, f"the loop over `{at.var.name}` combines nothing")
        branches = (stmt for stmt in statements(at) if isinstance(stmt, IfThenElse | While))
        uncertain = {stmt for branch in branches for stmt in statements(branch)}
        for update in found:
            for store in update.stores:
                if store.value.dtype.lanes > 1 or store.buffer.volatile:
                    raise does_not_fit(self, f"`{store.buffer.name}` is not combined value by value")
                if not is_steady(*store.indices) or mentions(store.indices, inside):
                    raise does_not_fit(self, f"which element of `{store.buffer.name}` is combined is decided inside")
                if store in uncertain:
                    raise does_not_fit(self, f"whether `{store.buffer.name}` is combined is decided by a branch")
                if not is_in_bounds(facts.func, around[:-1], store):
                    raise does_not_fit(self, f"the element of `{store.buffer.name}` is not proved to be in bounds")
            yield update


def _over(count: Expr, loop: For, suffix: str, stmts: list[Callable[[Var], Iterator[Stmt]]]) -> For:
    """A loop over the partial results."""
    var = Var(loop.var.name + suffix)
    body = SeqStmt(tuple(stmt for each in stmts for stmt in each(var)))
    return For(var, const(0, i64), count, body, span=loop.span)
