"""UnrollJam writes several iterations of a loop as one, so that loops inside serve all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tirlite.analysis.access import Allocation, Touch
from tirlite.analysis.dependence import writes
from tirlite.analysis.facts import Facts
from tirlite.ir import For, ForKind, IntImm, Let, PrimFunc, Stmt, Sub, Var, const, i64
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.jam import Jam
from tirlite.rewrite.lanes import NotVector, iterations, last_whole
from tirlite.rewrite.pipeline import FactsPass
from tirlite.schedules.handle import LoopName, handle_of, loop_named
from tirlite.schedules.step import demand_any_order, demand_independent, demand_plain, does_not_fit, with_loop

# Of so many iterations at once, what is left goes by twos.
_FEW = 4


@record
class UnrollJam(FactsPass):
    """So many iterations of a loop at once, each statement for all of them before the next.

    What is left goes at once, too, where its number is known. Else it goes by twos, so that sums wait less for one
    another, with the last one once more if need be, where an iteration may run again; or one by one. Loops inside stay
    one loop each, and what they load serves all of these iterations. Refused where one iteration may touch what another
    one writes, and where loops inside do not run alike in all of them.
    """

    loop: LoopName
    by: int
    name: str = "unroll-jam"

    def __str__(self) -> str:
        return f"s.unroll_jam({handle_of(self.loop)}, {self.by})"

    def rewritten(self, facts: Facts) -> PrimFunc:
        loop = loop_named(facts.func, self.loop)
        demand_plain(self, loop)
        if loop.kind not in (ForKind.SERIAL, ForKind.PARALLEL) or not 2 <= self.by <= 64:
            raise does_not_fit(self, "it takes 2 to 64 iterations of a `range`")
        demand_any_order(self, loop)
        demand_independent(self, facts, loop)
        try:
            return with_loop(facts, loop, (*self._together(loop, facts.touches_in.get(loop, {})),))
        except NotVector:
            reason = f"loops inside of the one over `{loop.var.name}` differ between iterations, or branch"
            raise does_not_fit(self, reason) from None

    def _together(self, loop: For, touches: Mapping[Allocation, Sequence[Touch]]) -> Iterator[Stmt]:
        count = iterations(loop)
        if not isinstance(count, IntImm | Var):
            var = Var("count")
            yield Let(var, count, span=loop.span)
            count = var
        middle = last_whole(loop, count, self.by)
        yield loop.replaced(stop=middle, step=self.by, body=Jam(loop.var, self.by).block(loop.body))
        rest = count.value % self.by if isinstance(count, IntImm) else None
        if rest is None and self.by >= _FEW and _may_run_twice(touches):
            last = folded(Sub(loop.stop, const(1, i64)))
            yield loop.replaced(start=middle, step=2, body=Jam(loop.var, 2, last).block(loop.body))
        elif rest is None or rest == 1:
            yield loop.replaced(start=middle)
        elif rest:
            yield loop.replaced(start=middle, step=rest, body=Jam(loop.var, rest).block(loop.body))


def _may_run_twice(touches: Mapping[Allocation, Sequence[Touch]]) -> bool:
    """Whether an iteration may run beside itself, statement by statement: it reads nothing that it writes.

    What it sets anew and then adds to, both runs would add to.
    """
    return all(all(map(writes, found)) or not any(map(writes, found)) for found in touches.values())
