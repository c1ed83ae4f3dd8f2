"""Reorder changes the order of perfectly nested loops; Distribute splits a loop into two, by its statements."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.dependence import Dependence
from tirlite.ir import Allocate, For, ForKind, Let, PrimFunc, SeqStmt, Stmt, View, statements
from tirlite.ir.walk import is_steady, mentions
from tirlite.record import record
from tirlite.schedules.handle import LoopName, chain_to
from tirlite.schedules.order import breaks_order, carried, demand_any_order, moved_out
from tirlite.schedules.step import ScheduleStep, demand_nothing_beside, demand_plain, does_not_fit, named, with_loop


@record
class Reorder(ScheduleStep):
    """Reorders perfectly nested loops into the order given, from the outside in.

    Refused if that reverses a dependence, other than one between updates of a reduction, which may be regrouped. A
    parallel loop becomes serial if a dependence carried by a loop that moves inside of it connects its iterations.
    """

    loops: tuple[LoopName, ...]

    def rewritten(self, facts: Facts) -> PrimFunc:
        wanted = [chain_to(facts.func, each) for each in self.loops]
        deepest = max(wanted, key=len, default=())
        loops = [chain[-1] for chain in wanted]
        nest = [*deepest[len(deepest) - len(loops) :]]
        if len({*loops}) < len(loops):
            raise does_not_fit(self, "a loop is named twice")
        if len(loops) < 2 or {*nest} != {*loops}:
            raise does_not_fit(self, "the loops are not one inside of the other")
        demand_nothing_beside(self, nest)
        self._demand_bounds(loops)
        demand_any_order(self, nest[0])
        for place, loop in enumerate(nest):
            moved = [each for each in loops[: loops.index(loop)] if each in nest[place + 1 :]]
            # A dependence carried by `loop` stays in order if no inner loop moves outside of it.
            for each in carried(facts, loop) if moved else ():
                if _is_reversed(each, loops):
                    raise breaks_order(self, each)
        body = nest[-1].body
        for place, loop in reversed([*enumerate(loops)]):
            passed = [each for each in nest[: nest.index(loop)] if each in loops[place + 1 :]]
            body = SeqStmt((moved_out(facts, loop, passed).replaced(body=body),))
        return with_loop(facts, nest[0], body.stmts)

    def _demand_bounds(self, loops: list[For]) -> None:
        for place, loop in enumerate(loops):
            for bound in (loop.start, loop.stop):
                if not is_steady(bound):
                    raise does_not_fit(self, f"the bounds of the loop over `{loop.var.name}` are read from memory")
                if mentions(bound, {each.var for each in loops[place:]}):
                    raise does_not_fit(self, f"the bounds of the loop over `{loop.var.name}` depend on one inside")


def _is_reversed(dependence: Dependence, order: list[For]) -> bool:
    """Whether a dependence may be reversed once the loops are in this order."""
    steps = dict(zip(dependence.loops, dependence.steps, strict=True))
    apart = [loop for loop in order if loop in steps and steps[loop].direction != "="]
    if dependence.is_reduction and all(loop.kind is ForKind.REDUCE for loop in apart):
        return False
    # The outermost loop with different iterations decides.
    return bool(apart) and steps[apart[0]].direction != "<"


@record
class Distribute(ScheduleStep):
    """Moves the statements before `loop` into a nest of their own, out of the loops around it up to `out_of`.

    With `behind`, `loop` moves with them, and the statements after it stay. If `out_of` is `loop` itself, each
    statement of its body gets a loop of its own. The new nest has the loops `i.before`; the last nest keeps the names.
    Refused if that reverses a dependence, or if the moved statements declare names.
    """

    loop: LoopName
    out_of: LoopName
    behind: bool = False

    def rewritten(self, facts: Facts) -> PrimFunc:
        chain = chain_to(facts.func, self.loop)
        outermost = chain_to(facts.func, self.out_of)
        loop, nest = chain[-1], [*chain[len(outermost) - 1 : -1]] or [chain[-1]]
        if chain[: len(outermost)] != outermost:
            raise does_not_fit(self, "the first loop does not stand inside of the other one")
        demand_nothing_beside(self, nest)
        stmts = nest[-1].body.stmts
        parts: list[tuple[Stmt, ...]]
        if loop is nest[-1]:
            parts = [(stmt,) for stmt in stmts]
        elif loop in stmts:
            cut = stmts.index(loop) + self.behind
            parts = [each for each in (stmts[:cut], stmts[cut:]) if each]
        else:
            raise does_not_fit(self, f"`{loop.var.name}` stands in a branch")
        if len(parts) < 2:
            return facts.func
        self._demand_order(facts, nest, parts)
        return with_loop(facts, nest[0], [made for each in parts for made in _nest(nest, each, last=each is parts[-1])])

    def _demand_order(self, facts: Facts, nest: list[For], parts: Sequence[tuple[Stmt, ...]]) -> None:
        """Raises KernelError if separate nests would reverse a dependence, or leave a name undeclared."""
        for each in nest:
            demand_plain(self, each)
        demand_any_order(self, nest[0])
        if any(isinstance(stmt, Allocate | Let | View) for part in parts[:-1] for stmt in part):
            raise does_not_fit(self, "what stands before the loop declares names")
        place = {each: number for number, part in enumerate(parts) for stmt in part for each in statements(stmt)}
        for found in (each for around in nest for each in carried(facts, around, by_statement=True)):
            if place[found.source.stmt] > place[found.sink.stmt]:
                raise breaks_order(self, found)


def _nest(loops: list[For], stmts: tuple[Stmt, ...], *, last: bool) -> tuple[Stmt, ...]:
    """The statements inside of copies of these loops; except in the last nest, variables are renamed `.before`."""
    body = SeqStmt(stmts)
    for loop in reversed(loops):
        made = loop.replaced(body=body)
        body = SeqStmt((made if last else named(made, ".before"),))
    return body.stmts
