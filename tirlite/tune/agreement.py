"""Tells where two results of one kernel disagree by more than schedules may make of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tirlite.ir import AttrKey, AttrStmt, For, ForKind, PrimFunc, statements_of
from tirlite.ir.callees import closure_of

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]


def may_regroup(func: PrimFunc) -> bool:
    """Whether schedules may change last digits: reductions are said, or permissions given, here or in what it calls."""
    for each in closure_of(func):
        if any(loop.kind is ForKind.REDUCE for loop in statements_of(each.body, For)):
            return True
        if any(attr.key is AttrKey.ALLOW for attr in statements_of(each.body, AttrStmt)):
            return True
    return False


def disagreement(name: str, expected: Array, found: Array, *, may_differ: bool) -> str:
    """The first element that is another one, with both values; empty where all agree.

    Those are the same bits, but for the payload of nan. With `may_differ` floats may be off by the square root of the
    machine epsilon times the largest of all, and zeros have any sign: a bound on mistakes, not on rounding.
    """
    wrong = ~_same_bits(expected, found)
    if may_differ and wrong.any() and np.issubdtype(expected.dtype, np.inexact):
        wrong &= ~_close(expected, found)
    if not wrong.any():
        return ""
    place = tuple(int(each) for each in np.argwhere(wrong)[0])
    index = ", ".join(map(str, place))
    return f"{name}[{index}] is {found[place]} in place of {expected[place]}"


def _same_bits(expected: Array, found: Array) -> npt.NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        both_nan = (expected != expected) & (found != found)
    bits = f"u{expected.dtype.itemsize}"
    return np.asarray((_plain(expected).view(bits) == _plain(found).view(bits)) | both_nan)


def _plain(array: Array) -> Array:
    # A view as another type wants neighbours along the last axis, which a number alone has not.
    return np.ascontiguousarray(array).reshape(array.shape)


def _close(expected: Array, found: Array) -> npt.NDArray[np.bool_]:
    with np.errstate(invalid="ignore", over="ignore"):
        exact, other = expected.astype(np.float64), found.astype(np.float64)
        finite = np.abs(exact[np.isfinite(exact)])
        most = float(finite.max()) if finite.size else 0.0
        bound = float(np.finfo(expected.dtype).eps) ** 0.5 * most
        return np.asarray((exact == other) | (np.abs(exact - other) <= bound))
