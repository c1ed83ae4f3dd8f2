"""Annotate, Parallel and Nontemporal change how a loop runs, and leave its body unchanged."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.dependence import writes
from tirlite.ir import AttrKey, AttrStmt, ForKind, PrimFunc, SeqStmt
from tirlite.record import record
from tirlite.schedules.handle import BufferName, LoopName, buffer_named, loop_named
from tirlite.schedules.order import demand_any_order, demand_independent
from tirlite.schedules.step import ScheduleStep, does_not_fit, with_loop


@record
class Annotate(ScheduleStep):
    """Puts a remark around a loop, in the IR as `with tl.attr("pragma", text):`. Changes nothing else."""

    loop: LoopName
    text: str

    def rewritten(self, facts: Facts) -> PrimFunc:
        loop = loop_named(facts.func, self.loop)
        remark = AttrStmt(AttrKey.PRAGMA, SeqStmt((loop,)), None, self.text, span=loop.span)
        return with_loop(facts, loop, (remark,))


@record
class Parallel(ScheduleStep):
    """Makes a loop parallel. Refused if it carries a dependence."""

    loop: LoopName

    def rewritten(self, facts: Facts) -> PrimFunc:
        loop = loop_named(facts.func, self.loop)
        if loop.kind not in (ForKind.SERIAL, ForKind.PARALLEL):
            raise does_not_fit(self, f"the loop over `{loop.var.name}` is no `range`")
        demand_any_order(self, loop)
        demand_independent(self, facts, loop)
        return with_loop(facts, loop, (loop.replaced(kind=ForKind.PARALLEL),))


@record
class Nontemporal(ScheduleStep):
    """Makes a loop's vector stores to a buffer bypass the caches, whatever the size of the buffer.

    In the IR it is `with tl.attr(y, "nontemporal"):` around the loop; without it, generated code does so for large
    results only. Never changes results. Refused if the loop reads the buffer, which would then come back from memory.
    Only x86-64 has such stores, of vectors at addresses that are multiples of 16; other stores stay as they are.
    """

    buffer: BufferName
    at: LoopName

    def rewritten(self, facts: Facts) -> PrimFunc:
        at = loop_named(facts.func, self.at)
        buffer = buffer_named(facts.func, self.buffer, at)
        root = facts.definitions.root(buffer)
        found = next((touches for each, touches in facts.touched_in(at).items() if each.buffer is root), [])
        if not any(writes(touch) for touch in found):
            raise does_not_fit(self, f"the loop over `{at.var.name}` does not write `{buffer.name}`")
        for touch in found:
            if not writes(touch):
                raise does_not_fit(self, f"the loop reads {touch}")
        past = AttrStmt(AttrKey.NONTEMPORAL, SeqStmt((at,)), buffer, span=at.span)
        return with_loop(facts, at, (past,))
