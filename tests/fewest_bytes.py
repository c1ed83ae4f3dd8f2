"""A small problem in, the fewest bytes that any plan needs out, by trying everything: memories, arenas, pairs, orders.

It shares no code with planners, bounds and checker. Sizes are constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations, product

from tirlite.plan import Pool, Problem, Request

Taken = Mapping[str, str]  # the source of each destination that is in its place


def fewest_bytes(problem: Problem, taken: Taken | None = None) -> int | None:
    """The total of the best plan; None where nothing fits. With `taken`, of those that take these pairs in place."""
    trial = _Trial(problem, taken)
    totals = [trial.total(homes) for homes in product(*(request.memories for request in problem.requests))]
    return min((total for total in totals if total is not None), default=None)


@dataclass
class _Trial:
    problem: Problem
    taken: Taken | None
    arenas: dict[object, int | None] = field(default_factory=dict)
    memories: dict[object, int | None] = field(default_factory=dict)

    def total(self, homes: Sequence[str]) -> int | None:
        """The least where each request lives in the memory that is chosen for it."""
        total = 0
        for name, pool in self.problem.memories.items():
            inside = [request for request, home in zip(self.problem.requests, homes, strict=True) if home == name]
            size = self.memory(inside, pool)
            if size is None:
                return None
            total += size * pool.copies
        return total

    def memory(self, inside: Sequence[Request], pool: Pool) -> int | None:
        """The least that some requests need in one memory: in one arena or, where pools are apart, in several."""
        key = pool.name, tuple(request.id for request in inside)
        if key not in self.memories:
            ways = [[list(inside)]] if self.problem.contiguous and inside else partitions(inside)
            sizes = [self.several(way, pool) for way in ways]
            self.memories[key] = min((size for size in sizes if size is not None), default=None)
        return self.memories[key]

    def several(self, arenas: Sequence[Sequence[Request]], pool: Pool) -> int | None:
        """The least that these arenas need, if they fit in some order; fixed offsets are in one, which is first."""
        held = [arena for arena in arenas if any(request.fixed is not None for request in arena)]
        arenas = held + [arena for arena in arenas if arena not in held]
        if len(held) > 1:
            return None
        found = [self.arena(arena, pool.align) for arena in arenas]
        sizes = [size for size in found if size is not None]
        if len(sizes) < len(found):
            return None
        aligns = [max(pool.align, *(request.align for request in arena)) for arena in arenas]
        if pool.capacity is not None:
            row = list(zip(sizes, aligns, strict=True))
            ends = [end_of_row([*row[: len(held)], *rest]) for rest in permutations(row[len(held) :])]
            if min(ends) > pool.capacity:
                return None
        return sum(sizes)

    def arena(self, inside: Sequence[Request], align: int) -> int | None:
        """The least that one arena needs, whichever pairs it takes; None where fixed offsets clash."""
        names = {request.id for request in inside}
        key = align, tuple(sorted(names))
        if key not in self.arenas:
            sets = pair_sets(self.problem, names) if self.taken is None else [_within(self.taken, names)]
            sizes = [lowest(self.problem, inside, align, taken) for taken in sets if taken is not None]
            self.arenas[key] = min((size for size in sizes if size is not None), default=None)
        return self.arenas[key]


def _within(taken: Taken, names: set[str]) -> Taken | None:
    """Those of the pairs that are in an arena; None where that parts a pair."""
    if any((destination in names) != (source in names) for destination, source in taken.items()):
        return None
    return {destination: source for destination, source in taken.items() if destination in names}


def end_of_row(row: Sequence[tuple[int, int]]) -> int:
    end = 0
    for size, align in row:
        end = -(-end // align) * align + size
    return end


def partitions(inside: Sequence[Request]) -> Iterator[list[list[Request]]]:
    if not inside:
        yield []
        return
    for rest in partitions(inside[1:]):
        yield [[inside[0]], *rest]
        for i in range(len(rest)):
            yield [*rest[:i], [inside[0], *rest[i]], *rest[i + 1 :]]


def handover(destination: Request, source: Request) -> tuple[int, int] | None:
    """The time that ends the source's life and begins the destination's."""
    low, high = destination.live[0][0], source.live[-1][1]
    return (low, high) if source.live[-1][0] <= low < high <= destination.live[0][1] else None


def pair_sets(problem: Problem, names: set[str]) -> Iterator[Taken]:
    """All sets of pairs that may be taken together."""
    by_id = problem.by_id
    sources: dict[str, list[str | None]] = {}
    for destination, source in dict.fromkeys(problem.in_place):
        if {destination, source} <= names and handover(by_id[destination], by_id[source]):
            sources.setdefault(destination, [None]).append(source)
    for choice in product(*sources.values()):
        taken = {destination: source for destination, source in zip(sources, choice, strict=True) if source}
        early = (
            by_id[last].live[0][0] < by_id[taken[middle]].live[-1][1]
            for last, middle in taken.items()
            if middle in taken
        )
        if len(set(taken.values())) == len(taken) and not any(early):
            yield taken


def lowest(problem: Problem, inside: Sequence[Request], align: int, taken: Taken) -> int | None:
    """The least height of one arena. In order of offsets each rests on the ground, or on one that came before."""
    joint = {request.id: [request] for request in inside}
    for destination in sorted(taken, key=lambda name: problem.by_id[name].live):
        joint[taken[destination]] += joint[destination]
        joint.update((request.id, joint[taken[destination]]) for request in joint[destination])
    groups = list({id(group): group for group in joint.values()}.values())
    filled = [bytes_over_time(group) for group in groups]
    aligns = [max(align, *(request.align for request in group)) for group in groups]
    offsets = [{request.fixed for request in group} - {None} for group in groups]
    fixed = [next(iter(each), None) for each in offsets]
    if any(len(each) > 1 for each in offsets):
        return None
    if any(at is not None and at % step for at, step in zip(fixed, aligns, strict=True)):
        return None
    height = [[max((a[t] for t in a if b.get(t)), default=0) for b in filled] for a in filled]
    best: list[int] = []

    def go_on(placed: dict[int, int], last: int, top: int) -> None:
        if best and top >= best[0]:
            return
        if len(placed) == len(groups):
            best[:] = [top]
        for i in set(range(len(groups))) - set(placed):
            below = max((placed[j] + height[j][i] for j in placed if height[i][j]), default=0)
            offset = -(-below // aligns[i]) * aligns[i]
            where = fixed[i]
            if where is not None and offset <= where:
                offset = where
            if offset >= last and where in (None, offset):
                go_on({**placed, i: offset}, offset, max(top, offset + max(filled[i].values())))

    go_on({}, 0, 0)
    return best[0] if best else None


def bytes_over_time(group: Sequence[Request]) -> dict[int, int]:
    """What requests in one place fill at each time."""
    filled: dict[int, int] = {}
    for request in group:
        for low, high in request.live:
            for time in range(low, high):
                filled[time] = max(filled.get(time, 0), request.size)
    return filled
