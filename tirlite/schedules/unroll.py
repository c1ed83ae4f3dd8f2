"""Unroll writes several iterations of a loop one behind the other."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.ir import Add, ForKind, PrimFunc, SeqStmt, const, i64, statements, substitute
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.lanes import iterations, last_whole
from tirlite.rewrite.pipeline import FactsPass
from tirlite.rewrite.unroll_loops import MOST_STATEMENTS, unrolled
from tirlite.schedules.handle import LoopName, handle_of, loop_named
from tirlite.schedules.step import demand_plain, does_not_fit, named, with_loop

_KINDS = (ForKind.SERIAL, ForKind.PARALLEL, ForKind.REDUCE, ForKind.UNROLLED)


@record
class Unroll(FactsPass):
    """So many iterations of a loop in one, in their order, and a loop `i.rest` through what is left.

    Without a number all of them are written out, which is refused where their number is not constant. It never changes
    results. Where loops inside are to serve several iterations together, `unroll_jam` is the step.
    """

    loop: LoopName
    by: int = 0
    name: str = "unroll"

    def __str__(self) -> str:
        return f"s.unroll({handle_of(self.loop)}{f', {self.by}' if self.by else ''})"

    def rewritten(self, facts: Facts) -> PrimFunc:
        loop = loop_named(facts.func, self.loop)
        values = loop.values
        number = self.by or (None if values is None else len(values))
        if loop.kind not in _KINDS or number is None or self.by == 1 or self.by < 0:
            raise does_not_fit(self, f"how often the loop over `{loop.var.name}` runs is not known, or one at a time")
        if number * sum(1 for _ in statements(loop.body)) > MOST_STATEMENTS:
            raise does_not_fit(self, f"there would be more than {MOST_STATEMENTS} statements")
        if not self.by:
            return with_loop(facts, loop, unrolled(loop))
        demand_plain(self, loop)
        middle = last_whole(loop, iterations(loop), self.by)
        copies = [
            folded(substitute(loop.body, {loop.var: Add(loop.var, const(k, i64))})) if k else loop.body
            for k in range(self.by)
        ]
        body = SeqStmt(tuple(stmt for copy in copies for stmt in copy.stmts))
        rest = loop.replaced(start=middle)
        return with_loop(facts, loop, (loop.replaced(stop=middle, step=self.by, body=body), named(rest, ".rest")))
