"""Defines blocks, each of which is placed at one offset; and divides time into sections by the blocks that are live."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tirlite.plan.in_place import Group
from tirlite.plan.request import Interval
from tirlite.record import record
from tirlite.sizes import Size
from tirlite.sizes.evaluate import as_number


class Piece(NamedTuple):
    """A stretch of time [low, high) in which a block fills this many bytes."""

    low: int
    high: int
    size: int


@record
class Block:
    """Bytes over time that are placed at one offset: a multiple of `align`, or `fixed`.

    The pieces are disjoint and in order of time. They have one size if the block is a single request, and may differ if
    it is a group of requests in place of each other.
    """

    pieces: tuple[Piece, ...]
    align: int = 1
    fixed: int | None = None

    @classmethod
    def even(cls, size: int, live: Iterable[Interval], align: int = 1, fixed: int | None = None) -> Block:
        """A block of one size throughout its life."""
        return cls(tuple([Piece(low, high, size) for low, high in live]), align, fixed)

    @property
    def size(self) -> int:
        """The most bytes that it fills."""
        pieces = self.pieces
        return pieces[0].size if len(pieces) == 1 else max([piece.size for piece in pieces], default=0)

    @property
    def is_even(self) -> bool:
        """Whether it fills as many bytes at one time as at another."""
        return len(self.pieces) == 1 or len({piece.size for piece in self.pieces}) < 2

    @property
    def low(self) -> int:
        return self.pieces[0].low

    @property
    def high(self) -> int:
        return self.pieces[-1].high

    def beside(self, other: Block) -> int:
        """The most bytes that it fills while another block lives and fills any."""
        if self.is_even:
            return self.size
        return max(
            size
            for low, high, size in self.pieces
            if any(low < end and begin < high for begin, end, filled in other.pieces if filled)
        )


def block_of(group: Group, align: int, bytes_of: Callable[[Size], int] = as_number) -> Block:
    """The group as one block, aligned to `align` at least, with its sizes as numbers."""
    pieces = tuple(Piece(low, high, bytes_of(size)) for (low, high), size in group.pieces)
    return Block(pieces, max(align, group.align), group.fixed)


@record
class Sections:
    """Time divided into the fewest sections that tell conflicts: two blocks are live together iff they share one.

    A section is a maximal set of pieces that are live together. `spans` are the pieces of each block over sections;
    `load` are the bytes that are live in each section.
    """

    spans: tuple[tuple[Piece, ...], ...]
    load: tuple[int, ...]

    @property
    def floor(self) -> int:
        """A lower bound of the bytes of every placement."""
        return max(self.load, default=0)


def sections_of(blocks: Sequence[Block]) -> Sections:
    """The sections of blocks. Pieces of 0 bytes count as well."""
    pieces = [(piece, number) for number, block in enumerate(blocks) for piece in block.pieces]
    events = [(piece.low, 1, index) for index, (piece, _) in enumerate(pieces)]
    events += [(piece.high, 0, index) for index, (piece, _) in enumerate(pieces)]
    events.sort()
    first = [0] * len(pieces)
    spans: list[list[Piece]] = [[] for _ in blocks]
    load: list[int] = []
    live, grown = 0, False
    for _, is_birth, index in events:
        piece, number = pieces[index]
        if is_birth:
            first[index] = len(load)
            live += piece.size
            grown = True
            continue
        if grown:
            load.append(live)
            grown = False
        live -= piece.size
        spans[number].append(Piece(first[index], len(load), piece.size))
    return Sections(tuple(map(tuple, spans)), tuple(load))


def top_of(blocks: Sequence[Block], offsets: Sequence[int]) -> int:
    """The bytes that blocks at these offsets need."""
    return max((offset + block.size for block, offset in zip(blocks, offsets, strict=True)), default=0)
