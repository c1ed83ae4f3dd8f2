"""Computes where a Load or Store lies in its allocation: sums along its axes, and in bytes."""

from __future__ import annotations

from math import prod

from tirlite.analysis.integers.array_bounds import stays_exact
from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.ir import Buffer, Expr, Load, Store
from tirlite.record import cached_method, record
from tirlite.sizes import Size
from tirlite.sizes.poly import terms_of, varies
from tirlite.sizes.unknown import Unknown, ends, recombined

# This many names are looked through, one inside of another.
_MOST_NAMES = 8


@record(eq=False)
class BufferLayout:
    """The place of a buffer in its allocation: the byte where it begins, and its inner extents (all but the first).

    `moves` says that either may change between two accesses: a view may be declared anew in each iteration.
    """

    buffer: Buffer
    start: Size
    inner: tuple[Size, ...]
    moves: bool

    @property
    def element(self) -> int:
        """The bytes of one element."""
        return self.buffer.dtype.bytes

    def same_grid(self, other: BufferLayout) -> bool:
        """Whether equal indices mean equal bytes, and different ones different bytes, in both."""
        return (
            not (self.moves or other.moves)
            and self.element == other.element
            and len(self.inner) == len(other.inner)
            and len(self.buffer.shape) == len(other.buffer.shape)
            and self.start == other.start
            and self.inner == other.inner
        )


@record(eq=False)
class Address:
    """The index of an access along each axis of `layout`; a vector access also varies with its lane.

    An index is equal to the size in `wrapped` modulo 2**64. In `indices` it is an unknown if it may not be that size.
    """

    layout: BufferLayout
    indices: tuple[Size, ...]
    wrapped: tuple[Size, ...]

    @property
    def key(self) -> object:
        """Equal for accesses of one layout with equal indices."""
        return self.layout.buffer, self.indices


class Addresses:
    """The addresses of a function's accesses, each worked out once."""

    def __init__(self, space: IndexSpace) -> None:
        self.space = space
        # One for all vectors of a width, so that accesses alike are seen to be. In two instances it is not the same.
        self._lanes: dict[int, Unknown | None] = {}

    @cached_method
    def of(self, node: Load | Store) -> Address:
        """The address of an access."""
        layout = self.layout(node.buffer)
        lanes = node.indices[-1].dtype.lanes if node.indices else 1
        if lanes not in self._lanes:
            self._lanes[lanes] = self.space.lane(lanes)
        lane = self._lanes[lanes]
        sizes = [self.space.size(index, lane) for index in node.indices]
        indices = tuple(
            self._index(*each, node.buffer, k) for k, each in enumerate(zip(node.indices, sizes, strict=True))
        )
        return Address(layout, indices, tuple(map(self._unnamed, sizes)))

    def bytes(self, address: Address) -> Size | None:
        """The first byte of the element, counted from the start of the allocation; None if a stride is not a size."""
        stride: Size = address.layout.element
        total = address.layout.start
        for axis in reversed(range(len(address.indices))):
            total = total + stride * address.indices[axis]
            if axis > 0:
                extent = address.layout.inner[axis - 1]
                if varies(extent):
                    return None
                stride = stride * extent
        return recombined(total)

    @cached_method
    def layout(self, buffer: Buffer) -> BufferLayout:
        start: Size = 0
        path = self.space.definitions.path(buffer)
        for view in path:
            offset = self.space.size(view.byte_offset)
            between = ends(offset)
            # What lies inside of a buffer that exists does not wrap around, however much its dims might be.
            exact = stays_exact(*between) or stays_exact(*between, self._most_bytes(view.source))
            start = start + (offset if exact else self._unknown())
        inner = tuple(self._extent(extent, buffer) for extent in buffer.shape[1:])
        moves = bool(path) and any(map(varies, (start, *inner)))
        return BufferLayout(buffer, start, inner, moves)

    def _index(self, index: Expr, size: Size, buffer: Buffer, axis: int) -> Size:
        extent = self._extent(buffer.shape[axis], buffer)
        known = None if varies(extent) else extent
        return size if self.space.is_exact_at(index, size, known) else self._unknown()

    def _unnamed(self, size: Size) -> Size:
        """What is equal to a size modulo 2**64, with what names stand for in their place."""
        for _ in range(_MOST_NAMES):
            terms = terms_of(size)
            if not any(atom in self.space.wraps for product in terms for atom in product):
                break
            size = 0
            for product, factor in terms.items():
                size = size + factor * prod(self.space.wraps.get(atom, atom + 0) for atom in product)
        return size

    def _most_bytes(self, buffer: Buffer) -> Size | None:
        is_known = not any(varies(self._extent(extent, buffer)) for extent in buffer.shape)
        return self.space.extents.bytes(buffer) if is_known else None

    def _extent(self, extent: Expr, buffer: Buffer) -> Size:
        """An extent of a buffer. That of a view may wrap around, while what is allocated is as large as it says."""
        size = self.space.size(extent)
        return size if buffer not in self.space.definitions.views or self.space.is_exact(size) else self._unknown()

    def _unknown(self) -> Size:
        return self.space.unknown("an index", steady=False) + 0
