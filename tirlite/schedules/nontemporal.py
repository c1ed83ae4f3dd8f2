"""Nontemporal has vectors be stored past the caches, which keep what is read meanwhile."""

from __future__ import annotations

from tirlite.analysis.dependence import writes
from tirlite.analysis.facts import Facts
from tirlite.ir import AttrKey, AttrStmt, PrimFunc, SeqStmt
from tirlite.record import record
from tirlite.rewrite.pipeline import FactsPass
from tirlite.schedules.handle import LoopName, buffer_named, handle_of, loop_named
from tirlite.schedules.step import does_not_fit, with_loop


@record
class Nontemporal(FactsPass):
    """What a loop stores into a buffer by vectors goes past the caches, whatever the size of the buffer.

    In the IR it is `with tl.attr(y, "nontemporal"):` around the loop; without it code does so for large results alone.
    It never changes results. Refused where the loop reads the buffer, which would have to come back from memory. Only
    x86-64 has such stores, of vectors at addresses that are multiples of 16; others stay as they are.
    """

    buffer: str
    at: LoopName
    name: str = "nontemporal"

    def __str__(self) -> str:
        return f"s.nontemporal({self.buffer!r}, at={handle_of(self.at)})"

    def rewritten(self, facts: Facts) -> PrimFunc:
        buffer = buffer_named(facts.func, self.buffer)
        at = loop_named(facts.func, self.at)
        root = facts.definitions.root(buffer)
        found = next((touches for each, touches in facts.touches_in.get(at, {}).items() if each.buffer is root), [])
        if not any(writes(touch) for touch in found):
            raise does_not_fit(self, f"the loop over `{at.var.name}` does not write `{buffer.name}`")
        for touch in found:
            if not writes(touch):
                raise does_not_fit(self, f"the loop reads {touch}")
        past = AttrStmt(AttrKey.NONTEMPORAL, SeqStmt((at,)), buffer, span=at.span)
        return with_loop(facts, at, (past,))
