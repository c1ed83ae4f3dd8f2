"""Computes lower bounds of the bytes of plans: the most bytes that are live at one time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush

from tirlite.diag import public
from tirlite.plan.arguments import demand
from tirlite.plan.in_place import Handover, grouped, possible
from tirlite.plan.layout import total_of
from tirlite.plan.order import drawn, samples
from tirlite.plan.problem import Problem, pairs_in_place
from tirlite.plan.request import Interval, Request, most_live
from tirlite.record import record
from tirlite.sizes import Dim, Size, maximum, minimum
from tirlite.sizes.evaluate import Evaluated

_SAMPLES = 8
_FEW = 16
# For at most _SEVERAL stretches, _DRAWN more values of the dims are tried.
_SEVERAL, _DRAWN = 2000, 24


@record
class Peak:
    """The most bytes that are live at one time, and that time; with symbolic sizes, a likely one."""

    size: Size
    time: int


@record
class PaddedPeak:
    """The most bytes that are needed at one time, padding included, and that time."""

    size: int
    time: int


@record
class Stretch:
    """Bytes that are needed over some time, in one of some memories; a negative size is a saving.

    `align` divides their offset.
    """

    live: tuple[Interval, ...]
    size: Size
    memories: tuple[str, ...]
    align: int = 1


@public
def lower_bound(problem: Problem, in_place: Iterable[tuple[str, str]] = ()) -> Size:
    """A lower bound of the bytes of every plan, at each binding: for each memory, the most that is live at one time.

    It is for plans that take the pairs of `in_place`: a pair counts once where both are live. Memories between which
    requests have a choice are taken together. If the problem is contiguous, padding counts that no order of the live
    requests avoids. Symbolic sums that cannot be compared become a maximum; of more than a handful, those that are
    largest at some sample values are kept, so that the bound is valid, but may be less than the peak at other values.
    Cost: O(n log n), times the sums that are kept.
    """
    demand("lower_bound", "problem", problem, "a Problem", fits=isinstance(problem, Problem))
    pairs = set(pairs_in_place(in_place))
    parts = stretches(problem, [h for h in possible(problem) if h.pair in pairs] if pairs else [])
    return _bound(problem, parts, is_padded=True)


def open_bound(problem: Problem) -> Size:
    """A lower bound of the bytes of every plan, whichever pairs it takes in place.

    Each request is the destination, and the source, of at most one pair: it saves the most that one of them could.
    """
    pairs = possible(problem)
    sides = [[(each.destination, each) for each in pairs]]
    if len({each.source.id for each in pairs}) < len(pairs):
        sides.append([(each.source, each) for each in pairs])
    # The padding of two in one place counts once, or not at all.
    whole = stretches(problem, [])
    return maximum(*(_bound(problem, [*whole, *_saved(side)], is_padded=False) for side in sides))


def _saved(side: Iterable[tuple[Request, Handover]]) -> Iterator[Stretch]:
    """The most that each request can save in one of its pairs, as negative stretches."""
    pairs: dict[str, tuple[Request, list[Handover]]] = {}
    for request, pair in side:
        pairs.setdefault(request.id, (request, []))[1].append(pair)
    for request, own in pairs.values():
        live = (min(each.at[0] for each in own), max(each.at[1] for each in own))
        size = maximum(*(minimum(each.destination.size, each.source.size) for each in own))
        yield Stretch((live,), -size, request.memories)


def stretches(problem: Problem, taken: Sequence[Handover]) -> list[Stretch]:
    """The bytes that the requests of a problem need over time with these pairs in place."""
    if not taken:
        return [Stretch(request.live, request.size, request.memories, request.align) for request in problem.requests]
    found = list[Stretch]()
    for group in grouped(problem.requests, taken):
        memories, align = group.memories, group.align  # a group may have very many pieces
        found += [Stretch((interval,), size, memories, align) for interval, size in group.pieces]
    return found


def peak(problem: Problem, requests: Sequence[Request]) -> Peak:
    """The most bytes of some requests of a problem that are live at one time."""
    return _peak(problem.dims, [Stretch(request.live, request.size, request.memories) for request in requests])


def peaks(problem: Problem, in_place: Iterable[tuple[str, str]]) -> dict[str, Peak]:
    """For each memory the most bytes that are live at one time, of requests that can live in no other memory.

    A pair in place counts once where both are live.
    """
    pairs = set(in_place)
    parts = stretches(problem, [h for h in possible(problem) if h.pair in pairs] if pairs else [])
    inside = {name: [part for part in parts if part.memories == (name,)] for name in problem.memories}
    return {name: _peak(problem.dims, own) for name, own in inside.items() if own}


def _bound(problem: Problem, parts: Sequence[Stretch], *, is_padded: bool) -> Size:
    return total_of(_group_bound(problem, memories, parts, is_padded=is_padded) for memories in memory_groups(problem))


def _group_bound(problem: Problem, memories: Sequence[str], parts: Sequence[Stretch], *, is_padded: bool) -> Size:
    inside = set(memories)
    copies = {name: problem.memories[name].copies for name in memories}
    weighed = [part for part in parts if part.memories[0] in inside]
    if any(count != 1 for count in copies.values()):
        weighed = [Stretch(part.live, _weight(part, copies), part.memories) for part in weighed]
    joint = _peak(problem.dims, weighed).size
    if len(memories) == 1:
        pool = problem.memories[memories[0]]
        if is_padded and problem.contiguous and isinstance(joint, int) and isinstance(pool.copies, int):
            within = [part for part in parts if part.memories[0] in inside]
            return max(joint, padded_peak(within, pool.align).size * pool.copies)
        return joint
    bound = [_peak(problem.dims, [p for p in weighed if p.memories == (name,)]).size for name in memories]
    return maximum(joint, total_of(bound))


def _weight(part: Stretch, copies: Mapping[str, Size]) -> Size:
    times = [copies[name] for name in part.memories]
    return part.size * (times[0] if len(times) == 1 else minimum(*times))


def memory_groups(problem: Problem) -> list[list[str]]:
    """The memories in groups: those between which some request has a choice are in one."""
    group = {name: [name] for name in problem.memories}
    for pools in dict.fromkeys(request.pools for request in problem.requests):
        for name in pools[1:]:
            first, other = group[pools[0]], group[name]
            if other is not first:
                first.extend(other)
                group.update((member, first) for member in other)
    return [members for name, members in group.items() if members[0] == name]


def _peak(dims: Sequence[Dim], parts: Sequence[Stretch]) -> Peak:
    lives = [part.live for part in parts]
    sizes = [part.size for part in parts if isinstance(part.size, int)]
    if len(sizes) == len(parts):
        return Peak(*most_live(zip(lives, sizes, strict=True)))
    bindings = samples(dims, _SAMPLES)
    if len(parts) <= _SEVERAL:
        bindings = (*bindings, *drawn(dims, _DRAWN))
    evaluated = Evaluated(bindings)
    value = {size: evaluated.values(size) for size in dict.fromkeys(part.size for part in parts)}
    points = list(maximal_points(lives, [value[part.size] for part in parts]))
    if len(points) > _FEW:
        best = [max(points, key=lambda point: (point[1][i], -point[0])) for i in range(len(bindings))]
        points = list(dict(best).items())[:_FEW]
    times = [time for time, _ in points]
    nominal = max(points, key=lambda point: (point[1][0], -point[0]))[0]
    return Peak(maximum(*_sums_at(times, parts)), nominal)


def padded_peak(parts: Sequence[Stretch], least: int) -> PaddedPeak:
    """The most bytes that one arena needs at one time, padding included; sizes are constant.

    `least` divides all offsets. Stretches whose offsets are multiples of some alignment fill whole multiples of it, in
    any order, all but the topmost.
    """
    aligns = [max(part.align, least) for part in parts]
    peaks = [
        _stepped_peak([part for part, align in zip(parts, aligns, strict=True) if align >= step], step)
        for step in sorted(set(aligns) - {1})
    ]
    return max(peaks, key=lambda each: each.size, default=PaddedPeak(0, 0))


def _stepped_peak(parts: Sequence[Stretch], step: int) -> PaddedPeak:
    """The most that is live of sizes rounded up to `step`, except for the one with the most padding."""
    sizes = [part.size if isinstance(part.size, int) else 0 for part in parts]
    rounded = [-(-size // step) * step for size in sizes]
    slack = [high - low for high, low in zip(rounded, sizes, strict=True)]
    events = [(low, 1, number) for number, part in enumerate(parts) for low, _ in part.live]
    events += [(high, -1, number) for number, part in enumerate(parts) for _, high in part.live]
    is_live = [False] * len(parts)
    slacks: list[tuple[int, int]] = []
    total, best = 0, PaddedPeak(0, 0)
    for time, sign, number in sorted(events):
        is_live[number] = sign > 0
        total += sign * rounded[number]
        if sign < 0:
            continue
        heappush(slacks, (-slack[number], number))
        while not is_live[slacks[0][1]]:
            heappop(slacks)
        if total + slacks[0][0] > best.size:
            best = PaddedPeak(total + slacks[0][0], time)
    return best


def maximal_points(
    lives: Sequence[tuple[Interval, ...]], values: Sequence[Sequence[int]]
) -> Iterator[tuple[int, list[int]]]:
    """(time, sums of the columns of values) for each maximal set of lives that have a time in common."""
    events = [(low, 1, index) for index, live in enumerate(lives) for low, _ in live]
    events += [(high, -1, index) for index, live in enumerate(lives) for _, high in live]
    events.sort()
    sums = [0] * (len(values[0]) if values else 0)
    grown = False
    born = 0
    for time, sign, index in events:
        if sign < 0 and grown:
            yield born, list(sums)
        grown, born = sign > 0, time
        sums = [total + sign * value for total, value in zip(sums, values[index], strict=True)]


def _sums_at(times: Sequence[int], parts: Sequence[Stretch]) -> Iterator[Size]:
    for time in dict.fromkeys(times):
        live = Counter(part.size for part in parts if any(low <= time < high for low, high in part.live))
        yield total_of(size * count for size, count in live.items())
