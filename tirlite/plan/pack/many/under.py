"""Packs very many blocks: the many small ones hang from the top, and a search places the few largest below them.

In large problems a few blocks make up most of the load, and their layout decides. The many small ones fit into any
shape, so they are swept, or filled in, from the top down. Brief searches place the large ones below: a search knows
what is still to be placed where, and backtracks where that does not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from tirlite.plan.blocks import Block, Piece, Sections, top_of
from tirlite.plan.pack.heuristics import sweep
from tirlite.plan.pack.many.brief import Brief
from tirlite.plan.pack.many.fill import filled
from tirlite.plan.pack.many.terrain import Times
from tirlite.plan.search.engine import Engine
from tirlite.plan.search.instance import Instance, overlaps, whole
from tirlite.record import record, replace

# The most sections with too many bytes that are relieved.
_CROWDED = 64


@record
class Hung:
    """Blocks in three groups: `large` ones, small ones that hang, `numbers`, and small ones placed last, `waiting`.

    `drops` are the distances from the top to the bottoms of those that hang, `depth` how far down these reach in each
    section, and `taken` the bytes in each section that are kept for those that hang or wait.
    """

    blocks: Sequence[Block]
    sections: Sections
    large: Sequence[int]
    numbers: Sequence[int]
    drops: Sequence[int]
    depth: Sequence[int]
    taken: Sequence[int]
    waiting: Sequence[int] = ()

    @classmethod
    def of(
        cls, blocks: Sequence[Block], sections: Sections, large: Iterable[int], engine: Engine | None = None
    ) -> Hung:
        """Hangs all but the large blocks by a sweep, or by the fill if there is an engine. None has a fixed offset."""
        taken = dict.fromkeys(sorted(large))
        small = [number for number in range(len(blocks)) if number not in taken]
        whole = [_rounded(block) for block in blocks]
        tops = None if engine is None else _packed(whole, small, engine)
        if tops is None:
            tops = sweep([whole[number] for number in small], 0)
        drops = [top + whole[number].size for top, number in zip(tops, small, strict=True)]
        depth = _depth(sections, small, drops)
        return cls(blocks, sections, list(taken), small, drops, depth, depth)

    @property
    def heights(self) -> list[int]:
        """For each section, the bytes of the large blocks and those that are taken above them."""
        return [live + taken for live, taken in zip(live_bytes(self.sections, self.large), self.taken, strict=True)]

    def shortened(self, most: int) -> Hung:
        """Lets the lowest-hanging blocks wait in sections that need more than `most` bytes.

        Holes between blocks that hang cause the excess, so that fewer of them leave fewer holes. Nothing changes where
        there are many such sections, or more blocks would wait than are large.
        """
        heights, spans, drops = self.heights, self.sections.spans, dict(zip(self.numbers, self.drops, strict=True))
        crowded = [section for section, height in enumerate(heights) if height > most]
        if not crowded or len(crowded) > _CROWDED:
            return self
        out: dict[int, None] = {}
        for section in sorted(crowded, key=lambda section: -heights[section]):
            beside = [n for n in self.numbers if any(low <= section < high for low, high, _ in spans[n])]
            live = heights[section] - self.depth[section] + sum(self.blocks[n].size for n in beside if n in out)
            for number in sorted(beside, key=lambda number: -drops[number]):
                if live + drops[number] > most and number not in out:
                    out[number] = None
                    live += self.blocks[number].size
        if len(out) > len(self.large):
            return self
        kept = [number for number in self.numbers if number not in out]
        left = [drops[number] for number in kept]
        depth, waits, taken = _depth(self.sections, kept, left), list(live_bytes(self.sections, out)), list(self.depth)
        for section in crowded:
            taken[section] = depth[section] + waits[section]
        return replace(self, numbers=kept, drops=left, depth=depth, taken=taken, waiting=sorted(out))

    def offsets(self, bottoms: Sequence[int], top: int) -> list[int]:
        """Offsets of all blocks, given those of the large ones and the height `top` with what hangs above them."""
        unit = max(block.align for block in self.blocks)
        end = -(-max(top, max(self.depth)) // unit) * unit
        offsets = [0] * len(self.blocks)
        for number, bottom in zip(self.large, bottoms, strict=True):
            offsets[number] = bottom
        for number, drop in zip(self.numbers, self.drops, strict=True):
            offsets[number] = end - drop
        return _filled(self.blocks, offsets, self.waiting) if self.waiting else offsets


def _rounded(block: Block) -> Block:
    """The block with sizes rounded up so that its neighbour is aligned, also upside down."""
    if block.align == 1:
        return block
    pieces = (Piece(low, high, -(-size // block.align) * block.align) for low, high, size in block.pieces)
    return Block(tuple(pieces), block.align)


def live_bytes(sections: Sections, numbers: Iterable[int]) -> Iterator[int]:
    """The bytes of some blocks that are live in each section."""
    change = [0] * (len(sections.load) + 1)
    for number in numbers:
        for low, high, size in sections.spans[number]:
            change[low] += size
            change[high] -= size
    return accumulate(change[:-1])


def _packed(blocks: Sequence[Block], small: Sequence[int], engine: Engine) -> list[int] | None:
    """Offsets of small blocks by the fill, the longest-lived first; None where it takes too long."""
    import numpy as np

    times = Times.of(blocks)
    is_small = np.zeros(len(blocks), bool)
    is_small[small] = True
    part = times.some(is_small[times.order])
    floor = int(times.load.max(initial=0))
    found = filled(part, part.life.astype(np.float64), times.load, floor, engine)
    if found is None:
        return None
    offsets = np.zeros(len(blocks), np.int64)
    offsets[part.order] = found
    return [int(offset) for offset in offsets[small]]


def _depth(sections: Sections, numbers: Sequence[int], drops: Sequence[int]) -> list[int]:
    """How far down the hanging blocks reach in each section."""
    import numpy as np

    depth = np.zeros(len(sections.load), np.int64)
    for drop, number in sorted(zip(drops, numbers, strict=True)):
        for low, high, _ in sections.spans[number]:
            depth[low:high] = drop
    return [int(each) for each in depth]


def _filled(blocks: Sequence[Block], offsets: Sequence[int], waiting: Sequence[int]) -> list[int]:
    """Places the waiting blocks by first fit, the longest-lived first."""
    import numpy as np

    pieces = [(low, high, number) for number, block in enumerate(blocks) for low, high, size in block.pieces if size]
    lows, highs, numbers = np.array(pieces, np.int64).T
    bottoms, sizes = np.array(offsets, np.int64), np.array([block.size for block in blocks], np.int64)
    is_placed = np.ones(len(blocks), bool)
    is_placed[list(waiting)] = False
    for number in sorted(waiting, key=lambda number: (blocks[number].low - blocks[number].high, number)):
        block = blocks[number]
        meets = np.zeros(len(blocks), bool)
        for low, high, _ in block.pieces:
            meets[numbers[(lows < high) & (highs > low)]] = True
        beside = (meets & is_placed).nonzero()[0]
        beside = beside[bottoms[beside].argsort(kind="stable")]
        ends = np.maximum.accumulate(bottoms[beside] + sizes[beside])
        starts = np.concatenate(([0], -(-ends // block.align) * block.align))
        has_room = starts[:-1] + block.size <= bottoms[beside]
        bottoms[number] = starts[has_room.argmax() if has_room.any() else -1]
        is_placed[number] = True
    return [int(offset) for offset in bottoms]


# One in _PART blocks is large, at most _LARGE, unless more than _PAIRS pairs of these are live together.
_PART, _LARGE, _PAIRS = 20, 3_000, 1_000_000
# Large blocks stand out if they make up this part of the most that is live.
_OUTSTANDING = 0.75
# Where large blocks and what hangs above them are over the floor by more than this part, some small ones wait.
_HOLES = 0.006
# If large blocks and what hangs above them cannot come within this part of the floor, nothing is tried.
_CLOSE = 0.02
# Parts of the floor within which the search ends, and no other way of hanging is tried.
_GOOD, _NEAR = 0.002, 0.01
# The search ends as well within this part of the least that a way of hanging allows.
_DONE = 0.001
# Nodes of a search per block; nodes times blocks of all, some two seconds of compiled code.
_DEPTH, _WORK = 1.5, 320_000_000
# By what part the first capacity is above the least; the failures before another capacity is tried.
_FIRST, _PATIENCE = 0.014, 6


def stands_out(blocks: Sequence[Block], sections: Sections) -> bool:
    """Whether a few large blocks that are live together make up most of the load."""
    ranked = sorted(range(len(blocks)), key=lambda i: (-blocks[i].size, i))
    return max(live_bytes(sections, ranked[: len(blocks) // _PART]), default=0) >= sections.floor * _OUTSTANDING


def under(blocks: Sequence[Block], sections: Sections, engine: Engine) -> list[int] | None:
    """Offsets of blocks without fixed offsets; None where they cannot come close to the floor in this way."""
    ranked = sorted((i for i, block in enumerate(blocks) if block.size), key=lambda i: (-blocks[i].size, i))
    large = ranked[: min(len(blocks) // _PART, _LARGE)]
    if not large:
        return None
    best: list[int] | None = None
    fillers = (None, engine)
    # The fill is lower where the most is live, the sweep elsewhere: which of the two helps more is not known before.
    for filler in fillers:
        hung = Hung.of(blocks, sections, large, filler).shortened(int(sections.floor * (1 + _HOLES)))
        beneath = _Beneath.of(hung)
        if beneath is None or beneath.least > sections.floor * (1 + _CLOSE):
            return best
        goal = max(int(sections.floor * (1 + _GOOD)), int(beneath.least * (1 + _DONE)))
        found = beneath.lowest(engine, goal, _WORK // len(fillers))
        offsets = None if found is None else hung.offsets(*found)
        if offsets is not None and (best is None or top_of(blocks, offsets) < top_of(blocks, best)):
            best = offsets
        if best is not None and top_of(blocks, best) <= sections.floor * (1 + _NEAR):
            return best
    return best


@record
class _Beneath:
    """An instance of the large blocks, in which each reaches up to the top with what hangs above it.

    `least` is a lower bound of the bytes. `weights` are keys by which searches order the blocks.
    """

    instance: Instance
    least: int
    weights: Sequence[Sequence[float]]

    @classmethod
    def of(cls, hung: Hung) -> _Beneath | None:
        """None where too many pairs of large blocks are live together.

        The weights are lifetimes, in sections of all blocks or of these; and lifetimes times the load.
        """
        blocks = [hung.blocks[number] for number in hung.large]
        spans = [hung.sections.spans[number] for number in hung.large]
        even = [
            Block.even(block.size, [(low, high) for low, high, _ in rows], block.align)
            for block, rows in zip(blocks, spans, strict=True)
        ]
        if overlaps(even, _PAIRS) > _PAIRS:
            return None
        bare = whole(even)
        above = [-(-_most(hung.depth, rows) // bare.unit) for rows in spans]
        beside = [-(-_shared(hung.taken, [spans[c] for c in section]) // bare.unit) for section in bare.sections]
        instance = replace(
            bare,
            nets=tuple(net + each for net, each in zip(bare.nets, above, strict=True)),
            slacks=tuple(slack - each for slack, each in zip(bare.slacks, beside, strict=True)),
        )
        widths = [float(width) for width in bare.widths]
        narrow = [float(last - first) for first, last in bare.spans]
        loaded = [width * _most(hung.sections.load, rows) for width, rows in zip(widths, spans, strict=True)]
        return cls(instance, max(hung.heights), (widths, narrow, loaded))

    def lowest(self, engine: Engine, goal: int, work: int) -> tuple[list[int], int] | None:
        """Offsets of the blocks, and the total with what hangs above them; `goal` is low enough."""
        unit = self.instance.unit
        brief = Brief(self.instance, self.weights, _DEPTH, _PATIENCE, work)
        found = brief.lowest(engine, -(-self.least // unit), int(self.least * (1 + _FIRST)) // unit, goal // unit)
        return None if found is None else ([offset * unit for offset in found[0]], found[1] * unit)


def _most(values: Sequence[int], rows: Sequence[Piece]) -> int:
    """The largest value in the sections of a block."""
    return max(max(values[low:high]) for low, high, _ in rows)


def _shared(depth: Sequence[int], spans: Sequence[Sequence[Piece]]) -> int:
    """How far down blocks hang at a time when all these blocks are live; 0 if that is not known."""
    low, high = max(rows[0].low for rows in spans), min(rows[-1].high for rows in spans)
    return max(depth[low:high]) if low < high and all(len(rows) == 1 for rows in spans) else 0
