"""The order of `tl.argmax` and `tl.argmin` on pairs of a value and where it stands: NumPy's, in any grouping."""

from __future__ import annotations

from tirlite.ir.dtype import bool_
from tirlite.ir.expr import EQ, GE, GT, LE, LT, BitAnd, BitOr, Call, Expr, Max, Min, Not
from tirlite.ir.op import Op


def comes_first(kind: type[Max] | type[Min], value: Expr, at: Expr, other: Expr, its: Expr) -> Expr:
    """Whether the pair (`value`, `at`) is taken rather than (`other`, `its`); all may be vectors.

    nan is beyond all else, and of equal values the one with the lower place is taken.
    """
    comes: Expr = GT(value, other) if kind is Max else LT(value, other)
    if value.dtype.is_float:
        comes = BitOr(comes, BitAnd(_isnan(value), Not(_isnan(other))))
    return BitOr(comes, BitAnd(is_same(value, other), LT(at, its)))


def is_beyond(kind: type[Max] | type[Min], value: Expr, other: Expr) -> Expr:
    """Whether a value is taken rather than another one, whose place is lower."""
    if not value.dtype.is_float:
        return GT(value, other) if kind is Max else LT(value, other)
    # Two comparisons: what is not at most the other one is beyond it, or one of them is nan.
    return BitAnd(Not(LE(value, other) if kind is Max else GE(value, other)), Not(_isnan(other)))


def is_same(value: Expr, other: Expr) -> Expr:
    """Whether two values are equal in this order: all nan are."""
    is_equal: Expr = EQ(value, other)
    return BitOr(is_equal, BitAnd(_isnan(value), _isnan(other))) if value.dtype.is_float else is_equal


def _isnan(value: Expr) -> Expr:
    return Call(bool_.with_lanes(value.dtype.lanes), Op.ISNAN, (value,))
