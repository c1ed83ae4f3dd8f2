"""The lower bound: what lives at one time needs room at that time. A problem in, bytes that no plan can beat out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tirlite.plan.layout import total_of
from tirlite.plan.problem import Problem
from tirlite.plan.request import Request
from tirlite.plan.samples import samples
from tirlite.sizes import Size, evaluate, maximum, minimum

_SAMPLES = 8
_FEW = 16


@dataclass(frozen=True, slots=True)
class Peak:
    """The most bytes that are live at one point, and one such point where that is decided."""

    size: Size
    time: int


def lower_bound(problem: Problem) -> Size:
    """Bytes that every plan needs, at each binding: the largest sum of sizes live at one point, for each memory.

    Where requests have a choice of memories, those memories are looked at together. Symbolic sums that cannot be
    compared make a maximum; of more than a handful those that are largest at some sample values are taken, so that
    the bound stays true but may be less than the peak elsewhere. Cost: O(n log n), times the sums that are kept.
    """
    return total_of(_group_bound(problem, memories) for memories in _groups(problem))


def peak(problem: Problem, memory: str) -> Peak:
    """The most bytes that requests of one memory, the only one or the first that they name, need at one point."""
    requests = [request for request in problem.requests if request.memories[0] == memory]
    return _peak(problem, requests, [request.size for request in requests])


def _group_bound(problem: Problem, memories: Sequence[str]) -> Size:
    inside = set(memories)
    requests = [request for request in problem.requests if request.memories[0] in inside]
    copies = {name: problem.memories[name].copies for name in memories}
    weights = [_weight(request, copies) for request in requests]
    joint = _peak(problem, requests, weights).size
    if len(memories) == 1:
        return joint
    bound = []
    for name in memories:
        only = [index for index, request in enumerate(requests) if request.memories == (name,)]
        bound.append(_peak(problem, [requests[i] for i in only], [weights[i] for i in only]).size)
    return maximum(joint, total_of(bound))


def _weight(request: Request, copies: Mapping[str, Size]) -> Size:
    times = [copies[name] for name in request.memories]
    if all(count == 1 for count in times):
        return request.size
    return request.size * (times[0] if len(times) == 1 else minimum(*times))


def _groups(problem: Problem) -> list[list[str]]:
    """The memories, those together between which some request has a choice."""
    group = {name: [name] for name in problem.memories}
    for request in problem.requests:
        first = group[request.memories[0]]
        for name in request.memories[1:]:
            other = group[name]
            if other is not first:
                first.extend(other)
                group.update((member, first) for member in other)
    return [members for name, members in group.items() if members[0] == name]


def _peak(problem: Problem, requests: Sequence[Request], sizes: Sequence[Size]) -> Peak:
    if all(isinstance(size, int) for size in sizes):
        columns = [[size] for size in sizes if isinstance(size, int)]
        total, time = max(((sums[0], -time) for time, sums in maximal_points(requests, columns)), default=(0, 0))
        return Peak(total, -time)
    bindings = samples(problem.dims, _SAMPLES)
    value = {size: [evaluate(size, binding) for binding in bindings] for size in dict.fromkeys(sizes)}
    points = list(maximal_points(requests, [value[size] for size in sizes]))
    if len(points) > _FEW:
        best = [max(points, key=lambda point: (point[1][i], -point[0])) for i in range(len(bindings))]
        points = list(dict(best).items())
    times = [time for time, _ in points]
    nominal = max(points, key=lambda point: (point[1][0], -point[0]))[0]
    return Peak(maximum(*_sums_at(times, requests, sizes)), nominal)


def maximal_points(requests: Sequence[Request], values: Sequence[Sequence[int]]) -> Iterator[tuple[int, list[int]]]:
    """(time, sum of each column of the values live then) for each set of live requests that no other contains."""
    events = [(low, 1, index) for index, request in enumerate(requests) for low, _ in request.live]
    events += [(high, -1, index) for index, request in enumerate(requests) for _, high in request.live]
    events.sort()
    sums = [0] * (len(values[0]) if values else 0)
    grown = False
    born = 0
    for time, sign, index in events:
        if sign < 0 and grown:
            yield born, list(sums)
        grown, born = sign > 0, time
        sums = [total + sign * value for total, value in zip(sums, values[index], strict=True)]


def _sums_at(times: Sequence[int], requests: Sequence[Request], sizes: Sequence[Size]) -> Iterator[Size]:
    for time in dict.fromkeys(times):
        live = Counter(
            size
            for request, size in zip(requests, sizes, strict=True)
            if any(low <= time < high for low, high in request.live)
        )
        yield total_of(size * count for size, count in live.items())
