"""Mending: what stands out is packed anew, place by place, and nothing overlaps."""

from itertools import accumulate
from random import Random

from blocks_apart import overlapping

from tirlite.plan.blocks import Block, Piece, sections_of, top_of
from tirlite.plan.pack.heuristics import sweep
from tirlite.plan.pack.many.mend import mended
from tirlite.plan.search.engine import PythonEngine
from tirlite.solver import LateEngine


def brief_lives(count: int, seed: int, aligns: tuple[int, ...] = (1,), *, gaps: bool = False) -> list[Block]:
    """Blocks that live briefly, some with gaps, and some of no size."""
    random = Random(seed)
    blocks = []
    for low in range(count):
        high = low + random.randrange(1, 40)
        pieces = [Piece(low, high, random.choice((0, random.randrange(1, 300), random.randrange(1, 300))))]
        if gaps and random.random() < 0.2:
            pieces.append(Piece(high + 2, high + 9, random.randrange(1, 90)))
        blocks.append(Block(tuple(pieces), random.choice(aligns)))
    return blocks


def sharing(blocks: list[Block], offsets: list[int]) -> list[tuple[Piece, Piece]]:
    """The pairs of pieces that share a byte at some time, where blocks may change in size."""
    pieces = [(number, piece) for number, block in enumerate(blocks) for piece in block.pieces if piece.size]
    return [
        (one, other)
        for place, (i, one) in enumerate(pieces)
        for j, other in pieces[:place]
        if i != j and one.low < other.high and other.low < one.high
        if offsets[i] < offsets[j] + other.size and offsets[j] < offsets[i] + one.size
    ]


def test_ever_less_stands_out_and_no_two_blocks_share_a_byte() -> None:
    blocks = brief_lives(600, 2, (1, 8))
    before = sweep(blocks, 0)
    runs = list(mended(blocks, before, sections_of(blocks).floor * 103 // 100, LateEngine(0), 12_000_000))
    tops = [top_of(blocks, offsets) for offsets in (before, *runs)]
    assert tops == sorted(tops, reverse=True)
    assert tops[-1] < tops[0] * 0.95
    for offsets in runs:
        assert min(offsets) >= 0
        assert all(offset % block.align == 0 for offset, block in zip(offsets, blocks, strict=True))
        assert overlapping(blocks, offsets) == []


def test_blocks_with_gaps_that_change_in_size_share_no_byte_either() -> None:
    blocks = brief_lives(300, 7, gaps=True)
    stacked = list(accumulate((block.size for block in blocks), initial=0))
    runs = list(mended(blocks, stacked[:-1], 0, LateEngine(0), 12_000_000))
    assert top_of(blocks, runs[-1]) < stacked[-1]
    assert sharing(blocks, runs[-1]) == []


def test_what_is_far_away_or_fixed_stays_where_it_is() -> None:
    blocks = [Block((Piece(low, low + 2, 10),)) for low in range(0, 600, 2)]
    offsets = [0] * len(blocks)
    blocks += [Block((Piece(300, 302, 4),), fixed=20), Block((Piece(300, 302, 10),))]
    offsets += [20, 90]
    (found,) = mended(blocks, offsets, 24, PythonEngine(), 10**8)
    assert found[-2] == 20
    assert top_of(blocks, found) == 24
    assert found[:50] == offsets[:50]
    assert overlapping(blocks, found) == []


def test_what_is_low_enough_is_left_alone() -> None:
    blocks = [Block((Piece(0, 3, 5),)), Block((Piece(2, 4, 5),))]
    assert list(mended(blocks, [0, 7], 12, PythonEngine(), 10**8)) == []


def test_blocks_that_all_live_at_once_come_down_to_their_sum() -> None:
    blocks = [Block((Piece(0, 1, size),)) for size in (3, 4, 5)]
    assert [top_of(blocks, found) for found in mended(blocks, [0, 10, 20], 12, PythonEngine(), 10**8)] == [12]
