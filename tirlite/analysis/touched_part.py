"""Finds the part of a temporary that one execution of its body touches: along each axis a start and an extent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tirlite.analysis.access import Allocation, Region, Touch
from tirlite.analysis.addresses import Addresses
from tirlite.ir import Load, Store
from tirlite.record import record
from tirlite.sizes import Size, maximum, minimum
from tirlite.sizes.poly import Atom
from tirlite.sizes.unknown import ends_of, linear, multiple, unknowns_in


@record
class Span:
    """All indices along one axis: from `start`, which stands still while the body runs, so many."""

    start: Size
    extent: Size


def touched_part(allocation: Allocation, addresses: Addresses) -> tuple[Span | None, ...]:
    """For each axis what is touched while the body of the allocation runs once; None where no bounds are known.

    What conditions around an access leave out counts as touched. An extent may be 0 or less where a loop never runs.
    """
    inner = _loops_inside(allocation)
    return tuple(_span(axis, allocation.touches, inner, addresses) for axis in range(len(allocation.buffer.shape)))


def _span(axis: int, touches: Sequence[Touch], inner: set[object], addresses: Addresses) -> Span | None:
    fixed: Size | None = None
    low: Size | None = None
    high: Size | None = None
    for index in _indices(axis, touches, addresses):
        parts = _parted(index, inner)
        if parts is None or (fixed is not None and parts[0] != fixed):
            return None
        fixed, least, most = parts
        low = least if low is None else minimum(low, least)
        high = most if high is None else maximum(high, most)
    if fixed is None or low is None or high is None:
        return None
    return Span(fixed + low, high - low + 1)


def _indices(axis: int, touches: Sequence[Touch], addresses: Addresses) -> Iterator[Size]:
    for touch in touches:
        assert isinstance(touch.node, Load | Store)
        yield addresses.of(touch.node).indices[axis]


def _parted(index: Size, inner: set[object]) -> tuple[Size, Size, Size] | None:
    """The part of an index that stands still while the body runs, and the ends of the rest."""
    parts = linear(index)
    if parts is None:
        return None
    fixed: Size = 0
    low = high = parts.constant
    for atom, coefficient in parts.terms.items():
        if is_fixed(atom, inner):
            fixed = fixed + coefficient * atom
            continue
        least, most = multiple(ends_of(atom), coefficient)
        if least is None or most is None:
            return None
        low, high = low + least, high + most
    return fixed, low, high


def is_fixed(atom: Atom, inner: set[object]) -> bool:
    """Whether an atom keeps its value in one execution of a body, of whose loops `inner` are all."""
    return all(each.steady and each.owner not in inner for each in unknowns_in(atom + 0))


def _loops_inside(allocation: Allocation) -> set[object]:
    """The loops around a touch inside the body of the allocation."""
    found: set[object] = set()
    done: set[Region] = set()
    for touch in allocation.touches:
        region: Region | None = touch.region
        while region is not None and region is not allocation.home and region not in done:
            done.add(region)
            found.add(region.composite)
            region = region.parent
    return found
