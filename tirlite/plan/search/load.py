"""An instance, an order of preference and a capacity in; the cells of a search at its start out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from tirlite.plan.search.cells import (
    COUNT,
    DEPTH,
    FAILED,
    LEVELS,
    NODES,
    PLACED,
    POOL_ROOM,
    STACK,
    STATE_CELLS,
    STATUS,
    TIGHTEST,
    TRAIL,
    TRAIL_ENTRY,
    TRAIL_ROOM,
    Array,
    Cells,
)
from tirlite.plan.search.instance import Instance

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
    """Cells for searches of this instance; `restart` puts them to a start."""
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
    """For each buffer, and each of its neighbours, what that fills while the buffer lives."""
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
    """Puts a search to its start: buffers are preferred in this order, and there are this many units to fill."""
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
    """Where a search that has found a plan has put the buffers, in units."""
    return [int(cells.base[c]) for c in range(cells.state[COUNT])]
