"""Split makes two loops of one: the outer goes by blocks, the inner through one."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.ir import Add, For, ForKind, Min, PrimFunc, SeqStmt, Var, const, i64, substitute
from tirlite.record import record
from tirlite.rewrite.pipeline import FactsPass
from tirlite.schedules.handle import LoopName, handle_of, loop_named
from tirlite.schedules.step import demand_plain, does_not_fit, with_loop


@record
class Split(FactsPass):
    """`for j in range(a, b)` as `j.outer`, from `a` by so many, and `j.inner`, from there up to the next, or to `b`.

    The inner loop's variable takes the values that the loop had, so indices stay as they are, and the last block may be
    shorter. Both loops are of the loop's kind, but that what is inside of a parallel one is a `range`. It never changes
    results.
    """

    loop: LoopName
    by: int
    name: str = "split"

    def __str__(self) -> str:
        return f"s.split({handle_of(self.loop)}, {self.by})"

    def rewritten(self, facts: Facts) -> PrimFunc:
        loop = loop_named(facts.func, self.loop)
        demand_plain(self, loop)
        if self.by < 1 or loop.kind in (ForKind.THREAD, ForKind.VECTORIZED):
            raise does_not_fit(self, "blocks are of one iteration or more, of a loop that is run one by one")
        outer, inner = Var(f"{loop.var.name}.outer"), Var(f"{loop.var.name}.inner")
        end = Min(Add(outer, const(self.by, i64)), loop.stop)
        body = substitute(loop.body, {loop.var: inner})
        kind = ForKind.SERIAL if loop.kind is ForKind.PARALLEL else loop.kind
        block = For(inner, outer, end, body, kind, span=loop.span)
        return with_loop(facts, loop, (loop.replaced(var=outer, step=self.by, body=SeqStmt((block,))),))
