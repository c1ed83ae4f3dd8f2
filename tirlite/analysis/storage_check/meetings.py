"""Finds the pairs of residents that may meet, by their bytes and hulls: at one time, and not proved to lie apart.

Where each is gone before the next one comes, there is nothing to compare. Else time is swept once. Those that are there
stand in a chain by their bytes, each proved to end where the next begins or before, so a newcomer is compared with its
neighbours in the chain only. What does not fit into the chain is kept beside it, and compared with each newcomer, until
what is in its way is gone: what takes over the bytes of another waits for no more than that other's end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from tirlite.analysis.storage_check.hulls import Hull
from tirlite.analysis.storage_check.resident import Bytes
from tirlite.sizes import Dim, Size, dims_of, evaluate, fails_at_a_sample

AtMost = Callable[[Size, Size], bool]
_Key = tuple[int, int, int]


def meetings(places: Sequence[Bytes], hulls: Sequence[Hull | None], at_most: AtMost) -> Iterator[tuple[int, int]]:
    """The pairs of indices."""
    if _one_after_another(hulls):
        return
    value = _ordering(places)
    keys = [(value(place.low), value(place.high), index) for index, place in enumerate(places)]
    times: list[tuple[int, bool, int]] = []
    for index, hull in enumerate(hulls):
        if hull is not None and places[index].low != places[index].high:
            times += ((hull[0], True, index), (hull[1] + 1, False, index))
    there = _There(places, keys, at_most)
    for _, born, index in sorted(times):
        if born:
            yield from ((other, index) for other in there.met_by(index))
            there.add(index)
        else:
            there.remove(index)


def _one_after_another(hulls: Sequence[Hull | None]) -> bool:
    return all(last < first for (_, last), (first, _) in pairwise(sorted(filter(None, hulls))))


class _There:
    """What is there: a chain by bytes, and those that stand beside it, each waiting for one that is in its way."""

    def __init__(self, places: Sequence[Bytes], keys: Sequence[_Key], at_most: AtMost) -> None:
        self.places, self.keys, self.at_most = places, keys, at_most
        self.chain: list[_Key] = []
        self.beside: dict[int, None] = {}
        self.waiting: dict[int, list[int]] = {}  # by the member of the chain that they wait for

    def met_by(self, index: int) -> list[int]:
        """Those that are not proved to lie apart from a newcomer.

        Once one of the chain is proved to end before the newcomer, all those before it do, and so to the other side.
        """
        here, places = self.places[index], self.places
        first = last = bisect_left(self.chain, self.keys[index])
        while first and not self.at_most(places[self.chain[first - 1][2]].high, here.low):
            first -= 1
        while last < len(self.chain) and not self.at_most(here.high, places[self.chain[last][2]].low):
            last += 1
        rivals = [*self.beside, *(other for _, _, other in self.chain[first:last])]
        return [other for other in rivals if not self._apart(other, index)]

    def add(self, index: int) -> None:
        here, place = self.places[index], bisect_left(self.chain, self.keys[index])
        before = self.chain[place - 1][2] if place else None
        behind = self.chain[place][2] if place < len(self.chain) else None
        if before is not None and not self.at_most(self.places[before].high, here.low):
            self._wait(index, before)
        elif behind is not None and not self.at_most(here.high, self.places[behind].low):
            self._wait(index, behind)
        else:
            self.chain.insert(place, self.keys[index])

    def remove(self, index: int) -> None:
        """Takes one away; those that waited for it try to join the chain, or wait for another."""
        if index in self.beside:
            del self.beside[index]
            return
        del self.chain[bisect_left(self.chain, self.keys[index])]
        for each in self.waiting.pop(index, ()):
            if each in self.beside:
                del self.beside[each]
                self.add(each)

    def _wait(self, index: int, other: int) -> None:
        self.beside[index] = None
        self.waiting.setdefault(other, []).append(index)

    def _apart(self, one: int, other: int) -> bool:
        a, b = self.places[one], self.places[other]
        return self.at_most(a.high, b.low) or self.at_most(b.high, a.low)


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
