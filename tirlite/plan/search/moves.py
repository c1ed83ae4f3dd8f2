"""Makes the moves of the search in its cells: chooses a buffer, places it, blocks it, takes both back."""

from __future__ import annotations

from tirlite.plan.search.cells import (
    COUNT,
    DEPTH,
    FAILED,
    FIRST,
    HIGH,
    LAST,
    LOW,
    PEAK,
    PLACED,
    TRAIL,
    TRAIL_ENTRY,
    Cells,
)

_FAR = 1 << 62


def choose(s: Cells) -> None:
    """Puts the buffer to decide on next into `chosen[depth]`: of those not blocked the lowest, then the preferred one.

    No other can still come to lie below it: what could is blocked, hence rests on something that is placed later, and
    so on down to a buffer that is not blocked and lower.
    """
    base, rank, placed, blocked, before = s.base, s.rank, s.placed, s.blocked, s.before
    best = -1
    for c in range(s.state[COUNT]):
        is_open = placed[c] < 0 and blocked[c] < 0 and (before[c] < 0 or placed[before[c]] >= 0)
        if is_open and (best < 0 or base[c] < base[best] or (base[c] == base[best] and rank[c] < rank[best])):
            best = c
    s.chosen[s.state[DEPTH]] = best


def place(s: Cells, c: int, level: int) -> None:
    """Places `c` at its base; its neighbours that are not placed yet will lie above it."""
    align, base, least, support, height = s.align, s.base, s.least, s.support, s.own_height
    placed, blocked, neighbours, starts, state = s.placed, s.blocked, s.neighbours, s.neighbour_starts, s.state
    decide(s, level, 1)
    placed[c] = level
    widen(s, c)
    state[FIRST] = s.first[c]
    state[LAST] = s.last[c]
    for k in range(s.section_starts[c], s.section_starts[c + 1]):
        s.rest[s.sections[k]] = s.rest[s.sections[k]] - s.fill[k]
    state[PLACED] = state[PLACED] + 1
    for k in range(starts[c], starts[c + 1]):
        e = neighbours[k]
        top = base[c] + height[k]
        if placed[e] < 0 and top > base[e]:
            remember(s, e)
            bottom = (top + align[e] - 1) // align[e] * align[e]
            base[e] = bottom
            least[e] = bottom
            support[e] = c
            blocked[e] = -1
            touch(s, e)


def block(s: Cells, c: int, level: int) -> None:
    """Decides that `c` does not rest on what is placed: something that is not placed yet will come between.

    Of equal buffers the first in order lies lowest, so that the others do not rest there either.
    """
    after, blocked = s.after, s.blocked
    decide(s, level, 2)
    e = c
    while e >= 0:
        remember(s, e)
        widen(s, e)
        blocked[e] = level
        e = after[e]


def decide(s: Cells, level: int, branch: int) -> None:
    """Notes the decision of `level`, so that it can be taken back. No bounds have changed yet."""
    state = s.state
    s.branch[level] = branch
    s.trail_marks[level] = state[TRAIL]
    state[DEPTH] = level + 1
    state[FAILED] = 0
    state[LOW] = _FAR
    state[HIGH] = 0
    state[FIRST] = 0
    state[LAST] = 0
    state[PEAK] = 0


def widen(s: Cells, e: int) -> None:
    """Widens the range of sections in which bounds have changed by those of `e`."""
    state = s.state
    state[LOW] = min(state[LOW], s.first[e])
    state[HIGH] = max(state[HIGH], s.last[e])


def touch(s: Cells, e: int) -> None:
    """Notes that `least[e]` has changed."""
    widen(s, e)
    s.state[PEAK] = max(s.state[PEAK], s.least[e])


def remember(s: Cells, e: int) -> None:
    """Writes the bounds of `e` on the trail."""
    trail, state = s.trail, s.state
    t = state[TRAIL]
    trail[t] = e
    trail[t + 1] = s.base[e]
    trail[t + 2] = s.least[e]
    trail[t + 3] = s.support[e]
    trail[t + 4] = s.blocked[e]
    state[TRAIL] = t + TRAIL_ENTRY


def take_back(s: Cells, level: int) -> None:
    """Undoes the decision of `level`, the last one."""
    trail, chosen, branch, placed, state = s.trail, s.chosen, s.branch, s.placed, s.state
    t = state[TRAIL]
    while t > s.trail_marks[level]:
        t = t - TRAIL_ENTRY
        e = trail[t]
        s.base[e] = trail[t + 1]
        s.least[e] = trail[t + 2]
        s.support[e] = trail[t + 3]
        s.blocked[e] = trail[t + 4]
    state[TRAIL] = t
    if branch[level] == 1:
        c = chosen[level]
        for k in range(s.section_starts[c], s.section_starts[c + 1]):
            s.rest[s.sections[k]] = s.rest[s.sections[k]] + s.fill[k]
        placed[c] = -1
        state[PLACED] = state[PLACED] - 1
    state[DEPTH] = level
