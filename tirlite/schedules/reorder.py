"""Reorder changes the order of loops that hold nothing but each other."""

from __future__ import annotations

from itertools import pairwise

from tirlite.analysis.dependence import Dependence
from tirlite.analysis.facts import Facts
from tirlite.ir import For, ForKind, PrimFunc, SeqStmt
from tirlite.record import record
from tirlite.schedules.handle import LoopName, chain_to
from tirlite.schedules.loop_facts import is_steady, mentions
from tirlite.schedules.order import breaks_order, carried, demand_any_order, moved_out
from tirlite.schedules.step import Step, does_not_fit, with_loop


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
        for outer, inner in pairwise(nest):
            if outer.body.stmts != (inner,):
                raise does_not_fit(self, f"the loop over `{outer.var.name}` has more in it than `{inner.var.name}`")
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
                if mentions(bound, (each.var for each in loops[place:])):
                    raise does_not_fit(self, f"the bounds of the loop over `{loop.var.name}` depend on one inside")


def _is_turned(dependence: Dependence, order: list[For]) -> bool:
    """Whether the sink might come before the source once the loops have this order."""
    steps = dict(zip(dependence.loops, dependence.steps, strict=True))
    apart = [loop for loop in order if loop in steps and steps[loop].direction != "="]
    if dependence.is_reduction and all(loop.kind is ForKind.REDUCE for loop in apart):
        return False
    # Loops around the one that carries it are in one iteration.
    return bool(apart) and steps[apart[0]].direction != "<"
