"""Dot products of narrow integers: `tl.dot(total, a, b)` adds products of groups of lanes to wider sums.
Lane `l` is `total[l] + a[g * l] * b[g * l] + ... + a[g * l + g - 1] * b[g * l + g - 1]`, where the group size `g` is
the number of elements in the bits of a sum: four bytes for an i32. All is computed in the type of `total`, and wraps.
If `a` has only one group, it is used for all lanes.
"""

from __future__ import annotations

from tirlite.ir.dtype import DType
from tirlite.ir.expr import Call, Expr
from tirlite.ir.op import Op


def dot(total: Expr, a: Expr, b: Expr) -> Expr:
    """The dot products of the groups of lanes of `a` and `b`, added to `total`."""
    return Call(total.dtype, Op.DOT, (total, a, b))


def dot_lanes(total: DType, b: DType) -> int:
    """The size of a group for these types; 0 if they do not fit."""
    if not total.is_integer or not b.is_integer or b.is_bool or b.bits >= total.bits or total.bits % b.bits:
        return 0
    lanes = total.bits // b.bits
    return lanes if b.lanes == lanes * total.lanes else 0


def fits_dot(a: DType, b: DType, lanes: int) -> bool:
    """Whether the other operand has integers of the same bits, in one group or in as many."""
    return a.is_integer and not a.is_bool and a.bits == b.bits and a.lanes in (lanes, b.lanes)


def dot_name(a: DType, b: DType) -> str:
    """The name of the element types in a processor's list of dot products: `u8 s8`."""
    return " ".join(f"{'s' if each.is_signed else 'u'}{each.bits}" for each in (a, b))
