"""Tile cuts several loops into blocks whose data stays in a cache; Skew makes that legal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.dependence import Dependence
from tirlite.ir import rewrite
from tirlite.ir.dtype import i64
from tirlite.ir.expr import GE, LT, Add, And, Expr, IntImm, Max, Min, Mul, Sub, Var, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.rewrite import substitute
from tirlite.ir.stmt import For, ForKind, IfThenElse, SeqStmt
from tirlite.ir.walk import mentions
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.schedules.handle import LoopName, chain_to, handle_of, loop_named
from tirlite.schedules.loop_facts import is_block_of
from tirlite.schedules.order import breaks_order, carried, demand_any_order, moved_out
from tirlite.schedules.step import ScheduleStep, demand_nothing_beside, demand_plain, does_not_fit, with_loop
from tirlite.sizes import Proof, Size, prove_divides
from tirlite.sizes.unknown import ends

_KINDS = (ForKind.SERIAL, ForKind.PARALLEL, ForKind.REDUCE)


@record
class Tile(ScheduleStep):
    """Tiles perfectly nested loops: all block loops `i.outer`, in the order of the nest, around all loops `i.inner`.

    A loop of size 0 is not cut: it keeps its name and runs whole within each block of the others. For size 1 only the
    block loop remains. Loops that are block loops already may be tiled again.

    The bounds of a loop may be sums of variables of the loops around it, as after `skew`: its blocks then cover its
    whole range over a block of those, and each iteration runs the part within its own bounds.

    Refused if an access would run before one that it depends on, so unless every dependence goes forward, or stays in
    one iteration, in each of these loops. The outermost block loop of a parallel loop stays parallel if no dependence
    carried by a loop around connects different iterations of it.
    """

    sizes: tuple[tuple[LoopName, int], ...]

    def __str__(self) -> str:
        sizes = ", ".join(f"{handle_of(loop)}: {by}" for loop, by in self.sizes)
        return f"s.tile({{{sizes}}})"

    def rewritten(self, facts: Facts) -> PrimFunc:
        if any(isinstance(loop, int) or not isinstance(by, int) for loop, by in self.sizes):
            raise does_not_fit(self, "`sizes` takes numbers by loops")
        chains = [chain_to(facts.func, loop) for loop, _ in self.sizes]
        deepest = max(chains, key=len, default=())
        nest = [*deepest[len(deepest) - len(chains) :]]
        if not nest or nest != [chain[-1] for chain in chains]:
            raise does_not_fit(self, "the loops are not one inside of the other, in this order")
        demand_nothing_beside(self, nest)
        for loop in nest:
            demand_plain(self, loop, by_blocks=True)
            if loop.kind not in _KINDS or any(by < 0 for _, by in self.sizes):
                raise does_not_fit(self, "blocks are of one iteration or more, of a loop that is run one by one")
        demand_any_order(self, nest[0])
        for loop in nest[:-1]:
            for each in carried(facts, loop):
                if may_reverse(each, nest):
                    raise breaks_order(self, each)
        return with_loop(facts, nest[0], self._tiled(facts, nest).stmts)

    def _tiled(self, facts: Facts, nest: list[For]) -> SeqStmt:
        """The block loops, around the loops within a block."""
        blocks: list[For] = []
        within: list[For | IfThenElse] = []
        least: dict[Var, Expr] = {}  # bounds of each loop's variable within a block
        most: dict[Var, Expr] = {}
        inner: dict[Var, Expr] = {}
        for place, (loop, (_, by)) in enumerate(zip(nest, self.sizes, strict=True)):
            is_moving = mentions(loop.start, least) or mentions(loop.stop, least)
            first, behind = self._end(loop.start, least, most), self._end(loop.stop, most, least)
            self._demand_whole_blocks(facts, loop, first, blocks)
            start, stop = (substitute(bound, inner) if is_moving else bound for bound in (loop.start, loop.stop))
            known = _known_end(facts, loop)
            if by:
                outer, count = Var(f"{loop.var.name}.outer"), by * loop.step
                kind = self._kind(facts, nest, place, blocks)
                blocks.append(For(outer, first, behind, SeqStmt(()), kind, step=count, span=loop.span))
                if by == 1:
                    if is_moving:
                        within.append(IfThenElse(And(GE(outer, start), LT(outer, stop)), SeqStmt(()), span=loop.span))
                    least[loop.var] = most[loop.var] = inner[loop.var] = outer
                    continue
                first, end = outer, Add(outer, const(count, i64))
                behind = Min(end, behind) if known is loop.stop else end
                start, stop = Max(outer, start) if is_moving else outer, Min(end, stop)
            elif known is not None:
                behind = self._end(known, most, least)
            var = Var(f"{loop.var.name}.inner") if by else Var(loop.var.name)
            kind = ForKind.SERIAL if loop.kind is ForKind.PARALLEL else loop.kind
            within.append(For(var, start, stop, SeqStmt(()), kind, step=loop.step, span=loop.span))
            least[loop.var], most[loop.var], inner[loop.var] = first, folded(Sub(behind, const(1, i64))), var
        body = substitute(nest[-1].body, inner)
        for each in reversed((*blocks, *within)):
            body = SeqStmt((each.replaced(**{"body" if isinstance(each, For) else "then_body": body}),))
        return body

    @staticmethod
    def _kind(facts: Facts, nest: list[For], place: int, blocks: list[For]) -> ForKind:
        """The kind of the block loop of `nest[place]`; `blocks` are the block loops around it."""
        loop = nest[place]
        if loop.kind is ForKind.PARALLEL and blocks:
            return ForKind.SERIAL
        return moved_out(facts, loop, nest[:place]).kind

    def _demand_whole_blocks(self, facts: Facts, loop: For, first: Expr, cut: list[For]) -> None:
        """Raises KernelError unless a block loop's start differs from `first` by a multiple of its step."""
        if loop.step == 1 or first is loop.start:
            return
        if not mentions(first, {each.var for each in cut}):
            moved = facts.space.size(loop.start) - facts.space.size(first)
            if prove_divides(loop.step, moved) is Proof.YES:
                return
        raise does_not_fit(self, f"the loop over `{loop.var.name}` may be moved by parts of its blocks")

    def _end(self, bound: Expr, low: Mapping[Var, Expr], high: Mapping[Var, Expr]) -> Expr:
        """The minimum of a bound while each variable goes from `low` to `high`; the maximum if these are swapped."""
        if not mentions(bound, low):
            return bound
        match bound:
            case Var():
                return low[bound]
            case Add(a=a, b=b):
                return folded(Add(self._end(a, low, high), self._end(b, low, high)))
            case Sub(a=a, b=b):
                return folded(Sub(self._end(a, low, high), self._end(b, high, low)))
            case Min(a=a, b=b):
                return Min(self._end(a, low, high), self._end(b, low, high))
            case Max(a=a, b=b):
                return Max(self._end(a, low, high), self._end(b, low, high))
            case Mul(a=a, b=IntImm(value=by)):
                return folded(Mul(self._end(a, low, high) if by >= 0 else self._end(a, high, low), bound.b))
        raise does_not_fit(self, "a bound is no sum of the variables of loops around")


