"""Groups of requests, and pairs that may still be taken, in; bytes that an arena needs whichever it takes, out.

Pairs that share a request go together at different times at most, so what is saved at one time is no more than the
heaviest matching of requests saves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from tirlite.plan.request import Interval
from tirlite.plan.search.item import Item, up
from tirlite.record import record

# Of more requests than this in pairs at one time a bound is taken on what the heaviest matching saves.
_EXACT = 10
# Destination, source, and what is saved if the one goes in the place of the other.
Edge = tuple[int, int, int]


@record(guarded=False)
class Saving:
    """Two items that may be joined, when both are live, and the bytes that are saved then."""

    destination: int
    source: int
    at: Interval
    size: int


def least_live(items: Sequence[Item], pairs: Sequence[Saving]) -> int:
    """The most bytes that are live at one time, if of the pairs those are taken that save most then.

    Items of some alignment or more, by themselves, fill whole multiples of it, all but the topmost.
    """
    best = 0
    for step in sorted({1, *(item.align for item in items)}):
        filled = [(span, size) for item in items if item.align >= step for span, size in item.stretches]
        slack = max((-size % step for _, size in filled), default=0)
        if slack or step == 1:
            edges = [
                (pair.at, (pair.destination, pair.source, up(pair.size, step)))
                for pair in pairs
                if min(items[pair.destination].align, items[pair.source].align) >= step
            ]
            best = max(best, _most([(span, up(size, step)) for span, size in filled], edges, best + slack) - slack)
    return best


def _most(filled: Iterable[tuple[Interval, int]], edges: Iterable[tuple[Interval, Edge]], best: int) -> int:
    """The most that is live at one time, less what is saved then; or `best`, if that is more."""
    changes: dict[int, int] = {}
    for (low, high), size in filled:
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
    """The weight of a matching that takes each edge that it can, the heaviest first: half of the heaviest at least."""
    met: set[int] = set()
    total = 0
    for a, b, weight in edges:
        if a not in met and b not in met:
            met |= {a, b}
            total += weight
    return total


def most_saved(edges: Sequence[Edge]) -> int:
    """The weight of the heaviest matching, or no less."""
    total = 0
    for part in _parts(edges):
        nodes = sorted({node for a, b, _ in part for node in (a, b)})
        total += _heaviest(part, nodes) if len(nodes) <= _EXACT else _heaviest_bound(part)
    return total


def _parts(edges: Sequence[Edge]) -> list[list[Edge]]:
    """The edges in parts that have no node in common."""
    part_of = {node: node for a, b, _ in edges for node in (a, b)}
    for a, b, _ in edges:
        old, new = part_of[a], part_of[b]
        if old != new:
            part_of = {node: new if part == old else part for node, part in part_of.items()}
    parts: dict[int, list[Edge]] = {}
    for edge in edges:
        parts.setdefault(part_of[edge[0]], []).append(edge)
    return list(parts.values())


def _heaviest(edges: Sequence[Edge], nodes: Sequence[int]) -> int:
    """The weight of the heaviest matching of few nodes, by the best for each set of nodes that are matched."""
    place = {node: 1 << position for position, node in enumerate(nodes)}
    best = {0: 0}
    for a, b, weight in edges:
        both = place[a] | place[b]
        for mask, total in list(best.items()):
            if not mask & both and total + weight > best.get(mask | both, -1):
                best[mask | both] = total + weight
    return max(best.values())


def _heaviest_bound(edges: Sequence[Edge]) -> int:
    """No less than the heaviest matching, as each node is in one pair at most; edges are sorted by weight."""
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
