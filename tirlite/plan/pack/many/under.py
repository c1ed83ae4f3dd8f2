"""Packs very many blocks under what hangs: the search places the few largest below all others.

In large problems a few blocks make up most of what is live, and how these lie decides; the many small ones fill any
shape, so they are swept, or filled in, and hang from the top. The search of `plan.search` lays the large ones below
that: it knows what is still to be placed where, and goes back where that does not fit. A search that has not found its
way soon seldom does, so each is brief, and the next one prefers what was left over by those before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tirlite.plan.pack.blocks import Block, Piece, Sections, top_of
from tirlite.plan.pack.many.brief import Brief
from tirlite.plan.pack.many.hung import Hung, live_bytes
from tirlite.plan.search.engine import Engine
from tirlite.plan.search.instance import Instance, overlaps, whole
from tirlite.plan.search.item import Item
from tirlite.record import record

# Of so many blocks one is large, up to so many, unless these meet more often than this.
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
# The first capacity is this part above the least that can be reached; after so many failures another is tried.
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
        items = [
            Item(block.size, block.align, None, tuple((low, high) for low, high, _ in rows))
            for block, rows in zip(blocks, spans, strict=True)
        ]
        if overlaps(items, _PAIRS) > _PAIRS:
            return None
        bare = whole(items)
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
