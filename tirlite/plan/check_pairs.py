"""Checks pairs in place in a layout for a problem, for counterexamples. It shares no code with strategies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tirlite.plan.layout import Layout
from tirlite.plan.problem import Problem
from tirlite.plan.request import Interval
from tirlite.plan.verdict import Counterexample, Fault


def pair_faults(problem: Problem, plan: Layout) -> Iterator[Counterexample]:
    """Each pair in place is a candidate, lies at one offset, and is live together only while it changes hands.

    Nothing has two sources or two destinations, and what is taken over has been handed on before it is again.
    """
    candidates = set(problem.in_place)
    by_id, placements = problem.by_id, plan.placements
    sources: dict[str, str] = {}
    destinations: dict[str, str] = {}
    for pair in plan.in_place:
        dst, src = pair
        if pair not in candidates:
            yield _fault(pair, "is not a candidate for that")
            return
        if dst in sources:
            yield _three(dst, sources[dst], src)
        if src in destinations:
            yield _three(src, destinations[src], dst)
        sources[dst], destinations[src] = src, dst
        if placements[dst] != placements[src]:
            yield _fault(pair, "they lie at different offsets")
        if takeover(by_id[dst].live, by_id[src].live) is None:
            yield _fault(pair, "is not born where that dies")
    for middle, src in sources.items():
        if middle in destinations:
            dst = destinations[middle]
            if by_id[dst].live[0][0] < by_id[src].live[-1][1]:
                text = f"`{dst}` takes the place of `{middle}` before that has taken the place of `{src}`"
                yield Counterexample(Fault.IN_PLACE, text, (dst, middle, src))


def _three(name: str, before: str, other: str) -> Counterexample:
    text = f"`{name}` shares its place with `{before}` and `{other}`"
    return Counterexample(Fault.IN_PLACE, text, (name, before, other))


def _fault(pair: tuple[str, str], what: str) -> Counterexample:
    return Counterexample(Fault.IN_PLACE, f"`{pair[0]}` is in the place of `{pair[1]}`, and {what}", pair)


def takeover(dst: Sequence[Interval], src: Sequence[Interval]) -> Interval | None:
    """When a pair in place is live together: from the birth of the one to the death of the other, with no gap in it."""
    low, high = dst[0][0], src[-1][1]
    return (low, high) if src[-1][0] <= low < high <= dst[0][1] else None


def without(live: Sequence[Interval], time: Interval) -> list[Interval]:
    """The intervals outside of `time`."""
    begin, end = time
    rest = []
    for low, high in live:
        if low < begin:
            rest.append((low, min(high, begin)))
        if end < high:
            rest.append((max(low, end), high))
    return rest
