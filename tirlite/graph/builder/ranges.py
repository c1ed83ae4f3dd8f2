"""Shapes with a -1, and slices with negative ends, in; extents and starts in full out."""

from __future__ import annotations

from tirlite.diag import Span
from tirlite.graph.extents import Extent, Shape, product, size_of
from tirlite.sizes import Proof, Size, ceildiv, maximum, minimum, prove_le

# What people and files write for the end of an axis, whatever its extent.
_FAR = 2**31 - 1


def resolved(shape: Shape, wanted: Shape) -> Shape:
    """`wanted` with its first -1 as the extent that leaves as many elements as `shape` has.

    The inference complains where there is none.
    """
    if -1 not in wanted:
        return wanted
    place = wanted.index(-1)
    others = product((*wanted[:place], *wanted[place + 1 :]))
    left = product(shape)
    return (*wanted[:place], left // others if others != 0 else 0, *wanted[place + 1 :])


def sliced(extent: Size, start: Extent | None, stop: Extent | None, step: int, span: Span | None) -> tuple[Size, Size]:
    """The first index and how many there are, of `start:stop:step` on an axis; None stands for an end."""
    if step == 0:
        return 0, 0
    if step > 0:
        first = 0 if start is None else _clamped(size_of(start, span), 0, extent, extent)
        last = extent if stop is None else _clamped(size_of(stop, span), 0, extent, extent)
        return first, maximum(0, ceildiv(last - first, step))
    first = extent - 1 if start is None else _clamped(size_of(start, span), -1, extent - 1, extent)
    last = -1 if stop is None else _clamped(size_of(stop, span), -1, extent - 1, extent)
    return maximum(0, first), maximum(0, ceildiv(first - last, -step))


def _clamped(index: Size, low: Size, high: Size, extent: Size) -> Size:
    """An index between `low` and `high`; one that is negative counts from the end."""
    if isinstance(index, int) and abs(index) >= _FAR:
        return high if index > 0 else low
    if prove_le(0, index) is Proof.NO:
        index = index + extent
    return maximum(low, minimum(index, high))
