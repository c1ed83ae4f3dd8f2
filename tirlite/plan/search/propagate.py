"""What a decision implies: higher bounds for blocked buffers, and failures. Cells in; cells out, `state[FAILED]` set.

A failure leaves on the stack the buffers whose bounds explain it.
"""

from __future__ import annotations

from tirlite.plan.search.cells import COUNT, FAILED, FIRST, HIGH, LAST, LOW, PASSES, PEAK, TIGHTEST, Cells
from tirlite.plan.search.conflict import fresh, push
from tirlite.plan.search.moves import remember, touch

_FAR = 1 << 62


def propagate(s: Cells) -> None:
    """Draws conclusions from bounds that have changed in the sections from LOW to HIGH."""
    state = s.state
    passes = 0
    changed = 1
    while changed == 1 and passes < PASSES and state[FAILED] == 0:
        passes = passes + 1
        changed = 0
        for c in range(state[COUNT]):
            is_blocked = s.blocked[c] >= 0 and s.placed[c] < 0
            if is_blocked and s.first[c] < state[HIGH] and s.last[c] > state[LOW] and state[FAILED] == 0:
                old = s.least[c]
                raise_blocked(s, c)
                if s.least[c] > old:
                    changed = 1
    # Bounds that have not changed are no higher than they may be, unless one was at the start.
    if state[FAILED] == 0 and state[PEAK] > state[TIGHTEST]:
        check_latest(s)
    if state[FAILED] == 0:
        check_sections(s)


def raise_blocked(s: Cells, c: int) -> None:
    """A blocked buffer rests on a neighbour that is not placed yet.

    Fails where that leaves no room, and where no neighbour comes below its top if it stays on its base: then it may
    as well rest there, and that has been tried.
    """
    align, base, least, placed = s.align, s.base, s.least, s.placed
    neighbours, starts, own, other = s.neighbours, s.neighbour_starts, s.own_height, s.other_height
    room = _FAR
    bottom = _FAR
    for k in range(starts[c], starts[c + 1]):
        d = neighbours[k]
        if placed[d] < 0:
            room = min(room, least[d] - own[k])
            bottom = min(bottom, least[d] + other[k])
    if room >= base[c]:
        fail(s, c)
    elif bottom > least[c]:
        bottom = (bottom + align[c] - 1) // align[c] * align[c]
        remember(s, c)
        least[c] = bottom
        touch(s, c)
        if bottom > s.latest[c]:
            fail(s, c)


def check_latest(s: Cells) -> None:
    """Fails where a buffer is pushed above the highest offset that it may have."""
    least, latest, placed = s.least, s.latest, s.placed
    late = -1
    for c in range(s.state[COUNT]):
        if placed[c] < 0 and least[c] > latest[c]:
            late = c
    if late >= 0:
        fail(s, late)


def fail(s: Cells, c: int) -> None:
    """Fails because of the bound of `c`."""
    s.state[FAILED] = 1
    fresh(s)
    push(s, c)


def check_sections(s: Cells) -> None:
    """Fails where the buffers of a section that are not placed do not fit above the lowest bound among them.

    A look at each buffer is needed where one has left the section, or where the highest bound that has changed would
    be too high for them. Elsewhere the lowest bound is as before, or not above that.
    """
    rest, height, state = s.rest, s.height, s.state
    section = state[LOW]
    while section < state[HIGH] and state[FAILED] == 0:
        has_left = state[FIRST] <= section and section < state[LAST]
        if has_left or rest[section] + state[PEAK] > height[section]:
            check_section(s, section)
        section = section + 1


def check_section(s: Cells, section: int) -> None:
    """As above, for one section."""
    least, placed, members, starts = s.least, s.placed, s.members, s.member_starts
    lowest = _FAR
    for k in range(starts[section], starts[section + 1]):
        c = members[k]
        if placed[c] < 0:
            lowest = min(lowest, least[c])
    if s.rest[section] > 0 and lowest + s.rest[section] > s.height[section]:
        s.state[FAILED] = 1
        fresh(s)
        for k in range(starts[section], starts[section + 1]):
            c = members[k]
            if placed[c] < 0:
                push(s, c)
