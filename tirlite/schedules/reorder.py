"""Reorder changes the order of loops that hold nothing but each other; Distribute makes two such nests of one."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.dependence import Dependence
from tirlite.ir import Allocate, For, ForKind, Let, PrimFunc, SeqStmt, Stmt, View, statements
from tirlite.ir.walk import is_steady, mentions
from tirlite.record import record
from tirlite.schedules.handle import LoopName, chain_to
from tirlite.schedules.order import breaks_order, carried, demand_any_order, moved_out
from tirlite.schedules.step import Step, demand_nothing_beside, demand_plain, does_not_fit, named, with_loop


@record
class Reorder(Step):
    """The loops in the order in which they are given, from the outside in.

    They stand one inside of the other, with nothing beside. Refused where an access would come before one that it must
    come after, but for what reductions combine: these may be regrouped. A parallel loop runs in order where its
    iterations depend on each other across a loop that comes inside of it.
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
            # What an outer loop carries stays in order where no other one comes before it.
            for each in carried(facts, loop) if moved else ():
                if _is_turned(each, loops):
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


def _is_turned(dependence: Dependence, order: list[For]) -> bool:
    """Whether the sink might come before the source once the loops have this order."""
    steps = dict(zip(dependence.loops, dependence.steps, strict=True))
    apart = [loop for loop in order if loop in steps and steps[loop].direction != "="]
    if dependence.is_reduction and all(loop.kind is ForKind.REDUCE for loop in apart):
        return False
    # Loops around the one that carries it are in one iteration.
    return bool(apart) and steps[apart[0]].direction != "<"


@record
class Distribute(Step):
    """What stands before `loop`, in the innermost of the loops around it up to `out_of`, in a nest of its own.

    With `behind` it is what stands up to the loop, and that too.

    The first nest has the loops `i.before`; those of the second one keep their names. Refused where what comes to run
    later must run before, and where what stands before the loop declares what it uses.
    """

    loop: LoopName
    out_of: LoopName
    behind: bool = False

    def rewritten(self, facts: Facts) -> PrimFunc:
        chain = chain_to(facts.func, self.loop)
        outermost = chain_to(facts.func, self.out_of)
        loop, nest = chain[-1], [*chain[len(outermost) - 1 : -1]]
        if not nest or chain[: len(outermost)] != outermost:
            raise does_not_fit(self, "the first loop does not stand inside of the other one")
        demand_nothing_beside(self, nest)
        stmts = nest[-1].body.stmts
        if loop not in stmts:
            raise does_not_fit(self, f"`{loop.var.name}` stands in a branch")
        cut = stmts.index(loop) + self.behind
        before, after = stmts[:cut], stmts[cut:]
        if not (before and after):
            return facts.func
        for each in nest:
            demand_plain(self, each)
        demand_any_order(self, nest[0])
        if any(isinstance(stmt, Allocate | Let | View) for stmt in before):
            raise does_not_fit(self, "what stands before the loop declares names")
        first = {each for stmt in before for each in statements(stmt)}
        then = {each for stmt in after for each in statements(stmt)}
        for found in (dependence for around in nest for dependence in carried(facts, around)):
            if found.source.stmt in then and found.sink.stmt in first:
                raise breaks_order(self, found)
        return with_loop(facts, nest[0], (*_nest(nest, before, ".before"), *_nest(nest, after, "")))


def _nest(loops: list[For], stmts: tuple[Stmt, ...], suffix: str) -> tuple[Stmt, ...]:
    """The statements inside of these loops, whose variables are new, by other names."""
    body = SeqStmt(stmts)
    for loop in reversed(loops):
        made = loop.replaced(body=body)
        body = SeqStmt((named(made, suffix) if suffix else made,))
    return body.stmts
