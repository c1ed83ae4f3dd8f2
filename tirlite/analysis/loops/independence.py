"""Decides whether the iterations of a loop are independent.

The rows of a tile are accesses whose indices differ only by constants. A proof for two such rows, with all their
distances, covers each pair of accesses, of which there are many more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement, islice

from tirlite.analysis.access import Allocation, Touch
from tirlite.analysis.addresses import Addresses
from tirlite.analysis.integers.definitions import Loop
from tirlite.analysis.loops.dependence import Pair, carried_of, lie_apart, pairs_in, writes
from tirlite.analysis.regions import regions_around
from tirlite.groups import by_key
from tirlite.ir import For, Load, Store, While
from tirlite.record import record
from tirlite.sizes import Size, substitute
from tirlite.sizes.poly import terms_of
from tirlite.sizes.unknown import Unknown

# This many pairs of accesses of one loop are looked at, and so few by themselves.
_MOST_PAIRS, _FEW_PAIRS = 1024, 4


def is_independent(loop: Loop, touches: Mapping[Allocation, Sequence[Touch]], addresses: Addresses) -> bool:
    """Whether no iteration may touch what another one writes; False where there are too many pairs of accesses."""
    pairs: dict[Allocation, list[tuple[Touch, Touch]]] = {}
    left = _MOST_PAIRS
    for allocation, each in touches.items():
        pairs[allocation] = found = [*islice(pairs_in(loop, {allocation: each}, addresses), left + 1)]
        left -= len(found)
        if left < 0:
            return False
    return not any(_may_conflict(loop, touches[each], found, addresses) for each, found in pairs.items() if found)


def _may_conflict(
    loop: Loop, touches: Sequence[Touch], pairs: Sequence[tuple[Touch, Touch]], addresses: Addresses
) -> bool:
    """Whether some pair of accesses to one buffer may touch an element in two iterations."""
    if len(pairs) > _FEW_PAIRS and isinstance(loop, For):
        pairs = [pair for pair in pairs if not lie_apart(addresses, *pair, addresses.space.size(loop.var))]
        if len(pairs) > _FEW_PAIRS and _rows_lie_apart(loop, touches, addresses):
            return False
    return next(carried_of(loop, pairs, addresses), None) is not None


@record(eq=False)
class _Row:
    """Accesses whose indices differ by numbers alone, and by the loops in the body that count for each: the first, its
    indices, and along each axis between which ends the others lie from it."""

    first: Touch
    indices: tuple[Size, ...]
    ends: tuple[tuple[int, int], ...]


def _rows_lie_apart(loop: For, touches: Sequence[Touch], addresses: Addresses) -> bool:
    """Whether rows of accesses to one buffer, each with all its distances, are proved not to meet in two iterations."""
    rows = _rows(loop, touches, addresses)
    pairs = combinations_with_replacement(rows, 2)
    return bool(rows) and not any(
        _may_meet(loop, one, other, addresses) for one, other in pairs if writes(one.first) or writes(other.first)
    )


def _rows(loop: For, touches: Sequence[Touch], addresses: Addresses) -> list[_Row]:
    """The rows of accesses to one buffer; none where that is unknown, or only few are in a row."""
    told: list[tuple[tuple[object, ...], tuple[Touch, tuple[int, ...]]]] = []
    counters: dict[object, Unknown] = {}
    for touch in touches:
        inside = _loops_inside(loop, touch)
        if inside is None or not isinstance(touch.node, Load | Store):
            return []
        address = addresses.of(touch.node)
        if address.indices != address.wrapped:
            return []
        # In two iterations of the loop around them, the counters of loops inside are any two numbers.
        changes = {}
        for depth, inner in enumerate(inside):
            counter = addresses.space.counter(inner)
            key = depth, counter.low, counter.high
            if key not in counters:
                counters[key] = addresses.space.unknown("a counter", counter.low, counter.high)
            changes[counter] = counters[key] + 0
        numbers = tuple(terms_of(index).get((), 0) for index in address.indices)
        rest = tuple(substitute(index, changes) - n for index, n in zip(address.indices, numbers, strict=True))
        told.append(((touch.kind, address.layout, rest), (touch, numbers)))
    rows = by_key(told)
    if 2 * len(rows) > len({(key, numbers) for key, (_, numbers) in told}):
        return []
    found = []
    for each in rows.values():
        (first, numbers), axes = each[0], zip(*(numbers for _, numbers in each), strict=True)
        ends = tuple((min(axis) - number, max(axis) - number) for axis, number in zip(axes, numbers, strict=True))
        assert isinstance(first.node, Load | Store)
        found.append(_Row(first, addresses.of(first.node).indices, ends))
    return found


def _loops_inside(loop: For, touch: Touch) -> list[For] | None:
    """The loops around an access inside `loop`, the innermost first; None where one of them has no counter."""
    found: list[For] = []
    for region in regions_around(touch.region):
        if region.composite is loop:
            return found
        if isinstance(region.composite, While):
            return None
        found += [region.composite] if isinstance(region.composite, For) else []
    return None


def _may_meet(loop: For, one: _Row, other: _Row, addresses: Addresses) -> bool:
    """Whether an access of one row may touch in an iteration what one of the other touches in another iteration."""
    a, b = one.first.node, other.first.node
    assert isinstance(a, Load | Store)
    assert isinstance(b, Load | Store)
    if not addresses.layout(a.buffer).same_grid(addresses.layout(b.buffer)):
        return True
    body = next(region for region in regions_around(one.first.region) if region.composite is loop)
    assert body.parent is not None
    pair = Pair(addresses, one.first, other.first, body.parent)
    if not pair.differences:  # an access by threads, or of what has no axes
        return True
    axes = zip(one.indices, other.indices, one.ends, other.ends, strict=True)
    pair.differences = [(mine, its, (low - most, high - least)) for mine, its, (least, most), (low, high) in axes]
    return next(pair.carried(0), None) is not None
