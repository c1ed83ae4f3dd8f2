"""Advances the search itself, some nodes at a time, in its cells.

Source: branching on what lies lowest, as in MiniMalloc (Moffitt, ASPLOS 2023), made binary (a buffer rests here, or on
something placed later), so that decisions far apart in time do not depend on each other; conflict-directed
backjumping (Prosser, 1993) over them.
"""

from __future__ import annotations

from tirlite.plan.search.cells import (
    COUNT,
    DEPTH,
    FAILED,
    FOUND,
    FULL,
    LEVELS,
    NODES,
    PASSES,
    PLACED,
    RUNNING,
    STATUS,
    TRAIL,
    TRAIL_ENTRY,
    TRAIL_ROOM,
    Cells,
)
from tirlite.plan.search.conflict import explain, fresh, push, resolve
from tirlite.plan.search.moves import choose, place
from tirlite.plan.search.propagate import propagate


def advance(s: Cells, nodes: int) -> None:
    """Goes on for so many nodes, or until `state[STATUS]` is FOUND, IMPOSSIBLE, or FULL (the arrays are too short)."""
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
