"""Places blocks one by one: on a skyline, by first fit, and in sweeps along time."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import field
from heapq import heapify, heappop, heappush, heapreplace
from typing import TypeAlias

from tirlite.plan.blocks import Block, Piece, Sections
from tirlite.record import record

# Sections that a fill looks at before it gives up, and per block if that is more: about a second.
_PATIENCE, _PATIENCE_PER_BLOCK = 40_000_000, 2_000

# A block that waits: its offset and rank when last updated, its negative area, its number.
_Entry: TypeAlias = tuple[int, float, int, int]


@record(frozen=False)
class Looks:
    """Looks at blocks that may still be spent."""

    left: int


@record(frozen=False)
class Skyline:
    """A skyline under construction: the height of each section, and the bytes that are still to be placed there."""

    sections: Sections
    aligns: Sequence[int]
    height: list[int] = field(init=False)
    left: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.height = [0] * len(self.sections.load)
        self.left = list(self.sections.load)

    def fill(self, ranks: Sequence[float], work: Looks) -> list[int]:
        """Offsets of all blocks: the lowest goes first, of equal ones that of the least rank. Empty if it gives up.

        The pressure, the most bytes that are still to be placed where a block lives, is subtracted from its rank.
        Heights only grow and pressures only shrink, so that outdated entries of the heap are too good: only the best
        one has to be updated. The cost is cubic where hundreds of blocks live to one end, as each that is placed lifts
        all that wait.
        """
        spans, aligns, height, left = self.sections.spans, self.aligns, self.height, self.left
        offsets = [0] * len(spans)
        lines, waits_in = self._lines(ranks)
        heap = [line.pop() for line in lines]
        heapify(heap)
        patience = max(_PATIENCE, _PATIENCE_PER_BLOCK * len(spans))
        looks = 0
        while heap:
            if patience < 0:
                return []
            offset, rank, area, number = heap[0]
            rows = spans[number]
            looks += 1
            low, high, _ = rows[0]
            patience -= high - low
            lowest = max(height[low:high]) if len(rows) == 1 else self.lowest(rows)
            if aligns[number] > 1:
                lowest = -(-lowest // aligns[number]) * aligns[number]
            current = ranks[number] - (max(left[low:high]) if len(rows) == 1 else self.pressure(rows))
            if lowest != offset or current != rank:
                heapreplace(heap, (lowest, current, area, number))
                continue
            if waits_in[number]:
                heapreplace(heap, waits_in[number].pop())
            else:
                heappop(heap)
            offsets[number] = offset
            self.place(rows, offset)
        work.left -= looks
        return offsets

    def _lines(self, ranks: Sequence[float]) -> tuple[list[list[_Entry]], list[list[_Entry]]]:
        """Queues of waiting blocks, the best last, and the queue of each block; all offsets are 0.

        Blocks of one lifetime and alignment always have the same offset and pressure, so that only the best of them is
        in the heap: networks have hundreds of weights that live throughout.
        """
        lines: dict[Hashable, list[_Entry]] = {}
        pressure: dict[Hashable, int] = {}
        waits_in = []
        for number, rows in enumerate(self.sections.spans):
            key = (rows[0].low, rows[0].high, self.aligns[number]) if len(rows) == 1 else number
            if key not in pressure:
                pressure[key] = self.pressure(rows)
            area = -sum(size * (high - low) for low, high, size in rows)
            line = lines.setdefault(key, [])
            line.append((0, ranks[number] - pressure[key], area, number))
            waits_in.append(line)
        for line in lines.values():
            line.sort(reverse=True)
        return list(lines.values()), waits_in

    def lowest(self, rows: Sequence[Piece]) -> int:
        """The lowest offset above all that is placed where the block lives."""
        return max(max(self.height[low:high]) for low, high, _ in rows)

    def pressure(self, rows: Sequence[Piece]) -> int:
        """The most bytes that are still to be placed at some time at which the block lives."""
        return max(max(self.left[low:high]) for low, high, _ in rows)

    def place(self, rows: Sequence[Piece], offset: int) -> None:
        height, left = self.height, self.left
        for low, high, size in rows:
            height[low:high] = [offset + size] * (high - low)
            left[low:high] = [value - size for value in left[low:high]]


# (other block, its bytes and ours in one piece of time that both live in)
Meeting = tuple[int, int, int]


def meetings(sections: Sections, most: int) -> list[list[Meeting]] | None:
    """For each block those that it meets; None if there are more than `most` of them."""
    found: list[list[Meeting]] = [[] for _ in sections.spans]
    births = sorted(
        (piece.low, piece.high, number, piece.size) for number, rows in enumerate(sections.spans) for piece in rows
    )
    live: list[tuple[int, int, int]] = []
    count = 0
    for low, high, number, size in births:
        live = [entry for entry in live if entry[0] > low]
        count += len(live)
        if count > most:
            return None
        for _, other, other_size in live:
            found[other].append((number, size, other_size))
        found[number] += [(other, other_size, size) for _, other, other_size in live]
        live.append((high, number, size))
    return found


def first_fit(
    blocks: Sequence[Block],
    near: Sequence[Sequence[Meeting]],
    order: Iterable[int],
    *,
    best: bool = False,
    limit: int | None = None,
) -> list[int]:
    """Offsets of the blocks by first fit, those with fixed offsets first. With `best`, by best fit.

    Each placed block that a block meets forbids the offsets at which the two overlap. A block that would end above
    `limit` is not placed, and has the offset -1.
    """
    offsets = [-1 if block.fixed is None else block.fixed for block in blocks]
    for number in order:
        if offsets[number] >= 0:
            continue
        align = blocks[number].align
        forbidden = [
            (offsets[other] - size, offsets[other] + other_size)
            for other, other_size, size in near[number]
            if offsets[other] >= 0 and size and other_size
        ]
        forbidden.sort()
        offset = (_tightest if best else _lowest)(forbidden, align)
        if limit is None or offset + blocks[number].size <= limit:
            offsets[number] = offset
    return offsets


def _lowest(forbidden: Sequence[tuple[int, int]], align: int) -> int:
    """The lowest multiple of `align` that is strictly inside no forbidden interval."""
    offset = 0
    for low, high in forbidden:
        if low >= offset:
            break
        if high > offset:
            offset = -(-high // align) * align
    return offset


def _tightest(forbidden: Sequence[tuple[int, int]], align: int) -> int:
    """The allowed offset in the gap that is smallest."""
    offset, slack, found = 0, -1, 0
    for low, high in forbidden:
        if low >= offset and (slack < 0 or low - offset < slack):
            slack, found = low - offset, offset
        if high > offset:
            offset = -(-high // align) * align
    return found if slack >= 0 else offset


# Holes that are compared.
_LOOKS = 8
_NEVER = 1 << 62


def sweep(blocks: Sequence[Block], tightness: float, *, backward: bool = False) -> list[int]:
    """Offsets of blocks without fixed offsets, placed in order of birth, the longest-lived of one time first.

    Gaps of lifetimes are ignored. A block goes into the hole of least cost: the difference between its death and that
    of a neighbour, as a part of its life, plus `tightness` times the excess of the hole, as a part of its size. With
    `backward`, time runs from the end.
    """
    lives = [(-block.high, -block.low) if backward else (block.low, block.high) for block in blocks]
    sizes = [block.size for block in blocks]
    offsets = [0] * len(blocks)
    holes = _Holes(tightness)
    endings: list[tuple[int, int]] = []
    for number in sorted(range(len(blocks)), key=lambda i: (lives[i][0], -lives[i][1], i)):
        low, high = lives[number]
        while endings and endings[0][0] <= low:
            _, ended = heappop(endings)
            holes.free(offsets[ended], offsets[ended] + sizes[ended])
        if sizes[number]:
            offsets[number] = holes.take(sizes[number], blocks[number].align, low, high)
            heappush(endings, (high, number))
    return offsets


class _Holes:
    """The free stretches below the top, by their ends and by their length.

    `death_below` and `death_above` give, by address, when the block dies that ends there, and that begins there.
    """

    def __init__(self, tightness: float) -> None:
        self.tightness = tightness
        self.top = 0
        self.by_start: dict[int, int] = {}
        self.by_end: dict[int, int] = {}
        self.by_length: list[tuple[int, int]] = []
        self.death_below: dict[int, int] = {}
        self.death_above: dict[int, int] = {}

    def take(self, size: int, align: int, birth: int, death: int) -> int:
        """Takes the best room for a block, and returns its offset."""
        hole = self._best(size, align, birth, death)
        if hole is None:
            start, offset = self.top, -(-self.top // align) * align
            self.top = offset + size
            self._add(start, offset)
        else:
            start, offset = hole
            end = self.by_start[start]
            self._remove(start, end)
            self._add(start, offset)
            self._add(offset + size, end)
        self.death_above[offset] = self.death_below[offset + size] = death
        return offset

    def _best(self, size: int, align: int, birth: int, death: int) -> tuple[int, int] | None:
        """The best hole and the offset in it; None where no hole is large enough."""
        place = bisect_left(self.by_length, (size, 0))
        best: tuple[float, int, int] | None = None
        for length, start in self.by_length[place : place + _LOOKS]:
            end = start + length
            low, high = -(-start // align) * align, (end - size) // align * align
            if low > high:
                continue
            if length == size:
                return start, low
            below = abs(self.death_below.get(start, _NEVER) - death)
            above = abs(self.death_above.get(end, _NEVER) - death)
            cost = min(below, above) / (death - birth) + self.tightness * (length - size) / size
            if best is None or cost < best[0]:
                best = cost, start, low if below <= above else high
        return None if best is None else best[1:]

    def free(self, start: int, end: int) -> None:
        """Frees a stretch and joins it with free neighbours; at the top, the top comes down."""
        del self.death_above[start], self.death_below[end]
        if start in self.by_end:
            below = self.by_end[start]
            self._remove(below, start)
            start = below
        if end == self.top:
            self.top = start
            return
        if end in self.by_start:
            above = self.by_start[end]
            self._remove(end, above)
            end = above
        self._add(start, end)

    def _add(self, start: int, end: int) -> None:
        if start < end:
            self.by_start[start] = end
            self.by_end[end] = start
            insort(self.by_length, (end - start, start))

    def _remove(self, start: int, end: int) -> None:
        del self.by_start[start], self.by_end[end]
        del self.by_length[bisect_left(self.by_length, (end - start, start))]
