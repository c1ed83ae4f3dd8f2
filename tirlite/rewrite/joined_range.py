"""Makes one loop of two of step 1: the range that holds both, and under which conditions each of them runs in it."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.analysis.integers.exactness import stays_exact
from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.ir import (
    LE,
    LT,
    And,
    Call,
    Expr,
    For,
    IfThenElse,
    Load,
    Max,
    Min,
    SeqStmt,
    Stmt,
    Var,
    structural_equal,
    substitute,
    walk,
)
from tirlite.record import record
from tirlite.rewrite.affine_exprs import shifted
from tirlite.rewrite.simplify.simplify import simplified
from tirlite.sizes import Size
from tirlite.sizes.unknown import ends as ends_of, is_nonnegative


@record
class JoinedRange:
    """From `start` to `stop`, which holds both ranges; `first` and `second` are None where a loop runs all along.

    `second_var` is the value of the second loop's variable, which runs behind.
    """

    start: Expr
    stop: Expr
    first: Expr | None
    second: Expr | None
    second_var: Expr

    @property
    def is_guarded(self) -> bool:
        return self.first is not None or self.second is not None

    def guarded(self, stmts: Sequence[Stmt], condition: Expr | None) -> tuple[Stmt, ...]:
        """The statements, run under a condition."""
        return tuple(stmts) if condition is None else (IfThenElse(condition, SeqStmt(tuple(stmts))),)

    def loop(self, first: For, second: For) -> For:
        """One loop that does what both do."""
        mine = self.guarded(first.body.stmts, self.first)
        body = substitute(second.body, {second.var: self.second_var})
        if not isinstance(self.second_var, Var):
            body = simplified(body)  # of `t[i - 1 + 1]`
        others = self.guarded(body.stmts, self.second)
        loop = first.replaced(start=self.start, stop=self.stop, body=SeqStmt((*mine, *others)))
        if self.start is not first.start or self.stop is not first.stop:
            # What was known of the variable of the first loop does not hold in a longer one.
            var = Var(first.var.name, first.var.dtype)
            loop = substitute(loop, {first.var: var}).replaced(var=var)
        return _with_branches_joined(loop, len(mine))


def joined_range(first: For, second: For, shift: int, space: IndexSpace) -> JoinedRange | None:
    """The range in which each iteration of `second` runs `shift` iterations after the same one of `first`.

    None where a bound may wrap around or change, so that it cannot be moved.
    """
    ends = [end for loop in (first, second) for end in (loop.start, loop.stop)]
    if any(isinstance(node, Load | Call) for end in ends for node in walk(end)):
        return None
    bounds: list[tuple[Expr, Size]] = []
    for bound, by in ((first.start, 0), (first.stop, 0), (second.start, shift), (second.stop, shift)):
        size = space.size(bound) + by
        if not (isinstance(bound, Var) and by == 0) and not stays_exact(*ends_of(size)):
            return None
        bounds.append((shifted(bound, by), size))
    (start, low), (stop, high), (later, behind), (end, after) = bounds
    from_first, from_second = _is_least(low, behind), _is_least(behind, low)
    to_first, to_second = _is_least(after, high), _is_least(high, after)
    var: Expr = first.var
    return JoinedRange(
        start if from_first else later if from_second else Min(start, later),
        stop if to_first else end if to_second else Max(stop, end),
        _condition(var, None if from_first else start, None if to_first else stop),
        _condition(var, None if from_second else later, None if to_second else end),
        shifted(var, -shift),
    )


def _is_least(a: Size, b: Size) -> bool:
    """Whether `a` is proved to be at most `b`."""
    low = ends_of(b - a)[0]
    return low is not None and is_nonnegative(low)


def _condition(var: Expr, start: Expr | None, stop: Expr | None) -> Expr | None:
    above = None if start is None else LE(start, var)
    below = None if stop is None else LT(var, stop)
    if above is None:
        return below
    return above if below is None else And(above, below)


def _with_branches_joined(fused: For, count: int) -> For:
    """One branch of two in a row with the same condition, which nothing inside can change."""
    stmts = fused.body.stmts
    last, following = stmts[count - 1], stmts[count]
    if not (isinstance(last, IfThenElse) and isinstance(following, IfThenElse)):
        return fused
    is_steady = not any(isinstance(node, Load | Call) for node in walk(last.condition))
    if not is_steady or last.else_body.stmts or following.else_body.stmts:
        return fused
    if not structural_equal(last.condition, following.condition):
        return fused
    joined = last.replaced(then_body=SeqStmt((last.then_body, following.then_body)))
    return fused.replaced(body=SeqStmt((*stmts[: count - 1], joined, *stmts[count + 1 :])))
