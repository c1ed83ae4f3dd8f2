"""The lower bound of slots: a problem in, bytes that no plan of whole slots can do without out, where that is quick.

At each time what is live lies in slots of its own, so the slots, the largest first, are at least as large as it is, the
largest first.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from tirlite.plan.problem import Problem
from tirlite.plan.request import Request


class SlotBound(NamedTuple):
    """Bytes that slots need at least, and the most that are live at one time."""

    slots: int
    live: int


def slot_bound(problem: Problem) -> SlotBound | None:
    """That of a problem of constant sizes without choices; None for all others."""
    if problem.in_place or any(r.fixed is not None or len(r.memories) > 1 for r in problem.requests):
        return None
    inside: dict[str, list[Request]] = {}
    for request in problem.requests:
        inside.setdefault(request.memories[0], []).append(request)
    slots = live = 0
    for name, requests in inside.items():
        copies = problem.memories[name].copies
        sizes = [request.size for request in requests if isinstance(request.size, int)]
        if len(sizes) < len(requests) or not isinstance(copies, int):
            return None
        bound = _bound(requests, sizes)
        slots += copies * bound.slots
        live += copies * bound.live
    return SlotBound(slots, live)


def _bound(requests: Sequence[Request], sizes: Sequence[int]) -> SlotBound:
    events = [(low, 1, size) for request, size in zip(requests, sizes, strict=True) for low, _ in request.live]
    events += [(high, 0, size) for request, size in zip(requests, sizes, strict=True) for _, high in request.live]
    live: list[int] = []  # negative sizes, so that the largest come first
    least: list[int] = []
    most, grown = 0, False
    for _, is_birth, size in sorted(events):
        if is_birth:
            insort(live, -size)
        else:
            if grown:
                least = list(map(min, zip_longest(least, live, fillvalue=0)))
                most = max(most, -sum(live))
            del live[bisect_left(live, -size)]
        grown = bool(is_birth)
    return SlotBound(-sum(least), most)
