"""Packs very many blocks: the many small ones hang from the top, and a search places the few largest below them.

In large problems a few blocks make up most of the load, and their layout decides; the many small ones fill any shape,
so they are swept, or filled in, from the top. The search of `plan.search` places the large ones below: it knows what is
still to be placed where, and backtracks where that does not fit. A search that does not succeed soon seldom succeeds at
all, so each is brief, and the next one prefers the blocks that those before it left over.
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

# Of more sections than this with too many bytes, none is looked at.
_CROWDED = 64


@record
class Hung:
    """The numbers of large blocks, of those that hang, and of those that wait; how far below the top each that hangs
    begins, how deep they reach in each section, and the bytes in each that are kept for them and for those that wait.
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
        """All blocks but the large ones, swept, or filled in if there is an engine. None has a fixed offset."""
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
        """For each section the bytes of the large blocks there, and of what is taken above them."""
        return [live + taken for live, taken in zip(live_bytes(self.sections, self.large), self.taken, strict=True)]

    def shortened(self, most: int) -> Hung:
        """With those waiting that hang lowest in sections that need more than `most` bytes.

        It is holes in what hangs that are too much there, so the fewer hang the less is too much. As a rule there are
        few such sections; where there are many, or more would wait than are large, all is left as it is.
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
        """Offsets of all blocks where the large ones lie so, and reach up to `top` with what hangs above them."""
        unit = max(block.align for block in self.blocks)
        end = -(-max(top, max(self.depth)) // unit) * unit
        offsets = [0] * len(self.blocks)
        for number, bottom in zip(self.large, bottoms, strict=True):
            offsets[number] = bottom
        for number, drop in zip(self.numbers, self.drops, strict=True):
            offsets[number] = end - drop
        return _filled(self.blocks, offsets, self.waiting) if self.waiting else offsets


def _rounded(block: Block) -> Block:
    """The block with sizes that keep what follows it aligned, also upside down."""
    if block.align == 1:
        return block
    pieces = (Piece(low, high, -(-size // block.align) * block.align) for low, high, size in block.pieces)
    return Block(tuple(pieces), block.align)


def live_bytes(sections: Sections, numbers: Iterable[int]) -> Iterator[int]:
    """The bytes of some blocks in each section."""
    change = [0] * (len(sections.load) + 1)
    for number in numbers:
        for low, high, size in sections.spans[number]:
            change[low] += size
            change[high] -= size
    return accumulate(change[:-1])


def _packed(blocks: Sequence[Block], small: Sequence[int], engine: Engine) -> list[int] | None:
    """Offsets of small blocks by the fill, those first that live where the most lives of all; None if it takes long."""
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
    """How deep what hangs reaches in each section."""
    import numpy as np

    depth = np.zeros(len(sections.load), np.int64)
    for drop, number in sorted(zip(drops, numbers, strict=True)):
        for low, high, _ in sections.spans[number]:
            depth[low:high] = drop
    return [int(each) for each in depth]


def _filled(blocks: Sequence[Block], offsets: Sequence[int], waiting: Sequence[int]) -> list[int]:
    """The offsets, with those of blocks that wait: each, the longest-lived first, in the lowest room left for it."""
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


# Of this many blocks one is large, up to this many, unless these meet more often than this.
_PART, _LARGE, _PAIRS = 20, 3_000, 1_000_000
# Large blocks stand out that make up this part of the most that is live.
_OUTSTANDING = 0.75
# Where large blocks and what hangs above them need more than this part over the floor, some of that waits.
_HOLES = 0.006
# Where large blocks and what hangs above them come no closer to the floor than by this part of it, nothing is tried.
_CLOSE = 0.02
# So close to the floor is close enough, for the search, and to try no other way of hanging.
_GOOD, _NEAR = 0.002, 0.01
# So close to the least that hangs in one way is close enough, too.
_DONE = 0.001
# Nodes of one search by block; nodes times blocks of all, some two seconds of compiled code.
_DEPTH, _WORK = 1.5, 320_000_000
# The first capacity is this part above the least that can be reached; after this many failures another is tried.
_FIRST, _PATIENCE = 0.014, 6


def stands_out(blocks: Sequence[Block], sections: Sections) -> bool:
    """Whether few large blocks that are live together make up most of what is live."""
    ranked = sorted(range(len(blocks)), key=lambda i: (-blocks[i].size, i))
    return max(live_bytes(sections, ranked[: len(blocks) // _PART]), default=0) >= sections.floor * _OUTSTANDING


def under(blocks: Sequence[Block], sections: Sections, engine: Engine) -> list[int] | None:
    """Offsets of blocks without fixed ones; None where this is no way to come close to the floor."""
    ranked = sorted((i for i, block in enumerate(blocks) if block.size), key=lambda i: (-blocks[i].size, i))
    large = ranked[: min(len(blocks) // _PART, _LARGE)]
    if not large:
        return None
    best: list[int] | None = None
    fillers = (None, engine)
    # What is filled in is lower where most is live, and what is swept is elsewhere; which helps more is seen only then.
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
    """Large blocks as an instance in which each reaches up to the top with what hangs above it.

    `least` are the bytes that they need with that, at least. `weights` say how much each is preferred, in several ways.
    """

    instance: Instance
    least: int
    weights: Sequence[Sequence[float]]

    @classmethod
    def of(cls, hung: Hung) -> _Beneath | None:
        """None where there are too many pairs of large blocks that live together.

        Those are preferred that live long, in sections of all blocks or of these, and where most is live.
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
        """Offsets of the blocks, and the bytes that they need with what hangs above them; `goal` is low enough."""
        unit = self.instance.unit
        brief = Brief(self.instance, self.weights, _DEPTH, _PATIENCE, work)
        found = brief.lowest(engine, -(-self.least // unit), int(self.least * (1 + _FIRST)) // unit, goal // unit)
        return None if found is None else ([offset * unit for offset in found[0]], found[1] * unit)


def _most(values: Sequence[int], rows: Sequence[Piece]) -> int:
    """The largest value where a block lives."""
    return max(max(values[low:high]) for low, high, _ in rows)


def _shared(depth: Sequence[int], spans: Sequence[Sequence[Piece]]) -> int:
    """How deep that hangs which is above all these blocks at one time, at which all of them live; 0 if unknown."""
    low, high = max(rows[0].low for rows in spans), min(rows[-1].high for rows in spans)
    return max(depth[low:high]) if low < high and all(len(rows) == 1 for rows in spans) else 0
