"""Places blocks always at the lowest stretch of the skyline: the fill.

Of the blocks that fit into a stretch, it takes those that are live where the most is still to be placed, and of these
the one of highest rank. If no block that is live there fits, the stretch is raised to the lower of its neighbours, and
that room is lost. A block beside which too much room would be lost waits for others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tirlite.plan.blocks import Block
from tirlite.plan.pack.many.terrain import (
    COUNT,
    FAR,
    FIRST,
    FOUND,
    LAST,
    LEAVES,
    LEFT,
    MOST,
    SECTIONS,
    WORK,
    Terrain,
    Times,
)
from tirlite.plan.search.engine import Engine

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tirlite.plan.pack.many.terrain import Row


def find_block(s: Terrain, start: int, section: int, high: int, below: int) -> None:
    """Finds the block of highest rank below `below` that lives in `section` and ends by `high`; -1 if there is none.

    It is among those from `start` on, born in `section` or before.
    """
    best, nearest, farthest, stack, state = s.best, s.nearest, s.farthest, s.stack, s.state
    leaves = state[LEAVES]
    found = -1
    rank = -1
    cover(s, start + leaves, s.first[section + 1] + leaves)
    count = state[COUNT]
    while count > 0:
        count = count - 1
        state[WORK] = state[WORK] - 1
        node = stack[count]
        if best[node] > rank and nearest[node] <= high and farthest[node] > section:
            if node < leaves:
                better = 2 * node
                if best[better + 1] > best[better]:
                    better = better + 1
                stack[count] = 4 * node + 1 - better
                stack[count + 1] = better
                count = count + 2
            elif best[node] < below:
                rank = best[node]
                found = node - leaves
    state[FOUND] = found


def find_last_end(s: Terrain, low: int, section: int) -> None:
    """Finds the last end of blocks that are born in or after `low` and end by `section`; `low` if there are none."""
    nearest, farthest, stack, state = s.nearest, s.farthest, s.stack, s.state
    leaves = state[LEAVES]
    last = low
    cover(s, s.first[low] + leaves, s.first[section] + leaves)
    count = state[COUNT]
    while count > 0:
        count = count - 1
        state[WORK] = state[WORK] - 1
        node = stack[count]
        if nearest[node] <= section and farthest[node] > last:
            if farthest[node] <= section:
                last = farthest[node]
            elif node < leaves:
                stack[count] = 2 * node
                stack[count + 1] = 2 * node + 1
                count = count + 2
    state[FOUND] = last


def find_first_birth(s: Terrain, low: int, high: int) -> None:
    """Finds the first section from `low` on in which a block is born that ends by `high`; `high` if there is none."""
    nearest, state = s.nearest, s.state
    leaves = state[LEAVES]
    found = high
    if s.first[low] < leaves:
        node = s.first[low] + leaves
        # Up from what is a right child, and on to the next subtree; none is left above the root.
        while node > 0 and nearest[node] > high:
            state[WORK] = state[WORK] - 1
            while node % 2 == 1:
                node = node // 2
            if node > 0:
                node = node + 1
        if node > 0:
            while node < leaves:
                node = 2 * node
                if nearest[node] > high:
                    node = node + 1
            found = s.low[node - leaves]
    state[FOUND] = found


def find_most(s: Terrain, low: int, high: int) -> None:
    """Finds a section from `low` to `high` where the most bytes are not placed yet, and puts these into MOST."""
    rest, more, stack, state = s.rest, s.more, s.stack, s.state
    leaves = state[SECTIONS]
    most = -1
    best = 0
    cover(s, low + leaves, high + leaves)
    for k in range(state[COUNT]):
        node = stack[k]
        amount = rest[node]
        above = node // 2
        while above > 0:
            amount = amount + more[above]
            above = above // 2
        if amount > most:
            most = amount
            best = node
    while best < leaves:
        best = 2 * best
        if rest[best + 1] > rest[best]:
            best = best + 1
    state[MOST] = most
    state[FOUND] = best - leaves


def cover(s: Terrain, start: int, stop: int) -> None:
    """Puts the fewest nodes of a tree on the stack that cover its leaves from `start` to `stop`."""
    stack = s.stack
    left = start
    right = stop
    count = 0
    while left < right:
        if left % 2 == 1:
            stack[count] = left
            count = count + 1
            left = left + 1
        if right % 2 == 1:
            right = right - 1
            stack[count] = right
            count = count + 1
        left = left // 2
        right = right // 2
    s.state[COUNT] = count


def fill(s: Terrain, capacity: int, choices: int) -> None:
    """Places all blocks, each the best of this many `choices`, to end by `capacity` if possible.

    If it takes more work than there is, blocks are left over.
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
    """Finds the next block for a stretch, and its sections; or -1, and sections that no block fits into.

    The block is live where the most is still to be placed. Sections beside it that no other block fits into are lost up
    to the lower of their neighbours. Of some blocks of highest rank, it takes the first that makes nothing end above
    `capacity` in that way, or else the one that makes the least.
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
    """Finds the height on the left of a stretch, at most `most`, which it is where there is nothing."""
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
    """Removes a block that is placed from the trees."""
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
    # On the way up, whole subtrees between the two ends are lowered at once.
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
    """Makes sections a stretch, joined with neighbours of the same level."""
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
    """Makes the sections from `low` to `high`, if any, a stretch of this level."""
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


# Scores are lives times sizes to these powers; further runs disturb the best of them by up to this factor.
_POWERS = (0.25, 0.0, 1.0, 0.5)
_NOISE, _SEED = 0.8, 6_121
# By how much the capacity is above the floor, as parts of it, in turn.
_OVER = (0.005, 0.02, 0.01)
# Blocks that are compared by the room that they would lose, before one is placed.
_CHOICES = 8
# Nodes of trees that may be looked at, per block.
_WORK = 20_000
# Ties of scores are broken in an order unrelated to time, so that stretches are divided about in the middle.
_SCATTER = 2_654_435_761


def fillings(blocks: Sequence[Block], engine: Engine, runs: int) -> Iterator[list[int]]:
    """Offsets of blocks without fixed offsets, by this many runs; none where numbers are too large."""
    import numpy as np

    most = max((max(-block.low, block.high) for block in blocks), default=0)
    if max(most, 2 * sum(block.size + block.align for block in blocks)) > FAR:
        return
    times = Times.of(blocks)
    count, floor = len(times.order), int(times.load.max(initial=0))
    noise = np.random.default_rng(_SEED)
    best: npt.NDArray[np.float64] | None = None
    lowest = FAR
    for run in range(runs):
        if best is None or run < len(_POWERS):
            score = times.life * times.size.astype(np.float64) ** _POWERS[run]
        else:
            score = best * noise.uniform(_NOISE, 1, count)
        found = filled(times, score, times.load, floor + int(floor * _OVER[run % len(_OVER)]), engine)
        if found is None:
            return
        top = int((found + times.size).max(initial=0))
        if top < lowest:
            lowest, best = top, score
        offsets = np.zeros(len(blocks), np.int64)
        offsets[times.order] = found
        yield offsets.tolist()


def filled(times: Times, score: npt.NDArray[np.float64], load: Row, capacity: int, engine: Engine) -> Row | None:
    """The offsets of one run, in which the highest scores go first; None where it takes too long.

    `load` are the bytes to be placed in each section, of these blocks and perhaps of others.
    """
    import numpy as np

    count = len(score)
    if 2 * int(times.size.sum() + times.align.sum()) > engine.largest:
        return None
    ranks = np.empty(count, np.int64)
    ranks[np.lexsort((np.arange(count) * _SCATTER % (1 << 32), score))] = np.arange(count)
    terrain = Terrain.of(times, ranks, load, _WORK * count)
    engine.run(fill, terrain, capacity, _CHOICES)
    return None if terrain.state[LEFT] else np.array(terrain.offset)
