"""Why a bound holds: the levels of the decisions behind it, and the way back to the last of them. Cells in and out."""

from __future__ import annotations

from tirlite.plan.search.cells import DEPTH, FULL, IMPOSSIBLE, POOL_ROOM, STACK, STAMP, STATUS, Cells
from tirlite.plan.search.moves import block, take_back

_FAR = 1 << 62


def fresh(s: Cells) -> None:
    """Starts an explanation: nothing is explained yet."""
    s.state[STAMP] = s.state[STAMP] + 1
    s.state[STACK] = 0


def push(s: Cells, c: int) -> None:
    """Demands that it be explained why `c` lies no lower."""
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
    """Demands explanations for the neighbours of `c`: those placed, and others of `most` units at most below it."""
    neighbours, starts, height = s.neighbours, s.neighbour_starts, s.other_height
    for k in range(starts[c], starts[c + 1]):
        d = neighbours[k]
        if s.placed[d] >= 0 or height[k] <= most:
            push(s, d)


def resolve(s: Cells) -> None:
    """Goes back to the last decision that the marked failure depends on, and decides the opposite.

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
    """Demands to know why `c` rests on its base or on something placed later, and nothing else fits below its base."""
    fresh(s)
    push(s, c)
    push_neighbours(s, c, s.base[c])


def store(s: Cells, level: int) -> None:
    """Moves the marks below `level` to the pool, as the explanation why its first branch failed."""
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
