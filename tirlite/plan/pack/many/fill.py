"""Fills terrain until all blocks have offsets: the lowest stretch of the skyline is filled next.

Of the blocks that fit into a stretch those go first that live where the most is still to be placed, and of these the
one of highest rank. Where no block fits that lives there, what lies around is filled up to the lower of its sides: that
much is lost. A block beside which too much would be lost lets others go first.
"""

from __future__ import annotations

from tirlite.plan.pack.many.lookup import find_block, find_first_birth, find_last_end, find_most
from tirlite.plan.pack.many.terrain import FAR, FIRST, FOUND, LAST, LEAVES, LEFT, MOST, SECTIONS, WORK, Terrain


def fill(s: Terrain, capacity: int, choices: int) -> None:
    """Places all blocks, each as one of so many `choices`, so that they come to end by `capacity` if that can be.

    Where it takes more work than there is, blocks are left over.
    """
    lowest, state = s.lowest, s.state
    while state[LEFT] > 0 and state[WORK] > 0:
        node = 1
        while node < state[SECTIONS]:
            node = 2 * node
            if lowest[node + 1] < lowest[node]:
                node = node + 1
        low = node - state[SECTIONS]
        level = lowest[node]
        height = level // 2
        high = s.end[low]
        if level % 2 == 1:
            # Something is left to be placed, so that one side is higher.
            state[FIRST] = low
            state[LAST] = high
            left_side(s, low, FAR)
            right_side(s, high, state[FOUND])
            level = 2 * state[FOUND]
        else:
            choose(s, low, height, capacity, choices)
            level = level + 1
            c = state[FOUND]
            if c >= 0:
                bottom = (height + s.align[c] - 1) // s.align[c] * s.align[c]
                s.offset[c] = bottom
                level = 2 * (bottom + s.size[c])
                take(s, c)
            part(s, low, state[FIRST], 2 * height)
            part(s, state[LAST], high, 2 * height)
        put(s, state[FIRST], state[LAST], level)


def choose(s: Terrain, low: int, height: int, capacity: int, choices: int) -> None:
    """Finds the block that goes next of those that fit into a stretch, and where it lives; or -1, and what fits none.

    It lives where the most is still to be placed. What is beside a block and can be filled no more is lost up to the
    lower of its sides. The first of some blocks of highest rank beside which nothing goes beyond `capacity` for that is
    taken, or the one with the least.
    """
    state = s.state
    high = s.end[low]
    find_most(s, low, high)
    section = state[FOUND]
    below = FAR
    least = FAR
    chosen = -1
    left = choices
    while left > 0 and least > 0:
        left = left - 1
        find_block(s, s.first[low], section, high, below)
        c = state[FOUND]
        if c >= 0:
            below = s.rank[c]
            over = 0
            if s.low[c] > low:
                find_last_end(s, low, s.low[c])
                if state[FOUND] < s.low[c]:
                    find_most(s, state[FOUND], s.low[c])
                    left_side(s, low, height + s.size[c])
                    over = state[MOST] + state[FOUND] - capacity
            if s.high[c] < high:
                find_first_birth(s, s.high[c], high)
                if state[FOUND] > s.high[c]:
                    find_most(s, s.high[c], state[FOUND])
                    right_side(s, high, height + s.size[c])
                    over = max(over, state[MOST] + state[FOUND] - capacity)
            if over < least:
                least = max(over, 0)
                chosen = c
                state[FIRST] = s.low[c]
                state[LAST] = s.high[c]
        else:
            left = 0
    if chosen < 0:
        find_last_end(s, low, section)
        state[FIRST] = state[FOUND]
        find_first_birth(s, section + 1, high)
        state[LAST] = state[FOUND]
    state[FOUND] = chosen


def left_side(s: Terrain, low: int, most: int) -> None:
    """Finds the height of what is on the left of a stretch, `most` if that is lower or there is nothing."""
    state = s.state
    state[FOUND] = most
    if low > 0:
        state[FOUND] = min(most, s.lowest[state[SECTIONS] + s.begin[low]] // 2)


def right_side(s: Terrain, high: int, most: int) -> None:
    """The same on the right."""
    state = s.state
    state[FOUND] = most
    if s.end[high] > high:
        state[FOUND] = min(most, s.lowest[state[SECTIONS] + high] // 2)


def take(s: Terrain, c: int) -> None:
    """Takes a block that has its place out of the trees."""
    best, nearest, farthest, rest, more, state = s.best, s.nearest, s.farthest, s.rest, s.more, s.state
    state[LEFT] = state[LEFT] - 1
    node = state[LEAVES] + c
    best[node] = -1
    nearest[node] = FAR
    farthest[node] = -1
    node = node // 2
    while node > 0:
        best[node] = max(best[2 * node], best[2 * node + 1])
        nearest[node] = min(nearest[2 * node], nearest[2 * node + 1])
        farthest[node] = max(farthest[2 * node], farthest[2 * node + 1])
        node = node // 2
    size = s.size[c]
    left = s.low[c] + state[SECTIONS]
    right = s.high[c] - 1 + state[SECTIONS]
    rest[left] = rest[left] - size
    if left < right:
        rest[right] = rest[right] - size
    # On the way up whole subtrees between the two ends are lowered at once.
    while left > 1:
        if right - left > 1:
            if left % 2 == 0:
                rest[left + 1] = rest[left + 1] - size
                more[left + 1] = more[left + 1] - size
            if right % 2 == 1:
                rest[right - 1] = rest[right - 1] - size
                more[right - 1] = more[right - 1] - size
        left = left // 2
        right = right // 2
        rest[left] = max(rest[2 * left], rest[2 * left + 1]) + more[left]
        if left < right:
            rest[right] = max(rest[2 * right], rest[2 * right + 1]) + more[right]


def put(s: Terrain, first: int, last: int, level: int) -> None:
    """Makes sections a stretch, one with its neighbours of the same level."""
    end, begin, lowest = s.end, s.begin, s.lowest
    leaves = s.state[SECTIONS]
    low = first
    high = last
    if low > 0 and lowest[leaves + begin[low]] == level:
        low = begin[low]
        mark(s, first, FAR)
    if end[high] > high and lowest[leaves + high] == level:
        mark(s, high, FAR)
        high = end[high]
    part(s, low, high, level)


def part(s: Terrain, low: int, high: int, level: int) -> None:
    """Makes sections from `low` to `high` a stretch of this level, if there are any."""
    if low < high:
        s.end[low] = high
        s.begin[high] = low
        mark(s, low, level)


def mark(s: Terrain, section: int, level: int) -> None:
    """Sets the level of the stretch that begins in a section, or FAR where none does."""
    lowest = s.lowest
    node = s.state[SECTIONS] + section
    lowest[node] = level
    node = node // 2
    while node > 0:
        lowest[node] = min(lowest[2 * node], lowest[2 * node + 1])
        node = node // 2
