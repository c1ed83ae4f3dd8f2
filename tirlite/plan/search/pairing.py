"""Requests of one arena and pairs that they may take in place in; the lowest arena over all choices of pairs out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from tirlite.plan.in_place import Group, Handover, grouped
from tirlite.plan.request import Interval, Request
from tirlite.plan.search.engine import Engine
from tirlite.plan.search.item import Item
from tirlite.plan.search.limits import Limits
from tirlite.plan.search.minimise import minimise
from tirlite.record import record

# A choice costs as much as so many nodes of a search, and one more for each of so many requests.
_LEAST, _PER_NODE = 2, 8
_Taken = tuple[Handover, ...]
# Bytes over some time, fewer than none where they are saved.
_Bytes = tuple[Interval, int]


@record
class Joint:
    """The bytes of an arena, the offset of each request, and the pairs in place."""

    size: int
    offsets: Mapping[str, int]
    in_place: tuple[tuple[str, str], ...]


@record
class Lowest:
    """The lowest arena that was found, if any was, and bytes that no arena of these requests does without."""

    joint: Joint | None
    bound: int


def least_arena(
    requests: Sequence[Request], align: int, pairs: Sequence[Handover], engine: Engine, limits: Limits, below: int
) -> Lowest:
    """The lowest arena of fewer than `below` bytes, as far as the limits go.

    Sizes are constant. Each offset is a multiple of `align`, and each pair may be taken or not. Parts of the arena that
    do not overlap in time are searched one after the other, and no lower than the others allow.
    """
    parts = sorted((_Part(part, align, pairs) for part in apart(requests)), key=lambda part: -part.floor)
    bound = max((part.floor for part in parts), default=0)
    whole = Joint(0, {}, ())
    for part in parts:
        found = part.least(engine, limits, bound, below)
        bound = max(bound, found.bound)
        best = found.joint
        if best is None:
            return Lowest(None, bound)
        offsets = {**whole.offsets, **best.offsets}
        whole = Joint(max(whole.size, best.size), offsets, whole.in_place + best.in_place)
    return Lowest(whole, bound)


def arena_floor(requests: Sequence[Request], align: int, pairs: Sequence[Handover]) -> int:
    """Bytes that no arena of these requests does without, whichever pairs it takes."""
    held = [request.fixed + _bytes(request) for request in requests if request.fixed is not None]
    return max(_Part(requests, align, pairs).floor, *held, 0)


def apart(requests: Sequence[Request]) -> list[list[Request]]:
    """The requests in parts that live at different times."""
    parts: list[tuple[int, list[Request]]] = []
    spans = sorted((low, high, number) for number, request in enumerate(requests) for low, high in request.live)
    part_of = list(range(len(requests)))
    end, latest = 0, -1
    for low, high, number in spans:
        if latest >= 0 and low < end:
            old, new = part_of[number], part_of[latest]
            part_of = [new if part == old else part for part in part_of]
            end = max(end, high)
        else:
            end = high
        latest = number
    parts = [(part, [requests[i] for i in range(len(requests)) if part_of[i] == part]) for part in sorted({*part_of})]
    return [members for _, members in parts]


def most_live(parts: Iterable[_Bytes]) -> int:
    """The most bytes at one time."""
    changes: dict[int, int] = {}
    for (low, high), size in parts:
        changes[low] = changes.get(low, 0) + size
        changes[high] = changes.get(high, 0) - size
    return max(accumulate(changes[time] for time in sorted(changes)), default=0)


class _Part:
    """Requests that a chain of overlaps connects, and the pairs among them, those that save most first.

    All offsets are multiples of `step`, so that all but what lies topmost fills multiples of it.
    """

    def __init__(self, requests: Sequence[Request], align: int, pairs: Sequence[Handover]) -> None:
        inside = {request.id for request in requests}
        within = [each for each in pairs if each.source.id in inside and each.destination.id in inside]
        self.requests = requests
        self.align = align
        self.pairs = sorted(within, key=lambda each: -_saving(each))
        self.step = min([max(align, request.align) for request in requests], default=1)
        self.slack = max([-_bytes(request) % self.step for request in requests], default=0)
        self.floor = self._bound(0, ())

    def least(self, engine: Engine, limits: Limits, goal: int, below: int) -> Lowest:
        """The lowest arena of fewer than `below` bytes, or one of no more than `goal` bytes."""
        cost = _LEAST + len(self.requests) // _PER_NODE
        best: Joint | None = None
        left: list[int] = []  # bytes that all choices need which were not looked at to the end
        nodes: list[tuple[int, _Taken]] = [(0, ())]
        while nodes and (best is None or best.size > goal):
            number, taken = nodes.pop()
            while number < len(self.pairs) and not _may_join(taken, self.pairs[number]):
                number += 1
            bound = self._bound(number, taken)
            if bound >= below:
                continue
            if limits.is_over:
                left.append(bound)
            elif number < len(self.pairs):
                limits.spend(cost)
                nodes += [(number + 1, taken), (number + 1, (*taken, self.pairs[number]))]
            else:
                found = self._packed(taken, engine, limits, goal, below)
                left.append(found.bound)
                if found.joint is not None:
                    best, below = found.joint, found.joint.size
        return Lowest(best, self.floor if nodes else max(self.floor, min([*left, below])))

    def _bound(self, number: int, taken: _Taken) -> int:
        """Bytes that all choices need that take these pairs, and none of the others before that number."""
        free = [each for each in self.pairs[number:] if _may_join(taken, each)]
        groups = grouped(self.requests, taken)
        bare = most_live([*_filled(groups), *_saved(free)])
        if self.slack == 0:
            return bare
        return max(bare, most_live([*_filled(groups, self.step), *_saved(free, self.step)]) - self.slack)

    def _packed(self, taken: _Taken, engine: Engine, limits: Limits, goal: int, below: int) -> Lowest:
        groups = grouped(self.requests, taken)
        items = [item_of(group, self.align) for group in groups]
        if any(item.fixed is not None and item.fixed % item.align for item in items) or any(map(_clashes, groups)):
            return Lowest(None, below)
        share = limits.part(2)
        packing = minimise(items, engine, share, enough=goal, below=below)
        limits.take_back(share)
        assert packing is not None
        if not packing.offsets:
            return Lowest(None, packing.bound)
        places = zip(groups, packing.offsets, strict=True)
        offsets = {request.id: offset for group, offset in places for request in group.members}
        return Lowest(Joint(packing.total, offsets, tuple([each.pair for each in taken])), packing.bound)


def item_of(group: Group, align: int) -> Item:
    """The group as one item."""
    pieces = tuple([(span, _number(size)) for span, size in group.pieces])
    sizes = {size for _, size in pieces}
    return Item(max(sizes), max(align, group.align), group.fixed, group.live, pieces if len(sizes) > 1 else ())


def _clashes(group: Group) -> bool:
    """Whether members of the group demand different offsets."""
    return len({request.fixed for request in group.members} - {None}) > 1


def _may_join(taken: _Taken, new: Handover) -> bool:
    """Whether a pair goes together with others: one source and one destination each, one handover after another."""
    for each in taken:
        if each.destination.id == new.destination.id or each.source.id == new.source.id:
            return False
        if each.destination.id == new.source.id and each.at[1] > new.at[0]:
            return False
        if each.source.id == new.destination.id and new.at[1] > each.at[0]:
            return False
    return True


def _filled(groups: Iterable[Group], step: int = 1) -> list[_Bytes]:
    """What the groups fill, in multiples of `step`."""
    return [(span, -(-_number(size) // step) * step) for group in groups for span, size in group.pieces]


def _saved(pairs: Iterable[Handover], step: int = 1) -> list[_Bytes]:
    """What each destination could save of that at most."""
    savings: dict[str, _Bytes] = {}
    for each in pairs:
        (low, high), size = savings.get(each.destination.id, (each.at, 0))
        savings[each.destination.id] = (low, max(high, each.at[1])), min(size, _saving(each) // -step * step)
    return list(savings.values())


def _saving(pair: Handover) -> int:
    return min(_bytes(pair.destination), _bytes(pair.source))


def _bytes(request: Request) -> int:
    return _number(request.size)


def _number(size: object) -> int:
    assert isinstance(size, int)
    return size
