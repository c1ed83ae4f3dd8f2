"""Masks of accesses: `x[tl.masked(i, on)]` touches the elements at those lanes of `i` that are on, and no others."""

from __future__ import annotations

from tirlite.ir.checked import bare
from tirlite.ir.dtype import DType
from tirlite.ir.expr import Call, Expr
from tirlite.ir.op import Op


def masked(index: Expr, on: Expr) -> Expr:
    """An index of several lanes, of which those that are not `on` access nothing. A load gives 0 there."""
    return Call(index.dtype, Op.MASKED, (index, on))


def mask_of(indices: tuple[Expr, ...]) -> Expr | None:
    """Which lanes of an access are on; None where all are."""
    last = bare(indices[-1]) if indices else None
    return last.args[1] if type(last) is Call and last.op is Op.MASKED else None


def unmasked(index: Expr) -> Expr:
    """An index without its mask, and without a mark that it is checked."""
    inner = bare(index)
    return inner.args[0] if type(inner) is Call and inner.op is Op.MASKED else inner


def fits_mask(index: DType, on: DType) -> bool:
    """Whether there is a bool for each lane of an index, of which there are several."""
    return index.lanes > 1 and on.is_bool and on.lanes == index.lanes
