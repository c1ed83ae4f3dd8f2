"""Annotate and Nontemporal say something about the body of a loop that no pass finds out."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.ir import AttrKey, AttrStmt, PrimFunc, SeqStmt
from tirlite.record import record
from tirlite.rewrite.pipeline import FactsPass
from tirlite.schedules.handle import LoopName, handle_of, loop_named
from tirlite.schedules.step import with_loop


@record
class Annotate(FactsPass):
    """A remark about a loop, in the IR as `with tl.attr("pragma", text):` around it. It changes nothing.

    Passes leave it where it is, and who reads the IR finds it there.
    """

    loop: LoopName
    text: str
    name: str = "annotate"

    def __str__(self) -> str:
        return f"s.annotate({handle_of(self.loop)}, {self.text!r})"

    def rewritten(self, facts: Facts) -> PrimFunc:
        loop = loop_named(facts.func, self.loop)
        remark = AttrStmt(AttrKey.PRAGMA, SeqStmt((loop,)), None, self.text, span=loop.span)
        return with_loop(facts, loop, (remark,))