def _known_end(facts: Facts, loop: For) -> Expr | None:
    """The first operand of a loop's stop with known numeric bounds, or None."""
    each = (loop.stop, *facts.space.operands(loop.stop, Min))
    return next((end for end in each if None not in ends(facts.space.size(end))), None)


def may_reverse(dependence: Dependence, band: list[For]) -> bool:
    """Whether a dependence that a loop of a band carries may go backwards in an inner loop of the band."""
    if dependence.is_reduction and all(loop.kind is ForKind.REDUCE for loop in band):
        return False
    return any(dependence.may_go_back(loop) for loop in _further(dependence, band))


def _further(dependence: Dependence, band: list[For]) -> Iterator[For]:
    inside = dependence.loops[dependence.level + 1 :]
    return (loop for loop in band if loop in inside)


# The largest skew factor: below it, the added term cannot overflow.
_FAR = 1 << 20


@record
class Skew(ScheduleStep):
    """Skews `for j in range(a, b)` inside of `along`: shifts it by `by` for each iteration of `along` so far.

    The loop becomes `j.skewed`, and `j` is `j.skewed - by * (t - start)`. Never changes results. If `by` is large
    enough, no dependence goes backwards in either loop, so that `tile` may take both: time and space tiles of an
    iterated stencil. If `along` is a block of a split loop, its iterations are counted from 0 in each block. Refused
    unless the shift is proved not to overflow, as `along` may run any number of times.
    """

    loop: LoopName
    along: LoopName
    by: int = 1
    KEYWORDS: ClassVar = frozenset({"along", "by"})

    def rewritten(self, facts: Facts) -> PrimFunc:
        chain = chain_to(facts.func, self.loop)
        loop, along = chain[-1], loop_named(facts.func, self.along)
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
    """The largest value of an iteration count, if known."""
    size = facts.space.size(passed)
    return ends(size)[1] if facts.space.is_exact(size) else None
