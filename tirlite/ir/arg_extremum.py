"""The order of `tl.argmax` and `tl.argmin` on pairs of a value and where it stands: NumPy's, in any grouping."""

from __future__ import annotations

from tirlite.ir.dtype import bool_
from tirlite.ir.expr import EQ, GT, LT, BitAnd, BitOr, Call, Expr, Max, Min, Not
from tirlite.ir.op import Op


def comes_first(kind: type[Max] | type[Min], value: Expr, at: Expr, other: Expr, its: Expr) -> Expr:
    """Whether the pair (`value`, `at`) is taken rather than (`other`, `its`); all may be vectors.

    nan is beyond all else, and of equal values the one with the lower place is taken.
    """
    is_beyond: Expr = GT(value, other) if kind is Max else LT(value, other)
    if value.dtype.is_float:
        is_beyond = BitOr(is_beyond, BitAnd(_isnan(value), Not(_isnan(other))))
    return BitOr(is_beyond, BitAnd(is_same(value, other), LT(at, its)))


def is_same(value: Expr, other: Expr) -> Expr:
    """Whether two values are equal in this order: all nan are."""
    is_equal: Expr = EQ(value, other)
    return BitOr(is_equal, BitAnd(_isnan(value), _isnan(other))) if value.dtype.is_float else is_equal


def _isnan(value: Expr) -> Expr:
    return Call(bool_.with_lanes(value.dtype.lanes), Op.ISNAN, (value,))
