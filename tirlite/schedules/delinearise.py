"""Delinearise makes two loops of one that goes over several axes at once."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.ir import ForKind, IntImm, PrimFunc
from tirlite.record import record
from tirlite.rewrite.divide_loops import divided, is_whole
from tirlite.schedules.handle import LoopName, loop_named
from tirlite.schedules.step import Step, demand_plain, does_not_fit, with_loop


@record
class Delinearise(Step):
    """`for i in range(n * 64)` as `i.outer` over rows of 64, and `i.inner` through one.

    `i // 64` becomes `i.outer`, and `i % 64` becomes `i.inner`: indices that were quotients and remainders become those
    of axes. It never changes results. `DivideLoops` does so wherever that pays. Refused where the rows are not proved
    to be whole.
    """

    loop: LoopName
    by: int

    def rewritten(self, facts: Facts) -> PrimFunc:
        loop = loop_named(facts.func, self.loop)
        demand_plain(self, loop)
        if self.by < 1 or loop.kind not in (ForKind.SERIAL, ForKind.PARALLEL, ForKind.REDUCE):
            raise does_not_fit(self, "rows are of one iteration or more, of a loop that is run one by one")
        if not (isinstance(loop.start, IntImm) and loop.start.value == 0):
            raise does_not_fit(self, f"the loop over `{loop.var.name}` does not begin at 0")
        if not is_whole(loop, self.by, facts):
            raise does_not_fit(self, f"the loop over `{loop.var.name}` is not proved to have whole rows of {self.by}")
        return with_loop(facts, loop, (divided(loop, self.by),))
