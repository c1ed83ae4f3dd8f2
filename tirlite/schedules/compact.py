"""Cuts temporaries down to the part that is touched under their allocation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tirlite.analysis.access import Allocation, Touch
from tirlite.analysis.addresses import Addresses
from tirlite.analysis.facts import Facts
from tirlite.analysis.regions import regions_between
from tirlite.ir import Broadcast, Expr, Load, Ramp, Store, Sub
from tirlite.record import record, replace
from tirlite.rewrite.access_rewrite import Accesses, Reindex
from tirlite.rewrite.affine_exprs import index_expr
from tirlite.sizes import Size, is_at_most, maximum, minimum
from tirlite.sizes.poly import Atom
from tirlite.sizes.unknown import ends_of, is_nonnegative, linear, multiple, unknowns_in

# So many elements less gain nothing for a symbolic extent.
_LITTLE = 64
# A constant from this on is not a tile in place of what is symbolic: it stems from the type of an index.
MUCH = 1 << 15


def compacted(allocations: Iterable[Allocation], facts: Facts) -> Accesses:
    """What becomes of these temporaries: as many elements as one execution of the body around the allocation touches.

    Along an axis, the least index becomes 0, if all indices move alike with the loops around the body. An axis is left
    as it is where the new extent is not proved to be less, or a symbolic one is less by a constant alone: buffers of
    one shape share storage better.
    """
    accesses = Accesses()
    for allocation in allocations:
        spans = _worthwhile(allocation, facts)
        if any(spans):
            _compact(allocation, spans, facts, accesses)
    return accesses


def _worthwhile(allocation: Allocation, facts: Facts) -> list[Span | None]:
    spans: list[Span | None] = []
    for span, extent in zip(touched_part(allocation, facts.addresses), allocation.buffer.shape, strict=True):
        size = facts.space.extents.size(extent)
        is_less = span is not None and _is_less(span.extent, size)
        spans.append(span if is_less else None)
    return spans


def _is_less(new: Size, old: Size | None) -> bool:
    if isinstance(old, int):
        return is_at_most(new + 1, old)
    if isinstance(new, int) or old is None:
        return isinstance(new, int) and new < MUCH
    # Not `prove_lt`: where a dim is small, both may be equal.
    return is_at_most(new, old) and not is_at_most(old, new + _LITTLE)


def _compact(allocation: Allocation, spans: list[Span | None], facts: Facts, accesses: Accesses) -> None:
    old = allocation.buffer
    shape = tuple(
        extent if span is None else facts.space.extents.expr(_counted(span.extent))
        for span, extent in zip(spans, old.shape, strict=True)
    )
    changed: dict[Load | Store, dict[int, Reindex]] = {}
    for touch in allocation.touches:
        node = touch.node
        assert isinstance(node, Load | Store)
        for axis, span in enumerate(spans):
            if span is not None:
                index = _moved(node, axis, span, facts)
                if index is None:
                    return
                changed.setdefault(node, {})[axis] = index
    accesses.reshape(old, replace(old, shape=shape), changed)


def _counted(extent: Size) -> Size:
    """An extent as one may declare it: not below 0, and where nothing is touched for sure, one element."""
    if isinstance(extent, int):
        return max(extent, 1)
    return extent if is_nonnegative(extent) else maximum(extent, 0)


def _moved(node: Load | Store, axis: int, span: Span, facts: Facts) -> Reindex | None:
    """What makes of the index of an access along an axis that index less the start."""
    if span.start == 0:
        return lambda index: index
    if node.indices[axis].dtype.lanes == 1:
        moved = index_expr(facts.addresses.of(node).indices[axis] - span.start, facts.space)
        if moved is not None:
            return lambda index: moved
    start = index_expr(span.start, facts.space)
    return None if start is None else lambda index: _less(index, start)


def _less(index: Expr, start: Expr) -> Expr:
    if isinstance(index, Ramp):
        return Ramp(Sub(index.base, start), index.stride, index.lanes)
    return Sub(index, start if index.dtype.lanes == 1 else Broadcast(start, index.dtype.lanes))


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
    regions = {touch.region for touch in allocation.touches}
    return {each.composite for region in regions for each in regions_between(region, allocation.home)}
