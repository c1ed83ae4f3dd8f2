"""Residents with bytes and hulls in, the pairs that may meet out: at one time, and not proved to lie apart.

Time is swept once. Those that are there stand in a chain by their bytes, each proved to end where the next begins or
before, so a newcomer that fits into the chain is compared with its neighbours only. What does not fit is kept beside
the chain, and compared with each newcomer.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence

from tirlite.analysis.storage_check.hulls import Hull
from tirlite.analysis.storage_check.resident import Bytes
from tirlite.sizes import Dim, Size, dims_of, evaluate, fails_at_a_sample

AtMost = Callable[[Size, Size], bool]


def meetings(places: Sequence[Bytes], hulls: Sequence[Hull | None], at_most: AtMost) -> Iterator[tuple[int, int]]:
    """The pairs of indices."""
    value = _ordering(places)
    keys = [(value(place.low), value(place.high), index) for index, place in enumerate(places)]
    times: list[tuple[int, bool, int]] = []
    for index, hull in enumerate(hulls):
        if hull is not None and places[index].low != places[index].high:
            times += ((hull[0], True, index), (hull[1] + 1, False, index))
    chain: list[tuple[int, int, int]] = []
    beside: dict[int, None] = {}

    def apart(one: int, other: int) -> bool:
        a, b = places[one], places[other]
        return at_most(a.high, b.low) or at_most(b.high, a.low)

    for _, born, index in sorted(times):
        place = bisect_left(chain, keys[index])
        if not born:
            if index in beside:
                del beside[index]
            else:
                del chain[place]
            continue
        left = chain[place - 1][2] if place else None
        right = chain[place][2] if place < len(chain) else None
        here = places[index]
        fits = (left is None or at_most(places[left].high, here.low)) and (
            right is None or at_most(here.high, places[right].low)
        )
        rivals = [*beside] if fits else [*beside, *(other for _, _, other in chain)]
        yield from ((other, index) for other in rivals if not apart(other, index))
        if fits:
            insort(chain, keys[index])
        else:
            beside[index] = None


def seem_apart(one: Bytes, other: Bytes) -> bool:
    """Whether one of the two ends before the other begins at all samples of the dims."""
    return not fails_at_a_sample(one.high, other.low) or not fails_at_a_sample(other.high, one.low)


def unlisted(
    entries: Sequence[int], hulls: Sequence[Hull | None], rows: Sequence[tuple[int, ...]]
) -> Iterator[tuple[int, int]]:
    """The pairs of indices that are there at one time, at entries of a plan that no row lists together."""
    listed: dict[int, set[int]] = {entry: set() for entry in entries}
    for number, row in enumerate(rows):
        for entry in row:
            if entry in listed:
                listed[entry].add(number)
    births = sorted((hull[0], hull[1], index) for index, hull in enumerate(hulls) if hull is not None)
    there: list[tuple[int, int]] = []
    for low, high, index in births:
        there = [each for each in there if each[0] >= low]
        mine = listed[entries[index]]
        yield from (
            (other, index)
            for _, other in there
            if entries[other] == entries[index] or mine.isdisjoint(listed[entries[other]])
        )
        there.append((high, index))


def _ordering(places: Sequence[Bytes]) -> Callable[[Size], int]:
    """The value of sizes at one binding: the order of symbolic offsets to be tried first."""
    sizes = dict.fromkeys(s for place in places for s in (place.low, place.high) if not isinstance(s, int))
    binding: dict[Dim, int] = {}
    for dim in dict.fromkeys(dim for size in sizes for dim in dims_of(size)):
        binding[dim] = dim.nth(1000 // dim.multiple_of)
    values = {size: evaluate(size, binding) for size in sizes}
    return lambda size: size if isinstance(size, int) else values[size]
