"""Cells: the state of a search as arrays of integers, so that it can stop, continue, and run as a kernel.

The rules of the search (`choose`, `place`, `propagate`, `conflict`, `advance`) are written in the part of Python that
is also kernel language: loops, branches, integers and arrays. They run as they are, on lists, and compiled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Protocol

from tirlite.plan.search.instance import Instance
from tirlite.record import record


class Array(Protocol):
    """A list of integers, or an array of 64-bit integers."""

    def __getitem__(self, index: int, /) -> int: ...

    def __setitem__(self, index: int, value: int, /) -> None: ...


# What stands in `state`.
COUNT, PLACED, DEPTH, NODES, STATUS, FAILED, TRAIL, STACK, STAMP = range(9)
LOW, HIGH, FIRST, LAST, PEAK, LEVELS, TRAIL_ROOM, POOL_ROOM, TIGHTEST = range(9, 18)
STATE_CELLS = 18

# What `state[STATUS]` can be.
RUNNING, FOUND, IMPOSSIBLE, FULL = range(4)

# Cells that one entry of the trail takes.
TRAIL_ENTRY = 5
# The most passes over the blocked buffers to tighten their bounds.
PASSES = 4


@record(frozen=False)
class Cells:
    """All arrays of one search. Buffers, sections and levels are numbers from 0; -1 means none.

    A section is a set of buffers that live together and that no other such set contains. Rows of different lengths
    lie one after the other, that of `i` from `starts[i]` to `starts[i + 1]`.
    """

    # The problem, by buffer: alignment, the highest offset allowed, order of preference, and the equal buffer that is
    # to lie below it (`before`) or above (`after`).
    align: Array
    latest: Array
    rank: Array
    before: Array
    after: Array
    # Its neighbours, which live at some time when it does, what it fills at most while each of them lives, and what
    # that fills while it lives; its first section, the one after its last, all, and what it fills in each.
    neighbour_starts: Array
    neighbours: Array
    own_height: Array
    other_height: Array
    first: Array
    last: Array
    section_starts: Array
    sections: Array
    fill: Array
    # By section: its buffers, and the height that these may fill.
    member_starts: Array
    members: Array
    height: Array
    # The state, by buffer: the lowest offset above all that is placed below it, and who stands there; the lowest
    # offset that is possible; the levels at which it was placed, and at which it was decided not to rest on `base`.
    base: Array
    support: Array
    least: Array
    placed: Array
    blocked: Array
    # By section: the sizes of its buffers that are not placed.
    rest: Array
    # By level, one a decision: its buffer, 1 for placing and 2 for blocking it, and how long trail and pool were.
    chosen: Array
    branch: Array
    trail_marks: Array
    pool_marks: Array
    # What to restore; the decisions that explain failures; marks and a stack for finding these.
    trail: Array
    pool: Array
    marked: Array
    explained: Array
    stack: Array
    state: Array


NAMES = tuple(field.name for field in fields(Cells))


# Levels by buffer, entries of the trail by buffer beyond one for each neighbour, and the most cells of the pool. A
# search that needs more ends.
_LEVELS = 8
_TRAIL = 16
_POOL = 1 << 18


class Store(Protocol):
    """What makes the arrays of an engine."""

    def array(self, values: Sequence[int], /) -> Array: ...

    def zeros(self, count: int, /) -> Array: ...


def load(instance: Instance, store: Store) -> Cells:
    """Cells for searches of this instance; `restart` begins a search."""
    count = len(instance.sizes)
    levels = _LEVELS * count + 64
    trail = TRAIL_ENTRY * (sum(map(len, instance.neighbours)) + _TRAIL * count + 64)
    pool = min(levels * (levels + 1) // 2, _POOL)
    after = [-1] * count
    for c, other in enumerate(instance.before):
        if other >= 0:
            after[other] = c
    state = [0] * STATE_CELLS
    state[COUNT], state[LEVELS], state[TRAIL_ROOM], state[POOL_ROOM] = count, levels, trail, pool
    own: list[list[int]] = [[] for _ in range(count)]
    fill: list[list[int]] = [[] for _ in range(count)]
    for section, members in enumerate(instance.sections):
        for c, size in zip(members, instance.fills[section], strict=True):
            own[c].append(section)
            fill[c].append(size)
    zeros = dict.fromkeys(("rank", "latest", "base", "support", "least", "placed", "blocked"), count)
    zeros |= dict.fromkeys(("explained", "stack"), count)
    zeros |= dict.fromkeys(("chosen", "branch", "trail_marks", "pool_marks", "marked"), levels + 2)
    zeros |= {"trail": trail, "pool": pool}
    zeros |= dict.fromkeys(("height", "rest"), len(instance.sections))
    return Cells(
        align=store.array(instance.aligns),
        before=store.array(instance.before),
        after=store.array(after),
        neighbour_starts=store.array(_starts(instance.neighbours)),
        neighbours=store.array([d for row in instance.neighbours for d in row]),
        own_height=store.array([height for row in instance.heights for height in row]),
        other_height=store.array(_turned(instance)),
        first=store.array([first for first, _ in instance.spans]),
        last=store.array([last for _, last in instance.spans]),
        section_starts=store.array(_starts(own)),
        sections=store.array([section for row in own for section in row]),
        fill=store.array([size for row in fill for size in row]),
        member_starts=store.array(_starts(instance.sections)),
        members=store.array([c for row in instance.sections for c in row]),
        state=store.array(state),
        **{name: store.zeros(length) for name, length in zeros.items()},
    )


def _turned(instance: Instance) -> list[int]:
    """For each buffer, and each of its neighbours, what the neighbour fills while the buffer is live."""
    rows: list[list[int]] = [[] for _ in instance.sizes]
    for row, heights in zip(instance.neighbours, instance.heights, strict=True):
        for d, height in zip(row, heights, strict=True):
            rows[d].append(height)
    return [height for row in rows for height in row]


def _starts(rows: Iterable[Sequence[int]]) -> list[int]:
    starts = [0]
    for row in rows:
        starts.append(starts[-1] + len(row))
    return starts


def restart(cells: Cells, instance: Instance, order: Sequence[int], capacity: int) -> None:
    """Begins a search for a packing of this height, which prefers buffers in this order."""
    state = cells.state
    for level in range(state[DEPTH] + 1):
        cells.marked[level] = 0
    for cell in (DEPTH, PLACED, NODES, STATUS, FAILED, TRAIL, STACK):
        state[cell] = 0
    for section, slack in enumerate(instance.slacks):
        cells.height[section] = capacity + slack
        cells.rest[section] = instance.loads[section]
    for position, c in enumerate(order):
        start = instance.fixed[c]
        latest = capacity - instance.nets[c]
        cells.rank[c] = position
        cells.base[c] = cells.least[c] = start or 0
        cells.latest[c] = latest if start is None else min(start, latest)
        cells.support[c] = cells.placed[c] = cells.blocked[c] = -1
    is_late = any(cells.least[c] > cells.latest[c] for c in range(len(order)))
    state[TIGHTEST] = -1 if is_late else min((cells.latest[c] for c in range(len(order))), default=0)


def offsets(cells: Cells) -> list[int]:
    """The offsets of the buffers in units, after a search that has found a packing."""
    return [int(cells.base[c]) for c in range(cells.state[COUNT])]
