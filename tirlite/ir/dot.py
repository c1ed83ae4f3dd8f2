"""Dot products of narrow integers: `tl.dot(total, a, b)` adds the products of groups of lanes to a wider sum.

Lane `l` is `total[l] + a[g * l] * b[g * l] + ... + a[g * l + g - 1] * b[g * l + g - 1]`, for groups of as many lanes
`g` as make up the bits of a sum: four bytes for an i32. All is computed in the type of `total`, and wraps around. Where
`a` has one group alone it serves all lanes.
"""

from __future__ import annotations

from tirlite.ir.dtype import DType
from tirlite.ir.expr import Call, Expr
from tirlite.ir.op import Op


def dot(total: Expr, a: Expr, b: Expr) -> Expr:
    """`total` and the products of the groups of lanes of `a` and `b`."""
    return Call(total.dtype, Op.DOT, (total, a, b))


def dot_lanes(total: DType, b: DType) -> int:
    """The lanes of a group, of an operand that belongs to such sums; 0 where there is none."""
    if not total.is_integer or not b.is_integer or b.is_bool or b.bits >= total.bits or total.bits % b.bits:
        return 0
    lanes = total.bits // b.bits
    return lanes if b.lanes == lanes * total.lanes else 0


def fits_dot(a: DType, b: DType, lanes: int) -> bool:
    """Whether the other operand is of integers of the same bits: of one group, or as many as this one."""
    return a.is_integer and not a.is_bool and a.bits == b.bits and a.lanes in (lanes, b.lanes)


def dot_name(a: DType, b: DType) -> str:
    """How a processor's dot product of vectors with these elements is called: `u8 s8`."""
    return " ".join(f"{'s' if each.is_signed else 'u'}{each.bits}" for each in (a, b))
