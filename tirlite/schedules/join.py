"""Join makes one loop of two, one behind the other."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.analysis.fusion import Fusion, can_be_reordered
from tirlite.ir import Allocate, For, ForKind, PrimFunc, SeqStmt, walk
from tirlite.record import record
from tirlite.rewrite.fuse_loops import joined_range
from tirlite.rewrite.normalize import exchanged
from tirlite.schedules.handle import LoopName, loop_named
from tirlite.schedules.step import Step, breaks_order, demand_any_order, demand_plain, does_not_fit


@record
class Join(Step):
    """One loop that does what `first` does and then what `second` does, which runs `behind` iterations later.

    The two stand in one block, with nothing but allocations between them, and go up by 1. Where one of them does not
    run in an iteration, a condition says so. Refused where an access of the second would come before one of the first
    that it must come after. `FuseLoops` does so wherever a temporary is read.
    """

    first: LoopName
    second: LoopName
    behind: int = 0

    def rewritten(self, facts: Facts) -> PrimFunc:
        first, second = (loop_named(facts.func, each) for each in (self.first, self.second))
        self._demand_neighbours(facts.func, first, second)
        for loop in (first, second):
            demand_plain(self, loop)
            demand_any_order(self, loop)
            if not can_be_reordered(loop):
                raise does_not_fit(self, f"the loop over `{loop.var.name}` does more than load and store")
        if first.kind is not second.kind or first.kind not in (ForKind.SERIAL, ForKind.PARALLEL):
            raise does_not_fit(self, "both loops are a `range`, or both are parallel")
        if self.behind < 0 or (self.behind and first.kind is ForKind.PARALLEL):
            raise does_not_fit(self, "the second loop runs no iterations ahead, nor behind in parallel")
        joined = joined_range(first, second, self.behind, facts.space)
        if joined is None:
            raise does_not_fit(self, "the bounds of the loops are read from memory, or may wrap around")
        for against in Fusion(facts).against(first, second, self.behind):
            if against is None:
                raise does_not_fit(self, "how the loops lie to each other is not known, or they access too much")
            raise breaks_order(self, against)
        return exchanged(facts.func, {first: (), second: (joined.loop(first, second),)})

    def _demand_neighbours(self, func: PrimFunc, first: For, second: For) -> None:
        for block in (each for each in walk(func.body) if isinstance(each, SeqStmt)):
            if first in block.stmts and second in block.stmts:
                begin, end = block.stmts.index(first), block.stmts.index(second)
                if begin < end and all(isinstance(each, Allocate) for each in block.stmts[begin + 1 : end]):
                    return
        raise does_not_fit(self, "the second loop does not follow the first one")
