"""Finds the candidate pairs of a problem that a plan may take in place, and groups requests by these.

The destination of a pair in place has the offset of the source. Both may be live at the handover alone: the stretch of
time that ends the life of the source and begins that of the destination.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tirlite.plan.problem import Problem
from tirlite.plan.request import Interval, Request
from tirlite.record import record
from tirlite.sizes import Size, maximum


@record(guarded=False)
class Handover:
    """A candidate pair, and the stretch of time in which both requests are live."""

    destination: Request
    source: Request
    at: Interval

    @property
    def pair(self) -> tuple[str, str]:
        """(destination id, source id), as in `Problem.in_place`."""
        return self.destination.id, self.source.id


@record(guarded=False)
class Group:
    """Requests at one offset, each in place of the one before; and the bytes in each stretch of time."""

    members: tuple[Request, ...]
    pieces: tuple[tuple[Interval, Size], ...]

    @property
    def live(self) -> tuple[Interval, ...]:
        return tuple(interval for interval, _ in self.pieces)

    @property
    def align(self) -> int:
        return max(request.align for request in self.members)

    @property
    def size(self) -> Size:
        """The most bytes of any stretch."""
        sizes = dict.fromkeys(size for _, size in self.pieces)
        return maximum(*sizes)

    @property
    def fixed(self) -> int | None:
        """The offset that a member demands."""
        return next((request.fixed for request in self.members if request.fixed is not None), None)

    @property
    def memories(self) -> tuple[str, ...]:
        """The memories that all members accept, best first."""
        first, *rest = self.members
        return tuple(name for name in first.memories if all(name in request.memories for request in rest))


def handovers(problem: Problem) -> list[Handover]:
    """The candidate pairs that strategies take, in the order of the problem.

    Both requests prefer the same memory, neither has a fixed offset, and they are live together at a handover alone.
    """
    return [
        each
        for each in possible(problem)
        if {each.destination.fixed, each.source.fixed} == {None}
        and each.destination.memories[0] == each.source.memories[0]
    ]


def possible(problem: Problem) -> list[Handover]:
    """The candidate pairs that any valid plan may take, a superset of `handovers`.

    The two requests have a memory in common, no different fixed offsets, and are live together at a handover alone.
    """
    found = []
    for dst, src in dict.fromkeys(problem.in_place):
        destination, source = problem.by_id[dst], problem.by_id[src]
        at = handover(destination.live, source.live)
        offsets = {destination.fixed, source.fixed} - {None}
        if at is not None and len(offsets) < 2 and any(name in source.memories for name in destination.memories):
            found.append(Handover(destination, source, at))
    return found


def among(candidates: Iterable[Handover], requests: Iterable[Request]) -> list[Handover]:
    """The pairs among the requests of one memory."""
    inside = {request.id for request in requests}
    return [each for each in candidates if each.source.id in inside]


def handover(destination: Sequence[Interval], source: Sequence[Interval]) -> Interval | None:
    """The stretch of time that ends the life of the source and begins that of the destination, if there is one."""
    low, high = destination[0][0], source[-1][1]
    is_shared = source[-1][0] <= low < high <= destination[0][1]
    return (low, high) if is_shared else None


def chosen(candidates: Iterable[Handover], value: Callable[[Size], int]) -> list[Handover]:
    """Pairs that may be taken together, chosen greedily by what they save.

    A request is the source, and the destination, of one at most, and its handovers do not overlap.
    """
    ranked = sorted(candidates, key=lambda h: -min(value(h.destination.size), value(h.source.size)))
    as_source: dict[str, Handover] = {}
    as_destination: dict[str, Handover] = {}
    for each in ranked:
        dst, src = each.destination.id, each.source.id
        before, after = as_destination.get(src), as_source.get(dst)
        if dst in as_destination or src in as_source:
            continue
        if (before is None or before.at[1] <= each.at[0]) and (after is None or each.at[1] <= after.at[0]):
            as_source[src] = as_destination[dst] = each
    return list(as_source.values())


def grouped(requests: Sequence[Request], taken: Sequence[Handover]) -> list[Group]:
    """The requests in groups, each in order of time. Each is the source, and the destination, of one pair at most."""
    to_source = {each.destination.id: each for each in taken}
    to_destination = {each.source.id: each for each in taken}
    most: dict[tuple[Size, Size], Size] = {}  # the same few sizes are compared again and again
    groups = []
    for request in requests:
        if request.id in to_source:
            continue
        members, steps = [request], []
        while (step := to_destination.get(request.id)) is not None:
            request = step.destination
            steps.append(step)
            members.append(request)
        groups.append(Group(tuple(members), tuple(_pieces(members, steps, most))))
    return groups


def _pieces(
    members: Sequence[Request], steps: Sequence[Handover], most: dict[tuple[Size, Size], Size]
) -> list[tuple[Interval, Size]]:
    pieces: list[tuple[Interval, Size]] = []
    last = len(steps)
    for number, request in enumerate(members):
        born = steps[number - 1].at[1] if number else request.live[0][0]
        dies = steps[number].at[0] if number < last else request.live[-1][1]
        for low, high in request.live:
            begin, end = low if low > born else born, high if high < dies else dies
            if begin < end:
                pieces.append(((begin, end), request.size))
        if number < last:
            pair = request.size, steps[number].destination.size
            if pair not in most:
                most[pair] = maximum(*pair)
            pieces.append((steps[number].at, most[pair]))
    return pieces
