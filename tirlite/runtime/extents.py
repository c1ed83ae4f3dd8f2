"""Raises an error for those extents of a parameter that the shape of an array cannot be checked against."""

from __future__ import annotations

from collections.abc import Mapping

from tirlite.diag import KernelError, Message, Span
from tirlite.ir import Expr, IntImm, Var, walk
from tirlite.ir.size import ARITHMETIC, value_of


class ExtentForm(Message):
    """An extent is not arithmetic on dims, so that the shape of an array cannot be checked against it.

    Example: A parameter whose extent is `tl.i64(gain)`.
    Fix: Make extents of integers, dims and scalar parameters by `+ - * // %`, `min` and `max`.
    """

    code = "extent-form"
    raises = KernelError
    title = "an extent of `{buffer}` contains {kind}"
    label = "declared here"
    help = "an extent is made of integers, dims and scalar parameters by + - * // % min and max"

    buffer: str
    kind: str


def extent_at(extent: Expr, values: Mapping[Var, int]) -> int:
    """The value of an extent that `check_extent` has let pass, where dims and scalars have these."""
    value = value_of(extent, values)
    assert value is not None
    return value


def check_extent(extent: Expr, buffer: str, span: Span | None) -> None:
    """Raises KernelError for an extent that `extent_at` cannot take."""
    for node in walk(extent):
        is_known = type(node) in ARITHMETIC or isinstance(node, Var | IntImm)
        if not (is_known and isinstance(node, Expr) and node.dtype.is_integer):
            raise ExtentForm(buffer, type(node).__name__, span=span).error()
