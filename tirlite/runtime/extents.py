"""Raises an error for those extents of a parameter that the shape of an array cannot be checked against."""

from __future__ import annotations

from tirlite.analysis.exact_value import stranger_in
from tirlite.diag import KernelError, Message, Span
from tirlite.ir import Expr


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


def check_extent(extent: Expr, buffer: str, span: Span | None) -> None:
    """Raises KernelError for an extent that `value_of` cannot take."""
    stranger = stranger_in(extent)
    if stranger is not None:
        raise ExtentForm(buffer, type(stranger).__name__, span=span).error()
