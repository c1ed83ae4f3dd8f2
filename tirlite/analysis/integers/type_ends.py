"""Bounds an integer expression by its type, and by a mask, a divisor or a shift."""

from __future__ import annotations

from tirlite.ir.dtype import DType, i64
from tirlite.ir.expr import BitAnd, Expr, FloorMod, IntImm, ShiftRight
from tirlite.sizes import Size
from tirlite.sizes.unknown import ends


def type_ends(expr: Expr) -> tuple[int | None, int | None]:
    """The least and the greatest; None where 64 bits are all that is known: that is no bound that helps."""
    kind = expr.dtype
    low, high = (kind.min, kind.max) if kind.is_integer and kind.bits < i64.bits else (None, None)
    if isinstance(expr, BitAnd | FloorMod | ShiftRight) and isinstance(expr.b, IntImm) and kind.is_integer:
        number = expr.b.value
        if isinstance(expr, ShiftRight):
            rest = kind.max >> number if kind.min == 0 and 0 <= number < kind.bits else None
        else:
            rest = number - int(isinstance(expr, FloorMod)) if number > 0 else None
        if rest is not None and rest <= i64.max:
            return 0, rest
    return low, high


def fits(value: Size, dtype: DType) -> bool:
    """Whether an integer lies between numbers that a type holds."""
    low, high = ends(value)
    return isinstance(low, int) and isinstance(high, int) and dtype.min <= low and high <= dtype.max
