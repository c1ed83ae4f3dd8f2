"""Tiling: the sizes in a schedule of contractions, by the registers, caches and workers of a target."""

from __future__ import annotations

from functools import partial
from heapq import heapreplace

from tirlite.ir import For
from tirlite.record import record
from tirlite.target import Target

# Packing pays if the operand exceeds this part of the L2 cache; a smaller one is read as fast in place. The second part
# is for columns that have few vectors or none unless packed, as they are not contiguous or fill no row of a tile, and
# for more than this many rows of a tile, whose vectors and sums would not fit into registers together.
_PART_OF_CACHE = 32
_PART_WITHOUT_VECTORS = 256
WIDE_ROWS = 4
# Strided elements are copied or stored one by one, which pays for at least this many tiles of rows.
_STRIDED_TILES = 4
# The bytes of the shortest vectors of processors.
_LEAST_VECTOR = 16
# Tiles in a block of rows, the unit of work, which packs its own panels. Few workers get larger blocks, since panels
# alone are enough work for them.
TILES_OF_BLOCK = 32
_MOST_TILES_OF_BLOCK = 128
_TILES_OF_ALL = 256
# Packing a panel takes as long as computing this many rows. With more panels than this per worker, these balance the
# load, and rows stay in one block: results may then replace what is added to them in place.
_COPY = 4
_MANY_PANELS = 4
# For fewer products of narrow integers, packing by groups and the overhead of tiles cost more than they save.
_LEAST_PRODUCTS = 4096


@record
class Tiling:
    """The sizes for schedules of contractions: rows of a register tile, bytes of a row of it, and bytes of a vector.

    An operand is packed if it has `least_bytes` and at least `least_rows` rows use it; `least_strided` bytes if loops
    would have few vectors without a copy; `strided_rows` rows if it is copied, or sums are stored, element by element.
    Blocks of `block_tiles` tiles of rows share a panel. `dots` are the processor's dot products, by operand types, used
    from `least_products` products on; `masks_bytes` says that it can mask bytes.
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
        """The sizes for a processor's registers and caches and a number of workers."""
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
        """The lanes in a row of a tile; for few columns of known number, only as many vectors as hold them."""
        full, least = self.row_bytes // element, max(2, min(self.vector_bytes, _LEAST_VECTOR) // element)
        if not is_known(columns) or count_of(columns) > full // 2:
            return full
        return next(lanes for lanes in (least << power for power in range(9)) if lanes >= min(count_of(columns), full))

    def rows_of_block(self, rows: int, panels: list[int], tiles: int, tile: int) -> int:
        """How many of `rows` share a panel: whole tiles of `tile` rows, at most `tiles` of them.

        Minimises the time until the last worker is done, as each block packs its panels (of these lanes) again. Among
        equals, prefers blocks of equal size, so that all have the same remainder.
        """
        fewest = max(1, -(-rows // (tiles * tile)))
        most = fewest if self.workers == 1 or len(panels) > _MANY_PANELS * self.workers else fewest + 2 * self.workers
        blocks = range(fewest, most + 1)
        whole, even = ([-(-rows // (count * each)) * each for count in blocks] for each in (tile, 1))
        sizes = [by for pair in zip(even, whole, strict=True) for by in pair if by in whole or rows % by == 0]
        return min(sizes, key=partial(self._time, rows, panels, tile))

    def _time(self, rows: int, panels: list[int], tile: int, by: int) -> int:
        """When the last worker is done with blocks of `by` rows, each assigned to the first worker that is free."""
        busy = [0] * self.workers
        for first in range(0, rows, by):
            count = min(by, rows - first)
            for lanes in panels:
                heapreplace(busy, busy[0] + lanes * (time_of_rows(count, tile, tile) + _COPY))
        return max(busy)

    def figures(self, lanes: int, element: int, together: int) -> str:
        """A note on the schedule of a contraction with this many lanes in a row of a tile, of `element` bytes each.

        `together` are the rows of a tile if the processor's tile instructions are used, else 0.
        """
        rows, vectors = together or self.rows_of(lanes, element), max(1, lanes * element // self.vector_bytes)
        takes = f"takes {rows * vectors} vectors of {self.vector_bytes} bytes"
        tile = f"a tile of {rows} x {lanes} sums {'goes by those of the processor' if together else takes}"
        pays = f"a panel pays from {self.least_bytes} bytes on, 1/{_PART_OF_CACHE} of the second cache"
        return f"{tile}; {pays}; {self.block_tiles} tiles of rows share one"

    def rows_of(self, lanes: int, element: int) -> int:
        """The rows of a tile with this many lanes: more if these are few vectors, to have as many independent sums."""
        return self.rows if 2 * lanes > self.row_bytes // element else 2 * self.rows


def time_of_rows(count: int, tile: int, most: int) -> int:
    """The time for `count` rows per term, by tiles of `tile` rows and a smaller last one; `most` rows fit.

    A tile takes as long as its rows, at least the latency of dependent sums, plus one for its load.
    """
    rest, least = count % tile, most // 2
    return count // tile * (max(tile, least) + 1) + (max(rest, least) + 1 if rest else 0)


def is_known(loop: For) -> bool:
    return loop.values is not None


def count_of(loop: For) -> int:
    """The number of iterations of a loop, or 1 if it is not constant."""
    return 1 if loop.values is None else len(loop.values)
