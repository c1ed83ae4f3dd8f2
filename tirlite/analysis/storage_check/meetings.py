"""Finds the pairs of residents that may meet: live at the same time, in bytes that are not proved disjoint.

If each ends before the next one begins, there is nothing to compare. Otherwise one sweep goes over time. The residents
that are live form a chain by their bytes, each proved to end where the next begins or before, so a new one is compared
only with its neighbours in the chain. Those that do not fit into the chain are kept in a list, and compared with each
new one, until the residents in their way have ended: a resident that takes over the bytes of another waits only for
that other's end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, takewhile

from tirlite.analysis.storage_check.resident import Bytes, Flow, Happening, ProgramPart, Resident
from tirlite.record import replace
from tirlite.sizes import Dim, Size, dims_of, evaluate, fails_at_a_sample

AtMost = Callable[[Size, Size], bool]
_Key = tuple[int, int, int]


def meetings(places: Sequence[Bytes], hulls: Sequence[Hull | None], at_most: AtMost) -> Iterator[tuple[int, int]]:
    """The pairs of indices of residents that may meet."""
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
    """The live residents: a chain by bytes, and others beside it, each waiting for one that is in its way."""

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


Hull = tuple[int, int]


def hull_of(resident: Resident, outermost: dict[tuple[ProgramPart, ProgramPart], ProgramPart | None]) -> Hull | None:
    """From the first to the last position; None for what is never touched.

    What happens in a loop inside the body of the Allocate counts as all of that loop. A buffer whose address is handed
    on is in use from its first use to the end of its body, and one that is volatile from the begin on. What several
    threads use counts from barrier to barrier, since they run at no fixed pace. `outermost` remembers the outermost
    loop of each region inside each body.
    """
    home = resident.region
    touches = resident.happenings
    if not touches:
        return None
    hull = (_begin(resident), home.end) if resident.opaque is not None else _touched(home, touches, outermost)
    if not resident.is_seen_by_several:
        return hull
    resident.stretches = stretches_around(home, hull)
    return min(resident.stretches)[0], max(high for _, high in resident.stretches)


def _begin(resident: Resident) -> int:
    """From where on anything may happen to one whose address is handed on, at the level of its Allocate."""
    home, touches = resident.region, resident.happenings
    if resident.buffer.volatile or resident.is_seen_by_several or not touches:
        return resident.position
    region = touches[0].region
    if region is home:
        return touches[0].position
    while region.parent is not home:
        assert region.parent is not None
        region = region.parent
    return region.begin


def _touched(
    home: ProgramPart, touches: list[Happening], outermost: dict[tuple[ProgramPart, ProgramPart], ProgramPart | None]
) -> Hull:
    low, high = touches[0].position, touches[-1].position
    for each in touches:
        region = each.region
        if region is home:
            continue
        if (region, home) not in outermost:
            outermost[region, home] = _outermost_loop(region, home)
        loop = outermost[region, home]
        if loop is not None:
            low, high = min(low, loop.begin), max(high, loop.end)
    return low, high


def is_whole(resident: Resident) -> bool:
    """Whether it takes its hull wholly, so that nothing else may be stored there meanwhile."""
    return resident.opaque is not None or resident.is_seen_by_several


def is_elsewhere(one: Resident, other: Resident) -> bool:
    """Whether nothing happens to `other` in the body that `one` takes wholly, if it does; False for threads."""
    if not is_whole(one):
        return True
    low, high = _begin(one), one.region.end
    positions = [other.position, *(each.position for each in other.happenings)]
    return not one.is_seen_by_several and not any(low <= each <= high for each in positions)


def used_all_along(resident: Resident) -> Resident:
    """A resident whose address is handed on, as if it was written first and read last there."""
    if resident.opaque is None:
        return resident
    last = resident.happenings[-1].position if resident.happenings else resident.position
    begin, end = (
        Happening(position, writes, resident.region, resident.stmt, resident.stmt)
        for position, writes in ((_begin(resident), True), (last, False))
    )
    return replace(resident, happenings=[begin, *resident.happenings, end])


def may_meet(one: Resident, other: Resident) -> bool:
    """Whether threads may use both at one time; each has stretches if several threads use it."""
    if not one.stretches or not other.stretches:
        return True
    return any(a[0] <= b[1] and b[0] <= a[1] for a in one.stretches for b in other.stretches)


def stretches_around(home: ProgramPart, hull: Hull) -> list[Hull]:
    """All that may run in one thread while another one is within `hull`, which lies in the body `home`.

    A thread gets no further than to the next barrier, be it in the next iteration of a loop, and is no further behind
    than the last one.
    """
    found = [hull]
    forwards, backwards = True, True
    low, high = hull
    region: ProgramPart | None = home
    while region is not None and (forwards or backwards):
        ahead = [each for each in region.barriers if each > high]
        behind = [each for each in region.barriers if each < low]
        is_last = region is home.attached
        if forwards:
            found.append((high, ahead[0] - 1 if ahead else region.end))
            if not ahead and not is_last and region.flow is Flow.LOOP:
                found.append((region.begin, region.barriers[0] - 1 if region.barriers else region.end))
        if backwards:
            found.append((behind[-1] + 1 if behind else region.begin, low))
            if not behind and not is_last and region.flow is Flow.LOOP:
                found.append((region.barriers[-1] + 1 if region.barriers else region.begin, region.end))
        forwards, backwards = forwards and not ahead, backwards and not behind
        low, high = region.begin, region.end
        region = None if is_last else region.parent
    return found


def _outermost_loop(region: ProgramPart, home: ProgramPart) -> ProgramPart | None:
    inside = takewhile(lambda each: each is not home, region.around())
    loops = [each for each in inside if each.flow is Flow.LOOP]
    return loops[-1] if loops else None
