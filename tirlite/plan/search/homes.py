"""Chooses the memory and the arena of each request, for the fewest bytes in all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from math import gcd
from typing import NamedTuple

from tirlite.plan.bound import Stretch, padded_peak
from tirlite.plan.in_place import Handover
from tirlite.plan.request import Pool, Request
from tirlite.plan.search.engine import Engine, Limits
from tirlite.plan.search.pairing import Joint, Lowest, arena_floor, least_arena
from tirlite.record import record

# The most arenas in one memory for which all orders are tried, as padding between them must fit.
_ROW = 6
_FAR = 1 << 62
# Arenas, each with the number of its memory.
_Row = tuple[tuple[int, Joint], ...]


class Figures(NamedTuple):
    """The figures by which plans are compared: total bytes, and then bytes turned away, see `turned_away`."""

    total: int
    turned: int


@record
class Settled:
    """Arenas, each with the number of its memory, and a lower bound of the bytes of all choices.

    There are no arenas if none were found that are better than the given plan.
    """

    arenas: _Row
    bound: int


@record
class _Placement:
    """A choice for the first `count` requests: for each arena its memory, and the numbers of its requests as bits."""

    count: int = 0
    arenas: tuple[tuple[int, int], ...] = ()
    turned: int = 0


def turned_away(request: Request, memory: str) -> int:
    """The bytes of a request times the number of memories that it prefers to this one."""
    return _bytes(request) * request.memories.index(memory)


class Homes:
    """Requests of constant size, the memories that they may live in, and the pairs that may be in place.

    Where alignment costs padding and pools are allocated apart, several arenas in a memory may need less than one.
    """

    def __init__(
        self, requests: Sequence[Request], memories: Sequence[Pool], pairs: Sequence[Handover], *, contiguous: bool
    ) -> None:
        self.requests = sorted(requests, key=lambda request: -_bytes(request))
        self.memories = memories
        self.pairs = pairs
        self.copies = [memory.copies if isinstance(memory.copies, int) else 1 for memory in memories]
        self.has_several = [not contiguous and not is_flat(requests, memory) for memory in memories]
        self._place = {memory.name: number for number, memory in enumerate(memories)}
        self._fixed = sum(1 << i for i, request in enumerate(self.requests) if request.fixed is not None)
        self._floors: dict[tuple[int, int], int] = {}
        self._known: dict[tuple[int, int], Lowest] = {}
        self._learned: dict[int, list[tuple[int, int]]] = {}  # by alignment, members and what they need

    def settle(self, engine: Engine, limits: Limits, floor: int, given: Figures | None) -> Settled:
        """The best choice found within the limits: the fewest bytes, and then the fewest bytes turned away.

        `given` are the figures of a known plan, and `floor` is a lower bound of the bytes of every plan.
        """
        best = given
        found: _Row = ()
        left: list[int] = []  # lower bounds of choices that were not searched to the end
        nodes = [_Placement()]
        while nodes:
            node = nodes.pop()
            bound = self._bound(node)
            if bound is None or (best is not None and not Figures(max(bound, floor), node.turned) < best):
                continue
            if limits.is_over:
                left.append(bound)
            elif node.count < len(self.requests):
                limits.spend(1)
                nodes += reversed(list(self._children(node)))
            else:
                row, bound = self._filled(node, best, engine, limits)
                left += [] if bound is None else [bound]
                figures = Figures(sum(self.copies[place] * joint.size for place, joint in row or ()), node.turned)
                if row is not None and (best is None or figures < best):
                    best, found = figures, row
        known_totals = [] if best is None else [best.total]
        return Settled(found, max(floor, min([*left, *known_totals], default=floor)))

    def _children(self, node: _Placement) -> Iterator[_Placement]:
        """The choices for the next request: existing arenas, or a new one, the preferred memory first."""
        request, bit = self.requests[node.count], 1 << node.count
        for name in request.memories:
            place = self._place[name]
            turned = node.turned + turned_away(request, name)
            inside = [number for number, arena in enumerate(node.arenas) if arena[0] == place]
            held = [number for number in inside if node.arenas[number][1] & self._fixed]
            is_held = bool(held) and request.fixed is not None
            for number in held if is_held else inside:
                arenas = list(node.arenas)
                arenas[number] = place, arenas[number][1] | bit
                yield _Placement(node.count + 1, tuple(arenas), turned)
            if not inside or (self.has_several[place] and not is_held):
                yield _Placement(node.count + 1, (*node.arenas, (place, bit)), turned)

    def _bound(self, node: _Placement) -> int | None:
        """A lower bound of the bytes of all choices that begin like this; None where they do not fit."""
        used = [0] * len(self.memories)
        for place, members in node.arenas:
            used[place] += self._floor(place, members)
        for memory, size in zip(self.memories, used, strict=True):
            if memory.capacity is not None and size > memory.capacity:
                return None
        return sum(size * copies for size, copies in zip(used, self.copies, strict=True))

    def _members(self, members: int) -> list[Request]:
        return [request for i, request in enumerate(self.requests) if members >> i & 1]

    def _floor(self, place: int, members: int) -> int:
        """A lower bound of the bytes of an arena with these members, or of some of them alone."""
        align = self.memories[place].align
        learned = [bound for inside, bound in self._learned.get(align, ()) if inside & members == inside]
        return max([self._live(align, members), *learned])

    def _live(self, align: int, members: int) -> int:
        key = align, members
        if key not in self._floors:
            inside = self._members(members)
            floor = arena_floor(inside, align, self.pairs)
            names = {request.id for request in inside}
            if not any(each.source.id in names and each.destination.id in names for each in self.pairs):
                parts = [Stretch(request.live, request.size, (), request.align) for request in inside]
                floor = max(floor, padded_peak(parts, align).size)
            self._floors[key] = floor
        return self._floors[key]

    def _filled(
        self, node: _Placement, best: Figures | None, engine: Engine, limits: Limits
    ) -> tuple[_Row | None, int | None]:
        """The arenas of a choice for all requests, if they may be better than the best; and a lower bound of its bytes.

        The bound is None where the choice is proved not to fit.
        """
        most = _FAR if best is None else best.total - (node.turned >= best.turned)
        row: list[tuple[int, Joint]] = []
        is_least = True
        for place, members in node.arenas:
            found = self._arena(place, members, self._below(node, (place, members), most), engine, limits)
            if found.joint is None:
                return None, self._bound(node)
            is_least = is_least and found.joint.size <= found.bound
            row.append((place, found.joint))
        fitting, is_sure = self._in_a_row(node, row)
        return fitting, None if fitting is None and is_sure and is_least else self._bound(node)

    def _below(self, node: _Placement, arena: tuple[int, int], most: int) -> int:
        """The size at which an arena is too large, if all arenas together may need `most` bytes."""
        place, members = arena
        copies, capacity = self.copies[place], self.memories[place].capacity
        spare = most - sum(self.copies[home] * self._floor(home, inside) for home, inside in node.arenas)
        below = self._floor(place, members) + spare // copies + 1 if copies else _FAR
        return below if capacity is None else min(below, capacity + 1)

    def _arena(self, place: int, members: int, below: int, engine: Engine, limits: Limits) -> Lowest:
        """The lowest arena with these members that is found of fewer than `below` bytes, if any."""
        align = self.memories[place].align
        key = align, members
        if key in self._known:
            return self._known[key]
        floor = self._floor(place, members)
        if floor >= below:
            return Lowest(None, floor)
        found = least_arena(self._members(members), align, self.pairs, engine, limits, below)
        if found.joint is not None:
            self._known[key] = found
        elif found.bound >= below:
            members = self._cause(align, members, below, engine, limits)
        self._learned.setdefault(align, []).append((members, min(found.bound, below)))
        return found

    def _cause(self, align: int, members: int, below: int, engine: Engine, limits: Limits) -> int:
        """The shortest prefix of the members that is proved not to fit below this many bytes either."""
        fits, fails = 1, members.bit_length()
        while fails - fits > 1:
            middle = (fits + fails) // 2
            inside = self._members(members & (1 << middle) - 1)
            if least_arena(inside, align, self.pairs, engine, limits, below).bound >= below:
                fails = middle
            else:
                fits = middle
        return members & (1 << fails) - 1

    def _align(self, place: int, members: int) -> int:
        return max(self.memories[place].align, *[request.align for request in self._members(members)])

    def _in_a_row(self, node: _Placement, arenas: Sequence[tuple[int, Joint]]) -> tuple[_Row | None, bool]:
        """The arenas in an order in which they fit their memories, if one is found; and whether that is certain."""
        row: list[tuple[int, Joint]] = []
        is_sure = True
        for place, memory in enumerate(self.memories):
            stretches = [
                _Stretch(joint, self._align(place, members), bool(members & self._fixed))
                for (home, members), (_, joint) in zip(node.arenas, arenas, strict=True)
                if home == place
            ]
            most = _FAR if memory.capacity is None else memory.capacity
            fitting = next((each for each in _rows(stretches) if _end(each) <= most), None)
            is_sure = is_sure and len(stretches) <= _ROW
            if fitting is None:
                return None, is_sure
            row += [(place, stretch.joint) for stretch in fitting]
        return tuple(row), True


@record
class _Stretch:
    """An arena in a memory, its alignment, and whether it has fixed offsets."""

    joint: Joint
    align: int
    is_held: bool


def _rows(arenas: Sequence[_Stretch]) -> Iterator[Sequence[_Stretch]]:
    """All orders of the arenas, or one if they are many; arenas with fixed offsets, which are addresses, come first."""
    held = [arena for arena in arenas if arena.is_held]
    loose = sorted((arena for arena in arenas if not arena.is_held), key=lambda arena: -arena.align)
    for order in permutations(loose) if len(arenas) <= _ROW else (tuple(loose),):
        yield [*held, *order]


def is_flat(requests: Sequence[Request], memory: Pool) -> bool:
    """Whether alignment costs no padding among the requests that may live in this memory."""
    inside = [request for request in requests if memory.name in request.memories]
    step = gcd(*map(_bytes, inside), *(request.fixed or 0 for request in inside))
    return step % max([memory.align, *(request.align for request in inside)]) == 0


def _end(row: Sequence[_Stretch]) -> int:
    """The end of arenas one after another, each aligned."""
    end = 0
    for stretch in row:
        end = -(-end // stretch.align) * stretch.align + stretch.joint.size
    return end


def _bytes(request: Request) -> int:
    assert isinstance(request.size, int)
    return request.size
