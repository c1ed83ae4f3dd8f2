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
    is_equal: Expr = EQ(value, other)
    if value.dtype.is_float:
        is_nan, was_nan = _isnan(value), _isnan(other)
        is_beyond = BitOr(is_beyond, BitAnd(is_nan, Not(was_nan)))
        is_equal = BitOr(is_equal, BitAnd(is_nan, was_nan))
    return BitOr(is_beyond, BitAnd(is_equal, LT(at, its)))


def _isnan(value: Expr) -> Expr:
    return Call(bool_.with_lanes(value.dtype.lanes), Op.ISNAN, (value,))
