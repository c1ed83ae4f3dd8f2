"""Tiling: the sizes in a schedule of contractions, by the registers, caches and workers of a target."""

from __future__ import annotations

from functools import partial
from heapq import heapreplace

from tirlite.ir import For
from tirlite.record import record
from tirlite.target import Target

# A panel pays from this part of the second cache on: of what fits into it rows are read as fast where they lie. Where
# lanes are not neighbours in memory, or less than a row of a tile, loops go by few vectors or none without a panel; and
# where they are more than this many rows of a tile, by more vectors than registers hold with what is added to them.
_PART_OF_CACHE = 32
_PART_WITHOUT_VECTORS = 256
WIDE_ROWS = 4
# What lies apart in memory is copied or stored element by element, which this many tiles of rows repay.
_STRIDED_TILES = 4
# The bytes of the shortest vectors that processors have.
_LEAST_VECTOR = 16
# Rows go to workers by blocks of so many tiles, each of which packs its panels anew: of more for few workers, who have
# enough to do with panels alone.
TILES_OF_BLOCK = 32
_MOST_TILES_OF_BLOCK = 128
_TILES_OF_ALL = 256
# The copy of a panel takes as long as so many rows of sums. So many panels for each worker are shared out evenly: with
# rows in one block, results may go in place of what is added to them.
_COPY = 4
_MANY_PANELS = 4
# Fewer products of narrow integers take less in place than copies by groups do, and what is around their tiles.
_LEAST_PRODUCTS = 4096


@record
class Tiling:
    """The numbers of a schedule: the rows of a tile of registers, the bytes of one of its rows, and of one vector.

    Packed is an operand of `least_bytes` or more, where `least_rows` read it; of `least_strided` where loops go by few
    vectors without a copy, and of one vector where they go by none, for columns that fill none; and where
    `strided_rows` read it if it is copied, or sums are stored, element by element. Rows share a panel by blocks of
    `block_tiles` tiles. `dots` are the dot products of the processor, by the types of their operands, which
    `least_products` repay, and `masks_bytes` says that it leaves bytes out by a mask.
    """

    rows: int
    row_bytes: int
    vector_bytes: int
    least_rows: int
    least_bytes: int
    least_strided: int
    strided_rows: int
    block_tiles: int = TILES_OF_BLOCK
    workers: int = 1
    dots: tuple[str, ...] = ()
    masks_bytes: bool = False
    has_tiles: bool = False
    least_products: int = _LEAST_PRODUCTS

    @classmethod
    def of(cls, target: Target) -> Tiling:
        """What suits a processor's registers and caches, and this many workers."""
        processor = target.processor
        rows, vectors = processor.tile
        cache, vector = processor.caches[1], processor.vector_bytes
        return cls(
            rows,
            vectors * vector,
            vector,
            rows,
            cache // _PART_OF_CACHE,
            cache // _PART_WITHOUT_VECTORS,
            _STRIDED_TILES * rows,
            min(max(_TILES_OF_ALL // target.workers, TILES_OF_BLOCK), _MOST_TILES_OF_BLOCK),
            target.workers,
            processor.dots,
            processor.has_masks(1),
            processor.has_tiles,
        )

    def lanes(self, element: int, columns: For) -> int:
        """The lanes in a row of a tile: of columns that are known to be few, no more vectors than hold them."""
        full, least = self.row_bytes // element, max(2, min(self.vector_bytes, _LEAST_VECTOR) // element)
        if not is_known(columns) or count_of(columns) > full // 2:
            return full
        return next(lanes for lanes in (least << power for power in range(9)) if lanes >= min(count_of(columns), full))

    def rows_of_block(self, rows: int, panels: list[int], tiles: int, tile: int) -> int:
        """How many of this many rows share a panel: whole tiles of `tile` rows, this many `tiles` at most.

        They are such that the workers are done soonest: each block of rows copies its panels, of this many lanes, anew.
        Of as soon, blocks of as many rows: each leaves the same rest, so that results may go in place.
        """
        fewest = max(1, -(-rows // (tiles * tile)))
        most = fewest if self.workers == 1 or len(panels) > _MANY_PANELS * self.workers else fewest + 2 * self.workers
        blocks = range(fewest, most + 1)
        whole, even = ([-(-rows // (count * each)) * each for count in blocks] for each in (tile, 1))
        sizes = [by for pair in zip(even, whole, strict=True) for by in pair if by in whole or rows % by == 0]
        return min(sizes, key=partial(self._time, rows, panels, tile))

    def _time(self, rows: int, panels: list[int], tile: int, by: int) -> int:
        """How long the last worker takes that has blocks of this many rows, where the next one goes to who is free."""
        busy = [0] * self.workers
        for first in range(0, rows, by):
            count = min(by, rows - first)
            for lanes in panels:
                heapreplace(busy, busy[0] + lanes * (time_of_rows(count, tile, tile) + _COPY))
        return max(busy)

    def figures(self, lanes: int, element: int, together: int) -> str:
        """What decided the schedule of a contraction with this many lanes in a row of a tile, of this many bytes each.

        Where it goes by the tiles of the processor, this many rows are taken `together`, else 0.
        """
        rows, vectors = together or self.rows_of(lanes, element), max(1, lanes * element // self.vector_bytes)
        takes = f"takes {rows * vectors} vectors of {self.vector_bytes} bytes"
        tile = f"a tile of {rows} x {lanes} sums {'goes by those of the processor' if together else takes}"
        pays = f"a panel pays from {self.least_bytes} bytes on, 1/{_PART_OF_CACHE} of the second cache"
        return f"{tile}; {pays}; {self.block_tiles} tiles of rows share one"

    def rows_of(self, lanes: int, element: int) -> int:
        """The rows of a tile with this many lanes: those of few vectors are more, so that as many sums are in work."""
        return self.rows if 2 * lanes > self.row_bytes // element else 2 * self.rows


def time_of_rows(count: int, tile: int, most: int) -> int:
    """How long this many rows take for each term by tiles of `tile`, what is left as one of its own, where `most` fit.

    A tile takes as long as its rows, or as a small one waits for its own sums, and one more for what it loads beside.
    """
    rest, least = count % tile, most // 2
    return count // tile * (max(tile, least) + 1) + (max(rest, least) + 1 if rest else 0)


def is_known(loop: For) -> bool:
    return loop.values is not None


def count_of(loop: For) -> int:
    """How often a loop runs, where constants tell it; else once, for want of better."""
    return 1 if loop.values is None else len(loop.values)
