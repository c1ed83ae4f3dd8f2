"""Looks ranges of blocks or sections up in the trees of a terrain, and puts the answer into `state[FOUND]`.

Each takes a few steps for each level of a tree, and more where many blocks are born in the range and end elsewhere.
"""

from __future__ import annotations

from tirlite.plan.pack.many.terrain import COUNT, FOUND, LEAVES, MOST, SECTIONS, WORK, Terrain


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
    """Finds the last section in which blocks that are born in or after `low` have all ended that end by `section`.

    That is `low` if there are none.
    """
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
    """Puts on the stack the fewest nodes of a tree that have the leaves from `start` to `stop` below them."""
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
