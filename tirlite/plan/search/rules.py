"""The rules of the search, on its cells: advances it, some nodes at a time.

Source: branching on what lies lowest, as in MiniMalloc (Moffitt, ASPLOS 2023), made binary (a buffer rests here, or on
something placed later), so that decisions far apart in time do not depend on each other; conflict-directed
backjumping (Prosser, 1993) over them. A failure leaves on the stack the buffers whose bounds explain it.
"""

from __future__ import annotations

from tirlite.plan.search.cells import (
    COUNT,
    DEPTH,
    FAILED,
    FIRST,
    FOUND,
    FULL,
    HIGH,
    IMPOSSIBLE,
    LAST,
    LEVELS,
    LOW,
    NODES,
    PASSES,
    PEAK,
    PLACED,
    POOL_ROOM,
    RUNNING,
    STACK,
    STAMP,
    STATUS,
    TIGHTEST,
    TRAIL,
    TRAIL_ENTRY,
    TRAIL_ROOM,
    Cells,
)

_FAR = 1 << 62


def choose(s: Cells) -> None:
    """Puts the next buffer to branch on into `chosen[depth]`: of those not blocked the lowest, then the preferred one.

    No other buffer can come to lie below it: a blocked one rests on a buffer that is placed later, which is not blocked
    and lower, or rests on another one in turn.
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
    """Decides that `c` does not rest on what is placed: a buffer that is not placed yet will come between.

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
    """Records the decision of `level`, so that it can be undone. No bounds have changed yet."""
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


def fresh(s: Cells) -> None:
    """Starts an explanation, with nothing marked."""
    s.state[STAMP] = s.state[STAMP] + 1
    s.state[STACK] = 0


def push(s: Cells, c: int) -> None:
    """Asks for an explanation why `c` lies no lower."""
    explained, stack, state = s.explained, s.stack, s.state
    if explained[c] != state[STAMP]:
        explained[c] = state[STAMP]
        stack[state[STACK]] = c
        state[STACK] = state[STACK] + 1


def explain(s: Cells) -> None:
    """Marks the levels of the decisions that explain what was demanded.

    A buffer lies where it was placed, on its support. One that is not placed lies no lower because of its support; and
    if it is blocked because of that decision and of its neighbours, as it does not rest on those that are placed, and
    so will rest on one of the others.
    """
    placed, blocked, support, marked, stack, state = s.placed, s.blocked, s.support, s.marked, s.stack, s.state
    while state[STACK] > 0:
        state[STACK] = state[STACK] - 1
        c = stack[state[STACK]]
        if support[c] >= 0:
            push(s, support[c])
        if placed[c] >= 0:
            marked[placed[c]] = 1
        elif blocked[c] >= 0:
            marked[blocked[c]] = 1
            push_neighbours(s, c, _FAR)


def push_neighbours(s: Cells, c: int, most: int) -> None:
    """Asks for explanations for the neighbours of `c`: those placed, and others of at most `most` units below it."""
    neighbours, starts, height = s.neighbours, s.neighbour_starts, s.other_height
    for k in range(starts[c], starts[c + 1]):
        d = neighbours[k]
        if s.placed[d] >= 0 or height[k] <= most:
            push(s, d)


def resolve(s: Cells) -> None:
    """Backtracks to the last decision that the marked failure depends on, and decides the opposite.

    Where the opposite has failed too, both failures together, and why there was no third way, explain a failure of
    the decisions before. Without any, the problem has no solution.
    """
    marked, pool, pool_marks, state = s.marked, s.pool, s.pool_marks, s.state
    level = state[DEPTH] - 1
    while level >= 0 and marked[level] == 0:
        take_back(s, level)
        level = level - 1
    if level < 0:
        state[STATUS] = IMPOSSIBLE
    else:
        take_back(s, level)
        marked[level] = 0
        if s.branch[level] == 1:
            store(s, level)
            block(s, s.chosen[level], level)
        else:
            for k in range(pool_marks[level], pool_marks[level + 1]):
                marked[pool[k]] = 1
            demand_choice(s, s.chosen[level])


def demand_choice(s: Cells, c: int) -> None:
    """Asks for an explanation why `c` rests on its base or on a buffer placed later, as nothing fits below it."""
    fresh(s)
    push(s, c)
    push_neighbours(s, c, s.base[c])


def store(s: Cells, level: int) -> None:
    """Moves the marks below `level` to the pool, to explain why its first branch failed."""
    marked, pool, state = s.marked, s.pool, s.state
    end = s.pool_marks[level]
    if end + level > state[POOL_ROOM]:
        state[STATUS] = FULL
    else:
        for other in range(level):
            if marked[other] == 1:
                pool[end] = other
                end = end + 1
                marked[other] = 0
    s.pool_marks[level + 1] = end


def propagate(s: Cells) -> None:
    """Propagates bounds that have changed in the sections from LOW to HIGH."""
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


def advance(s: Cells, nodes: int) -> None:
    """Searches this many nodes, or until `state[STATUS]` is FOUND, IMPOSSIBLE, or FULL (the arrays are too short)."""
    state = s.state
    stop = state[NODES] + nodes
    while state[STATUS] == RUNNING and state[NODES] < stop:
        if state[FAILED] == 0:
            descend(s)
        else:
            explain(s)
            resolve(s)
        if state[STATUS] == RUNNING and state[FAILED] == 0:
            propagate(s)


def descend(s: Cells) -> None:
    """Places one more buffer."""
    state = s.state
    state[NODES] = state[NODES] + 1
    level = state[DEPTH]
    if state[PLACED] == state[COUNT]:
        state[STATUS] = FOUND
    elif level >= state[LEVELS] or state[TRAIL] + TRAIL_ENTRY * (PASSES + 2) * state[COUNT] > state[TRAIL_ROOM]:
        state[STATUS] = FULL
    else:
        choose(s)
        if s.chosen[level] >= 0:
            s.pool_marks[level + 1] = s.pool_marks[level]
            place(s, s.chosen[level], level)
        else:
            state[FAILED] = 1
            fresh(s)
            for c in range(state[COUNT]):
                if s.placed[c] < 0:
                    push(s, c)
