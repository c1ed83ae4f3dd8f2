"""Peel moves iterations at the ends of a loop into loops of their own."""

from __future__ import annotations

from typing import ClassVar

from tirlite.analysis.facts import Facts
from tirlite.ir import Add, For, ForKind, Max, Min, PrimFunc, Sub, const, i64
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.loops.edges import Edges
from tirlite.schedules.handle import LoopName, loop_named
from tirlite.schedules.step import ScheduleStep, demand_plain, does_not_fit, named, with_loop

_KINDS = (ForKind.SERIAL, ForKind.PARALLEL, ForKind.REDUCE)


@record
class Peel(ScheduleStep):
    """Peels the `first` and `last` iterations of a loop into loops before and after it: `i.first` and `i.last`.

    If neither is given, these are the iterations for which conditions test the ends of arrays, as in
    `x[max(i - 1, 0)]`, at most 32 at each end; `PartitionLoops` peels these wherever it pays. Never changes results.
    """

    loop: LoopName
    first: int = 0
    last: int = 0
    KEYWORDS: ClassVar = frozenset({"first", "last"})

    def rewritten(self, facts: Facts) -> PrimFunc:
        loop = loop_named(facts.func, self.loop)
        demand_plain(self, loop)
        if loop.kind not in _KINDS or self.first < 0 or self.last < 0:
            raise does_not_fit(self, f"the loop over `{loop.var.name}` is not run one by one, or a number is below 0")
        first, middle, last = self._parts(loop, facts)
        before = () if first is None else (named(first, ".first"),)
        return with_loop(facts, loop, (*before, middle, *(() if last is None else (named(last, ".last"),))))

    def _parts(self, loop: For, facts: Facts) -> tuple[For | None, For, For | None]:
        """The loops over the first iterations, if any, the middle, and the last iterations, if any."""
        if not (self.first or self.last):
            edges = Edges(loop, facts)
            if not (edges.begins or edges.ends):
                raise does_not_fit(self, f"no iterations of the loop over `{loop.var.name}` are told from the others")
            return edges.partition()
        begin, end = loop.start, loop.stop
        if self.first:
            begin = Min(folded(Add(begin, const(self.first, i64))), end)
        if self.last:
            end = Max(folded(Sub(end, const(self.last, i64))), begin)
        first, middle, last = loop.replaced(stop=begin), loop.replaced(start=begin, stop=end), loop.replaced(start=end)
        return first if self.first else None, middle, last if self.last else None
