"""Chooses which pairs of requests go in place, so that their arena is lowest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from tirlite.groups import by_key
from tirlite.plan.blocks import Block, Piece, block_of
from tirlite.plan.in_place import Group, Handover, grouped
from tirlite.plan.request import Interval, Request
from tirlite.plan.search.descent import Packing, minimise
from tirlite.plan.search.engine import Engine, Limits
from tirlite.record import record, replace
from tirlite.sizes import round_up
from tirlite.sizes.evaluate import as_number

# The most requests in pairs at one time for which the heaviest matching is computed; for more, a bound of it.
_EXACT = 10
# Destination, source, and the bytes saved with the one in place of the other.
Edge = tuple[int, int, int]


@record(guarded=False)
class Saving:
    """Two blocks that may be in place, when both are live, and the bytes that this saves then."""

    destination: int
    source: int
    at: Interval
    size: int


def least_live(blocks: Sequence[Block], pairs: Sequence[Saving]) -> int:
    """The most bytes that are live at one time, less the most that pairs can save then.

    Blocks of some alignment or more, by themselves, fill whole multiples of it, all but the topmost.
    """
    best = 0
    for step in sorted({1, *(block.align for block in blocks)}):
        filled = [piece for block in blocks if block.align >= step for piece in block.pieces]
        slack = max((-size % step for _, _, size in filled), default=0)
        if slack or step == 1:
            edges = [
                (pair.at, (pair.destination, pair.source, round_up(pair.size, step)))
                for pair in pairs
                if min(blocks[pair.destination].align, blocks[pair.source].align) >= step
            ]
            rounded = [Piece(low, high, round_up(size, step)) for low, high, size in filled]
            best = max(best, _most(rounded, edges, best + slack) - slack)
    return best


def _most(filled: Iterable[Piece], edges: Iterable[tuple[Interval, Edge]], best: int) -> int:
    """The most bytes that are live at one time, less what is saved then; or `best`, if that is more."""
    changes: dict[int, int] = {}
    for low, high, size in filled:
        changes[low] = changes.get(low, 0) + size
        changes[high] = changes.get(high, 0) - size
    edges = sorted(edges, key=lambda each: -each[1][2])
    times = sorted(changes.keys() | {time for at, _ in edges for time in at})
    totals = accumulate(changes.get(time, 0) for time in times)
    for total, time in sorted(zip(totals, times, strict=True), reverse=True):
        if total <= best:
            break
        now = [edge for (low, high), edge in edges if low <= time < high]
        if total - greedily_saved(now) > best:
            best = max(best, total - most_saved(now))
    return best


def greedily_saved(edges: Iterable[Edge]) -> int:
    """The weight of a greedy matching, the heaviest edges first: at least half of that of the heaviest matching."""
    met: set[int] = set()
    total = 0
    for a, b, weight in edges:
        if a not in met and b not in met:
            met |= {a, b}
            total += weight
    return total


def most_saved(edges: Sequence[Edge]) -> int:
    """The weight of the heaviest matching, or an upper bound of it."""
    total = 0
    for part in _parts(edges):
        nodes = sorted({node for a, b, _ in part for node in (a, b)})
        total += _heaviest(part, nodes) if len(nodes) <= _EXACT else _heaviest_bound(part)
    return total


def _parts(edges: Sequence[Edge]) -> list[list[Edge]]:
    """The edges by connected component."""
    part_of = {node: node for a, b, _ in edges for node in (a, b)}
    for a, b, _ in edges:
        old, new = part_of[a], part_of[b]
        if old != new:
            part_of = {node: new if part == old else part for node, part in part_of.items()}
    return list(by_key((part_of[edge[0]], edge) for edge in edges).values())


def _heaviest(edges: Sequence[Edge], nodes: Sequence[int]) -> int:
    """The weight of the heaviest matching of few nodes, by dynamic programming over sets of matched nodes."""
    place = {node: 1 << position for position, node in enumerate(nodes)}
    best = {0: 0}
    for a, b, weight in edges:
        both = place[a] | place[b]
        for mask, total in list(best.items()):
            if not mask & both and total + weight > best.get(mask | both, -1):
                best[mask | both] = total + weight
    return max(best.values())


def _heaviest_bound(edges: Sequence[Edge]) -> int:
    """An upper bound of the heaviest matching, as each node is in one pair at most; edges are sorted by weight."""
    as_destination: dict[int, int] = {}
    as_source: dict[int, int] = {}
    as_either: dict[int, int] = {}
    for a, b, weight in edges:
        as_destination.setdefault(a, weight)
        as_source.setdefault(b, weight)
        as_either.setdefault(a, weight)
        as_either.setdefault(b, weight)
    sums = [sum(each.values()) for each in (as_destination, as_source)]
    return min(*sums, sum(as_either.values()) // 2)


# The nodes that a choice of pairs counts for, and one more per this many requests and pairs.
_LEAST, _PER_NODE = 2, 8
# A search with open pairs has one in _PART of the nodes that are left, at most _OPEN.
_PART, _OPEN = 8, 2_000
# One in this many nodes goes to a probe whether the bound can be reached.
_PROBE = 4
_Taken = tuple[Handover, ...]


@record
class Joint:
    """An arena: its bytes, the offset of each request, and the pairs in place."""

    size: int
    offsets: Mapping[str, int]
    in_place: tuple[tuple[str, str], ...]


@record
class Lowest:
    """The lowest arena found, if any, and a lower bound of the bytes of all arenas of these requests."""

    joint: Joint | None
    bound: int


def least_arena(
    requests: Sequence[Request], align: int, pairs: Sequence[Handover], engine: Engine, limits: Limits, below: int
) -> Lowest:
    """The lowest arena of fewer than `below` bytes that is found within the limits.

    Sizes are constant. Each offset is a multiple of `align`, and each pair may be taken or not. Components that do not
    overlap in time are searched one after another, and no lower than the highest bound of them.
    """
    parts = sorted((_Component(part, align, pairs) for part in apart(requests)), key=lambda part: -part.floor)
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
    """A lower bound of the bytes of arenas of these requests, whichever pairs they take."""
    held = [request.fixed + _bytes(request) for request in requests if request.fixed is not None]
    return max(_Component(requests, align, pairs).floor, *held, 0)


def apart(requests: Sequence[Request]) -> list[list[Request]]:
    """The requests by connected component of overlap in time."""
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


@record
class _PairChoice:
    """A choice for some of the pairs: those taken, and those still open; the others are not taken."""

    taken: _Taken
    open: _Taken

    def taking(self, pair: Handover) -> _PairChoice:
        """The same with a pair taken; open pairs that conflict with it are dropped."""
        left = tuple([each for each in self.open if each is not pair and _may_join((pair,), each)])
        return _PairChoice((*self.taken, pair), left)

    def leaving(self, pair: Handover) -> _PairChoice:
        return _PairChoice(self.taken, tuple([each for each in self.open if each is not pair]))


class _Component:
    """A connected component of requests by overlap in time, and the pairs among them, those that save most first."""

    def __init__(self, requests: Sequence[Request], align: int, pairs: Sequence[Handover]) -> None:
        inside = {request.id for request in requests}
        within = [each for each in pairs if each.source.id in inside and each.destination.id in inside]
        self.requests = requests
        self.align = align
        self.pairs = tuple(sorted((each for each in within if _saving(each)), key=lambda each: -_saving(each)))
        self.floor = _Attempt(self, _PairChoice((), self.pairs)).bound if requests else 0

    def least(self, engine: Engine, limits: Limits, goal: int, below: int) -> Lowest:
        """The lowest arena of fewer than `below` bytes, or one of no more than `goal` bytes."""
        bound = self.floor
        first: Joint | None = None
        if self.pairs and goal + 1 < below:
            first = self._greedy(engine, limits, goal, below)
            if first is not None and first.size <= goal:
                return Lowest(first, bound)
            share = limits.part(_PROBE)
            probe = self._searched(engine, share, goal, goal + 1)
            limits.take_back(share)
            if probe.joint is not None:
                return probe
            bound = max(bound, probe.bound)
        found = self._searched(engine, limits, max(goal, bound), below, first)
        return Lowest(found.joint, max(bound, found.bound))

    def _cost(self, state: _PairChoice) -> int:
        return _LEAST + (len(self.requests) + len(state.open)) // _PER_NODE

    def _greedy(self, engine: Engine, limits: Limits, goal: int, below: int) -> Joint | None:
        """An arena of fewer than `below` bytes that takes pairs greedily, those that save most first."""
        trial = _Attempt(self, _PairChoice((), self.pairs))
        while trial.state.open:
            limits.spend(self._cost(trial.state))
            pair = trial.state.open[0]
            taken = _Attempt(self, trial.state.taking(pair))
            fits = taken.bound < below and taken.is_possible
            trial = taken if fits else _Attempt(self, trial.state.leaving(pair))
        return trial.packed(engine, limits, goal, below).joint if trial.is_possible else None

    def _searched(self, engine: Engine, limits: Limits, goal: int, below: int, best: Joint | None = None) -> Lowest:
        below = below if best is None else best.size
        left: list[int] = []  # lower bounds of choices that were not searched to the end
        states = [_PairChoice((), self.pairs)]
        while states and (best is None or best.size > goal):
            trial = _Attempt(self, states.pop())
            if trial.bound >= below or not trial.is_possible:
                continue
            if limits.is_over:
                left.append(trial.bound)
                continue
            limits.spend(self._cost(trial.state))
            found = trial.packed(engine, limits, goal, below)
            if found.joint is not None:
                best, below = found.joint, found.joint.size
                if trial.state.open:
                    states.append(trial.state)
                else:
                    left.append(found.bound)
            elif found.pair is not None:
                states += [trial.state.leaving(found.pair), trial.state.taking(found.pair)]
            else:
                left.append(found.bound)
        if states:
            left += [self.floor]
        return Lowest(best, max(self.floor, min([*left, below])))


@record
class _Result:
    """The result of a search with a choice of some pairs: an arena, a pair to branch on, or neither; and a bound."""

    joint: Joint | None
    pair: Handover | None
    bound: int


class _Attempt:
    """The blocks of a component for a choice of some pairs; those of open pairs may overlap."""

    def __init__(self, part: _Component, state: _PairChoice) -> None:
        self.part, self.state = part, state
        self.groups = grouped(part.requests, state.taken)
        self.blocks = [block_of(group, part.align) for group in self.groups]
        self.place = {request.id: number for number, group in enumerate(self.groups) for request in group.members}
        self.bound = least_live(
            self.blocks, [Saving(*self._places(each), each.at, _saving(each)) for each in state.open]
        )

    @property
    def is_possible(self) -> bool:
        """Whether the fixed offsets in each group are equal, and multiples of its alignment."""
        is_aligned = all(block.fixed is None or block.fixed % block.align == 0 for block in self.blocks)
        return is_aligned and not any(map(_clashes, self.groups))

    def _places(self, pair: Handover) -> tuple[int, int]:
        return self.place[pair.destination.id], self.place[pair.source.id]

    def packed(self, engine: Engine, limits: Limits, goal: int, below: int) -> _Result:
        """An arena of fewer than `below` bytes, or a pair to branch on, or neither."""
        if not self.state.open:
            return self._settled(engine, limits, goal, below)
        packing = self._loosely(engine, limits, below)
        if packing.bound >= below:
            return _Result(None, None, packing.bound)
        if not packing.offsets:
            return _Result(None, self.state.open[0], packing.bound)
        state = self.state
        for pair in self.state.open:
            if not self._do_overlap(pair, packing):
                continue
            first, second = (packing.offsets[place] for place in self._places(pair))
            if first != second or not _may_join(state.taken, pair):
                return _Result(None, pair, packing.bound)
            state = state.taking(pair)
        joint = _joint(self.groups, packing, state.taken)
        settled = _Attempt(self.part, replace(state, open=()))
        lower = settled._settled(engine, limits, goal, joint.size).joint if joint.size > goal else None
        return _Result(lower or joint, None, packing.bound)

    def _loosely(self, engine: Engine, limits: Limits, below: int) -> Packing:
        """Some packing of fewer than `below` bytes in which open pairs may overlap."""
        loose: dict[int, set[int]] = {}
        for each in self.state.open:
            first, second = self._places(each)
            loose.setdefault(first, set()).add(second)
            loose.setdefault(second, set()).add(first)
        share = limits.part(_PART)
        share.nodes = min(share.nodes, _OPEN)
        packing = minimise(self.blocks, engine, share, enough=below - 1, below=below, loose=loose)
        limits.take_back(share)
        assert packing is not None
        return packing

    def _do_overlap(self, pair: Handover, packing: Packing) -> bool:
        first, second = (packing.offsets[place] for place in self._places(pair))
        return first < second + _bytes(pair.source) and second < first + _bytes(pair.destination)

    def _settled(self, engine: Engine, limits: Limits, goal: int, below: int) -> _Result:
        """The lowest arena of fewer than `below` bytes with just the pairs that are taken."""
        share = limits.part(2)
        packing = minimise(self.blocks, engine, share, enough=goal, below=below)
        limits.take_back(share)
        assert packing is not None
        if not packing.offsets:
            return _Result(None, None, packing.bound)
        return _Result(_joint(self.groups, packing, self.state.taken), None, packing.bound)


def _joint(groups: Sequence[Group], packing: Packing, taken: _Taken) -> Joint:
    places = zip(groups, packing.offsets, strict=True)
    offsets = {request.id: offset for group, offset in places for request in group.members}
    return Joint(packing.total, offsets, tuple([each.pair for each in taken]))


def _clashes(group: Group) -> bool:
    """Whether members of the group have different fixed offsets."""
    return len({request.fixed for request in group.members} - {None}) > 1


def _may_join(taken: _Taken, new: Handover) -> bool:
    """Whether a pair is compatible with others: one source and one destination each, and no overlapping handovers."""
    for each in taken:
        if each.destination.id == new.destination.id or each.source.id == new.source.id:
            return False
        if each.destination.id == new.source.id and each.at[1] > new.at[0]:
            return False
        if each.source.id == new.destination.id and new.at[1] > each.at[0]:
            return False
    return True


def _saving(pair: Handover) -> int:
    return min(_bytes(pair.destination), _bytes(pair.source))


def _bytes(request: Request) -> int:
    return as_number(request.size)
