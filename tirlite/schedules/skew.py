"""Skew has a loop run later in each iteration of one around it, so that both can go by tiles."""

from __future__ import annotations

from typing import ClassVar

from tirlite.analysis.facts import Facts
from tirlite.ir import Add, Expr, For, ForKind, IntImm, Min, Mul, PrimFunc, Sub, Var, const, i64, rewrite, substitute
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.schedules.handle import LoopName, chain_to
from tirlite.schedules.loop_facts import is_block_of
from tirlite.schedules.step import Step, demand_plain, does_not_fit, with_loop
from tirlite.sizes import Size
from tirlite.sizes.unknown import ends

_KINDS = (ForKind.SERIAL, ForKind.PARALLEL, ForKind.REDUCE)
# So many iterations per one of the loop around: what is added never wraps around.
_FAR = 1 << 20


@record
class Skew(Step):
    """`for j in range(a, b)` inside of `along` as `j.skewed`, which is ahead by `by` for each iteration of that so far.

    `j` is `j.skewed - by * (t - start)` then. It never changes results; but what came in an earlier iteration of `j`
    and a later one of `t` now comes in the same iteration or a later one of both, if `by` is large enough, so that
    `tile` may take both: iterated stencils go by tiles of time and space. Where `along` goes through a block, as
    `split` makes it, its iterations are counted from 0. Refused where numbers might wrap around, as `along` may have
    any number of iterations.
    """

    loop: LoopName
    along: LoopName
    by: int = 1
    KEYWORDS: ClassVar = frozenset({"along", "by"})

    def rewritten(self, facts: Facts) -> PrimFunc:
        chain = chain_to(facts.func, self.loop)
        loop, along = chain[-1], chain_to(facts.func, self.along)[-1]
        if along not in chain[:-1] or loop.kind not in _KINDS or not 0 < abs(self.by) < _FAR:
            raise does_not_fit(self, f"it takes a `range` inside of the loop over `{along.var.name}`, and a number")
        demand_plain(self, along, by_blocks=True)
        demand_plain(self, loop, by_blocks=True)
        blocks = next((each for each in chain if is_block_of(along, each)), None)
        if blocks is not None and isinstance(blocks.start, IntImm) and blocks.start.value >= 0:
            passed: Expr = Var(along.var.name)
            most: Size | None = blocks.step - 1
        else:
            blocks = None
            passed = folded(Sub(along.var, along.start))
            most = _most(facts, passed)
        for bound in (loop.start, loop.stop):
            if most is None or not facts.space.is_exact(facts.space.size(bound) + self.by * most):
                raise does_not_fit(
                    self, f"how far the loop over `{loop.var.name}` would move is not known; split `{along.var.name}`"
                )
        skewed = self._skewed(loop, folded(Mul(passed, const(self.by, i64))))
        if blocks is None:
            return with_loop(facts, loop, (skewed,))
        assert isinstance(passed, Var)
        body = rewrite(along.body, {For: lambda each: skewed if each is loop else each})
        body = substitute(body, {along.var: folded(Add(blocks.var, passed))})
        stop = Min(const(blocks.step, i64), folded(Sub(blocks.stop, blocks.var)))
        return with_loop(facts, along, (along.replaced(var=passed, start=const(0, i64), stop=stop, body=body),))

    def _skewed(self, loop: For, ahead: Expr) -> For:
        var = Var(f"{loop.var.name}.skewed")
        body = substitute(loop.body, {loop.var: folded(Sub(var, ahead))})
        start, stop = (folded(Add(bound, ahead)) for bound in (loop.start, loop.stop))
        return loop.replaced(var=var, start=start, stop=stop, body=body)


def _most(facts: Facts, passed: Expr) -> Size | None:
    """The most that a number of iterations can be."""
    size = facts.space.size(passed)
    return ends(size)[1] if facts.space.is_exact(size) else None
