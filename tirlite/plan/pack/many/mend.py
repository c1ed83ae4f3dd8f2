"""Repairs a packing of many blocks where it is highest, time by time.

Among very many short-lived blocks the load is highest at a few times only, and a packing is too high only there. The
blocks that are live at such a time, the core, are packed again by brief searches, as if there were no others; and then
the blocks in a ring on either side, between the core and all blocks that stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tirlite.plan.blocks import Block, Piece
from tirlite.plan.pack.many.brief import Brief
from tirlite.plan.search.engine import Engine
from tirlite.plan.search.instance import Instance, overlaps, whole
from tirlite.record import record

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Row = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

# The reach of cores and of their rings: blocks born before and after the highest block, per block that is live with it.
_REACHES = ((1, 6), (1, 10), (2, 12))
# The most blocks, and pairs of them that are live together, that are packed anew.
_MOST, _PAIRS = 4_000, 1_000_000
# Nodes of a search per block; failures before another capacity; nodes times blocks for one core or side of a ring.
_DEPTH, _PATIENCE, _PART = 5, 2, 15_000_000
# Nodes times blocks that preparing a search counts for, per block.
_OWN = 20_000


def mended(
    blocks: Sequence[Block], offsets: Sequence[int], goal: int, engine: Engine, work: int
) -> Iterator[list[int]]:
    """Offsets with ever less above `goal`: each time, the highest block is lowered.

    Ends where that fails, and once `work` nodes times blocks are used up.
    """
    import numpy as np

    scene = _Scene.of(blocks, np.array(offsets, np.int64), work)
    worst = int(scene.end.argmax())
    while scene.work > 0 and scene.end[worst] > goal and scene.lower(worst, goal, engine):
        worst = int(scene.end.argmax())
        yield scene.offset.tolist()


class _Period(NamedTuple):
    """The time from `low` to `high`."""

    low: int
    high: int


@record(frozen=False)
class _Scene:
    """Blocks with their lifetimes, sizes and offsets; their births in order; the `times` of births and deaths in order,
    with the bytes that are live from each of them on; and the work that is left.
    """

    blocks: Sequence[Block]
    low: Row
    high: Row
    size: Row
    offset: Row
    births: Row
    times: Row
    load: Row
    work: int

    @classmethod
    def of(cls, blocks: Sequence[Block], offset: Row, work: int) -> _Scene:
        import numpy as np

        low = np.array([block.pieces[0].low for block in blocks], np.int64)
        high = np.array([block.pieces[-1].high for block in blocks], np.int64)
        size = np.array([block.size for block in blocks], np.int64)
        times = np.unique(np.concatenate((low, high)))
        change = np.zeros(len(times), np.int64)
        np.add.at(change, np.searchsorted(times, low), size)
        np.subtract.at(change, np.searchsorted(times, high), size)
        return cls(blocks, low, high, size, offset, np.sort(low), times, change.cumsum(), work)

    @property
    def end(self) -> Row:
        return self.offset + self.size

    def lower(self, worst: int, goal: int, engine: Engine) -> bool:
        """Packs anew the blocks around the highest one; whether that made them lower."""
        before = self.offset
        for near, far in _REACHES:
            self.offset = before.copy()
            if self._are_packed(
                self._around(worst, near), self._around(worst, far), goal, int(self.end[worst]), engine
            ):
                return True
        self.offset = before
        return False

    def _are_packed(self, core: _Period, ring: _Period, bar: int, top: int, engine: Engine) -> bool:
        """Packs a core anew, and the ring on either side of it; whether all of that ends below `top`."""
        is_free = (self.low >= ring.low) & (self.high <= ring.high)
        for part in (core, _Period(ring.low, core.low), _Period(core.high, ring.high)):
            is_inside = (self.low < part.high) & (self.high > part.low) & (self.size > 0)
            found = self._packed(part, is_inside, is_free, bar, top, engine)
            if found is None:
                return False
            bar = max(bar, found)
            is_free &= ~is_inside
        return True

    def _packed(self, part: _Period, inside: Mask, free: Mask, bar: int, top: int, engine: Engine) -> int | None:
        """Packs anew the free blocks of those inside a period, up to `bar` if possible, and below `top` in any case.

        Returns the height, or None where no packing is found.
        """
        import numpy as np

        numbers = inside.nonzero()[0]
        if not len(numbers):
            return bar
        if len(numbers) > _MOST or self.work <= 0:
            return None
        blocks = [self._within(part, int(number), is_free=bool(free[number])) for number in numbers]
        if overlaps(blocks, _PAIRS) > _PAIRS:
            return None
        instance = whole(blocks)
        unit = instance.unit
        least = max(instance.floor, -(-bar // unit))
        if least * unit >= top:
            return None
        brief = Brief(instance, _weights(instance), _DEPTH, _PATIENCE, min(self.work, _PART))
        self.work -= brief.work + _OWN * len(blocks)
        found = brief.lowest(engine, least, least, least, top // unit)
        self.work += brief.work
        if found is None:
            return None
        self.offset[numbers[list(instance.numbers)]] = np.array(found[0], np.int64) * unit
        return found[1] * unit

    def _around(self, worst: int, reach: int) -> _Period:
        """A period around a block, at whose ends little is live."""
        import numpy as np

        low, high = int(self.low[worst]), int(self.high[worst])
        away = reach * int(((self.low < high) & (self.high > low)).sum())
        first, last = np.searchsorted(self.births, [low, high])
        start, stop = int(self.times[0]), int(self.times[-1])
        if first > away:
            start = self._least(int(self.births[first - away]), int(self.births[first - away // 2]))
        if last + away < len(self.births):
            stop = self._least(int(self.births[last + away // 2]), int(self.births[last + away]))
        return _Period(start, stop)

    def _least(self, low: int, high: int) -> int:
        """The time from `low` to `high` just before which the least is live; some block is born before it."""
        import numpy as np

        first, last = np.searchsorted(self.times, [low, high], "right")
        return int(self.times[max(first - 1, 1) + int(self.load[max(first - 2, 0) : max(last - 1, 1)].argmin())])

    def _within(self, part: _Period, number: int, *, is_free: bool) -> Block:
        """The part of a block in a period; unless it is free, it keeps its offset."""
        block = self.blocks[number]
        pieces = [
            Piece(max(low, part.low), min(high, part.high), size)
            for low, high, size in block.pieces
            if low < part.high and high > part.low
        ]
        return Block(tuple(pieces), block.align, block.fixed if is_free else int(self.offset[number]))


def _weights(instance: Instance) -> Sequence[Sequence[float]]:
    widths = [float(width) for width in instance.widths]
    spans = [float(last - first) for first, last in instance.spans]
    sizes = [float(size) for size in instance.sizes]
    return (
        widths,
        spans,
        [span * size**0.5 for span, size in zip(spans, sizes, strict=True)],
        [width * size**0.25 for width, size in zip(widths, sizes, strict=True)],
    )
