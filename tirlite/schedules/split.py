"""Split makes two loops of one: the outer goes by blocks, the inner through one."""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.analysis.dependence import writes
from tirlite.analysis.facts import Facts
from tirlite.ir.dtype import i64
from tirlite.ir.expr import GE, LT, Add, Expr, IntImm, Min, Sub, Var, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.rewrite import substitute
from tirlite.ir.stmt import For, ForKind, IfThenElse, Let, SeqStmt, Stmt
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.lanes import last_whole
from tirlite.schedules.handle import LoopName, loop_named
from tirlite.schedules.order import demand_any_order, demand_independent
from tirlite.schedules.step import Step, demand_plain, does_not_fit, named, with_loop

_TAILS = ("short", "guarded", "masked", "peeled", "overlapped")


@record
class Split(Step):
    """`for j in range(a, b)` as `j.outer`, from `a` by so many, and `j.inner`, from there up to the next, or to `b`.

    The inner loop's variable takes the values that the loop had, so indices stay as they are, and the last block may be
    shorter. Both loops are of the loop's kind, but that what is inside of a parallel one is a `range`. It never changes
    results.

    With another `tail` all blocks have so many iterations: `guarded`, those beyond the end do nothing (which is a mask
    where the loop goes by vectors); `masked`, that is so of the last block alone, in `j.rest` behind; `peeled`, what is
    left stands in a loop `j.rest` of as many iterations as that; `overlapped`, the last block goes back over some that
    were done before, where there are as many. That is refused where one iteration may touch what another one writes, or
    reads what it writes: it would be done twice.
    """

    loop: LoopName
    by: int
    tail: str = "short"

    def rewritten(self, facts: Facts) -> PrimFunc:
        loop = loop_named(facts.func, self.loop)
        demand_plain(self, loop)
        if self.by < 1 or loop.kind in (ForKind.THREAD, ForKind.VECTORIZED):
            raise does_not_fit(self, "blocks are of one iteration or more, of a loop that is run one by one")
        if self.tail not in _TAILS:
            raise does_not_fit(self, f"a tail is one of {', '.join(_TAILS)}")
        if self.tail == "overlapped":
            self._demand_repeatable(facts, loop)
        return with_loop(facts, loop, (*self._split(loop),))

    def _split(self, loop: For) -> Iterator[Stmt]:
        outer, inner = Var(f"{loop.var.name}.outer"), Var(f"{loop.var.name}.inner")
        body = substitute(loop.body, {loop.var: inner})
        count = const(self.by, i64)

        def blocks(start: Expr, end: Expr, body: SeqStmt, *before: Stmt, stop: Expr = loop.stop) -> For:
            kind = ForKind.SERIAL if loop.kind is ForKind.PARALLEL else loop.kind
            block = For(inner, start, end, body, kind, span=loop.span)
            return loop.replaced(var=outer, stop=stop, step=self.by, body=SeqStmt((*before, block)))

        def guarded(body: SeqStmt, var: Var) -> SeqStmt:
            return SeqStmt((IfThenElse(LT(var, loop.stop), body, span=loop.span),))

        if self.tail == "guarded":
            yield blocks(outer, Add(outer, count), guarded(body, inner))
        elif self.tail in ("masked", "peeled"):
            found = loop.count
            whole = last_whole(loop, found, self.by)
            yield blocks(outer, Add(outer, count), body, stop=whole)
            if isinstance(found, IntImm) and found.value % self.by == 0:
                return
            if self.tail == "peeled":
                yield named(loop.replaced(start=whole), ".rest")
                return
            kind = ForKind.SERIAL if loop.kind is ForKind.PARALLEL else loop.kind
            last = loop.replaced(start=whole, stop=folded(Add(whole, count)), kind=kind)
            rest = named(last.replaced(body=guarded(loop.body, loop.var)), ".rest")
            yield IfThenElse(LT(whole, loop.stop), SeqStmt((rest,)), SeqStmt(), span=loop.span)
        elif self.tail == "overlapped":
            first = Var(f"{loop.var.name}.first")
            begin = Let(first, Min(outer, folded(Sub(loop.stop, count))), span=loop.span)
            overlapping = blocks(first, Add(first, count), body, begin)
            few = named(loop, ".rest")
            yield IfThenElse(GE(loop.count, count), SeqStmt((overlapping,)), SeqStmt((few,)), span=loop.span)
        else:
            yield blocks(outer, Min(Add(outer, count), loop.stop), body)

    def _demand_repeatable(self, facts: Facts, loop: For) -> None:
        """Raises KernelError, with the accesses, where an iteration that is done twice changes results."""
        if loop.kind is not ForKind.SERIAL:
            raise does_not_fit(self, f"the loop over `{loop.var.name}` is no `range`")
        demand_any_order(self, loop)
        demand_independent(self, facts, loop)
        for touches in facts.touched_in(loop).values():
            for touch in touches if any(map(writes, touches)) else ():
                if not writes(touch):
                    raise does_not_fit(self, f"{touch} is read and written by an iteration, which may be done twice")
