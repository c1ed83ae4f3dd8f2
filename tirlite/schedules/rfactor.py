"""Rfactor gives each iteration of a reduction a partial result of its own, and combines these behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tirlite.analysis.facts import Facts
from tirlite.analysis.reductions import Update, neutral
from tirlite.analysis.regrouping import updates_in
from tirlite.ir import (
    Allocate,
    Buffer,
    Expr,
    For,
    ForKind,
    IfThenElse,
    PrimFunc,
    SeqStmt,
    Store,
    Sub,
    Var,
    While,
    const,
    i64,
    rewrite,
    statements,
)
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.pipeline import FactsPass
from tirlite.rewrite.reductions import message_of
from tirlite.schedules.handle import LoopName, chain_to, handle_of
from tirlite.schedules.step import (
    defined_in,
    demand_any_order,
    demand_plain,
    does_not_fit,
    is_in_bounds,
    is_steady,
    mentions,
    trips,
    with_loop,
)


@record
class Rfactor(FactsPass):
    """What the `tl.reduce` loops from `at` on combine, by iterations of `loop`, one of them: partial results.

    They are an allocation, `y.partial`, begun in a loop `p.begun` before `at` and combined in `p.combined` behind it.
    In between `loop` is a `range` whose iterations are independent, for vectors or workers. The grouping stands in the
    IR; results are those of a reduction, which may be regrouped. Refused where the loops do not combine values into the
    same elements throughout, with the accesses, and where it is not proved that there are these elements.
    """

    loop: LoopName
    at: LoopName | None = None
    name: str = "rfactor"

    def __str__(self) -> str:
        at = "" if self.at is None else f", at={handle_of(self.at)}"
        return f"s.rfactor({handle_of(self.loop)}{at})"

    def rewritten(self, facts: Facts) -> PrimFunc:
        chain = chain_to(facts.func, self.loop)
        loop, at = chain[-1], chain_to(facts.func, self.at or self.loop)[-1]
        if at not in chain:
            raise does_not_fit(self, f"the loop over `{loop.var.name}` does not stand in `{at.var.name}`")
        around, nest = chain[: chain.index(at) + 1], chain[chain.index(at) :]
        for each in nest:
            if each.kind is not ForKind.REDUCE:
                raise does_not_fit(self, f"the loop over `{each.var.name}` is no `tl.reduce`")
        demand_any_order(self, at)
        demand_plain(self, loop)
        count = trips(facts, loop)
        if count is None or mentions(count, defined_in(at.body)) or mentions(count, (at.var,)):
            raise does_not_fit(self, f"how often the loop over `{loop.var.name}` runs is decided inside")
        partials = {each.store: _Partial(each, count, loop) for each in self._updates(facts, at, around)}

        def taken(store: Store) -> Store:
            return partials[store].taken() if store in partials else store

        def independent(each: For) -> For:
            return each.replaced(kind=ForKind.SERIAL) if each.var is loop.var else each

        between = rewrite(SeqStmt((at,)), {Store: taken, For: independent})
        begun = _over(count, loop, ".begun", ForKind.SERIAL, [each.begun for each in partials.values()])
        combined = _over(count, loop, ".combined", ForKind.REDUCE, [each.combined for each in partials.values()])
        allocated = (Allocate(each.buffer, span=loop.span) for each in partials.values())
        return with_loop(facts, at, (*allocated, begun, *between.stmts, combined))

    def _updates(self, facts: Facts, at: For, around: tuple[For, ...]) -> Iterator[Update]:
        """What the iterations combine. Raises KernelError where these are not updates of the same elements."""
        found = updates_in(at, facts)
        if not isinstance(found, tuple):
            raise message_of(found, at.var.name).error()
        inside = {at.var, *defined_in(at.body)}
        if not found:
            raise does_not_fit(self, f"the loop over `{at.var.name}` combines nothing")
        for update in found:
            store = update.store
            if not isinstance(update, Update) or store.value.dtype.lanes > 1 or store.buffer.volatile:
                raise does_not_fit(self, f"`{store.buffer.name}` is not combined by one operation, value by value")
            if any(not is_steady(index) or mentions(index, inside) for index in store.indices):
                raise does_not_fit(self, f"which element of `{store.buffer.name}` is combined is decided inside")
            branches = (stmt for stmt in statements(at) if isinstance(stmt, IfThenElse | While))
            if any(store in {*statements(stmt)} for stmt in branches):
                raise does_not_fit(self, f"whether `{store.buffer.name}` is combined is decided by a branch")
            if not is_in_bounds(facts.func, around[:-1], store):
                raise does_not_fit(self, f"the element of `{store.buffer.name}` is not proved to be in bounds")
            yield update


class _Partial:
    """What the iterations of a loop combine into one element, each for itself."""

    def __init__(self, update: Update, count: Expr, loop: For) -> None:
        self.update = update
        self.buffer = Buffer(f"{update.store.buffer.name}.partial", update.store.buffer.dtype, (count,))
        self.place = folded(Sub(loop.var, loop.start))

    def taken(self) -> Store:
        """The update, of the partial result of an iteration."""
        value = self.update.operation(self.buffer[self.place], self.update.operand)
        return Store(self.buffer, (self.place,), value, span=self.update.store.span)

    def begun(self, place: Var) -> Store:
        return Store(self.buffer, (place,), neutral(self.update.operation, self.buffer.dtype))

    def combined(self, place: Var) -> Store:
        return self.update.store.replaced(value=self.update.operation(self.update.element, self.buffer[place]))


def _over(count: Expr, loop: For, suffix: str, kind: ForKind, stores: list[Callable[[Var], Store]]) -> For:
    """A loop over partial results."""
    var = Var(loop.var.name + suffix)
    return For(var, const(0, i64), count, SeqStmt(tuple(each(var) for each in stores)), kind, span=loop.span)
