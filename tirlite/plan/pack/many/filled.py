"""Packs very many blocks on an engine, by some runs of the fill with different ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tirlite.plan.pack.blocks import Block
from tirlite.plan.pack.many.fill import fill
from tirlite.plan.pack.many.terrain import FAR, LEFT, Terrain, Times
from tirlite.plan.search.engine import Engine

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tirlite.plan.pack.many.terrain import Row

# Ranks are lives times sizes to these powers; further runs disturb the best of them by up to this factor.
_POWERS = (0.25, 0.0, 1.0, 0.5)
_NOISE, _SEED = 0.8, 6_121
# What may be over the floor, as parts of it: runs take them in turn.
_OVER = (0.005, 0.02, 0.01)
# Blocks that are looked at beside what they would leave unfilled, before one is placed.
_CHOICES = 8
# Nodes of trees that may be looked at, by block.
_WORK = 20_000
# Ranks that are equal are told apart in an order that has nothing to do with time, so that stretches are halved.
_SCATTER = 2_654_435_761


def fillings(blocks: Sequence[Block], engine: Engine, runs: int) -> Iterator[list[int]]:
    """Offsets of blocks without fixed ones, by so many runs; none where numbers are too large."""
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

    `load` are bytes in each section, those of the blocks or more, that show where the most is to be placed.
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
