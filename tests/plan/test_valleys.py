"""Valleys: safe offsets for any number of blocks, as low as the skyline's, and lower than a sweep's on traces."""

from random import Random

import pytest

from tirlite.plan.pack.blocks import Block, Piece, sections_of, top_of
from tirlite.plan.pack.many.valleys import valleys
from tirlite.plan.pack.skyline import Skyline, Work
from tirlite.plan.pack.sweep import sweep


def crowd(seed, count, aligns=(1,)):
    random = Random(seed)
    births = [random.randrange(count) for _ in range(count)]
    return [
        Block((Piece(low, low + random.randrange(1, 30), random.randrange(0, 50)),), random.choice(aligns))
        for low in births
    ]


def clashes(blocks, offsets):
    """Pairs that are live together and share bytes."""
    spans = [(b.low, b.high, o, o + b.size) for b, o in zip(blocks, offsets, strict=True) if b.size]
    return [
        (first, second)
        for number, first in enumerate(spans)
        for second in spans[:number]
        if first[0] < second[1] and second[0] < first[1] and first[2] < second[3] and second[2] < first[3]
    ]


@pytest.mark.parametrize("seed", range(6))
def test_no_two_blocks_clash_and_alignments_are_kept(seed):
    blocks = crowd(seed, 120, aligns=(1, 4, 16))
    for offsets in valleys(blocks, sections_of(blocks), 7):
        assert not clashes(blocks, offsets)
        assert all(offset % block.align == 0 for block, offset in zip(blocks, offsets, strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_each_run_is_a_skyline_with_the_same_ranks(seed):
    """Without alignment the lowest place is the lowest valley; equal ranks are the only difference."""
    blocks = [
        Block((Piece(p.low, p.high, p.size + 1 + 100 * n),)) for n, b in enumerate(crowd(seed, 80)) for p in b.pieces
    ]
    sections = sections_of(blocks)
    areas = [-float((block.high - block.low) * block.size) for block in blocks]
    assert next(valleys(blocks, sections, 1)) == Skyline(sections, [1] * 80).fill(areas, Work(0), pressed=False)


def test_blocks_with_gaps_keep_their_place_all_the_time():
    blocks = [Block((Piece(0, 1, 8), Piece(5, 6, 4))), Block((Piece(2, 3, 8),)), Block((Piece(0, 6, 2),))]
    offsets = next(valleys(blocks, sections_of(blocks), 1))
    assert not clashes(blocks, offsets)


def test_few_large_and_many_small_blocks_reach_the_floor_where_a_sweep_does_not():
    random = Random(5)
    blocks = []
    for time in range(2_000):
        size = int(2 ** random.uniform(6, 14 if random.random() < 0.9 else 22)) // 64 * 64
        life = int(random.expovariate(1 / 40)) if random.random() < 0.95 else random.randrange(1_000)
        blocks.append(Block((Piece(time, time + 2 + life, size),)))
    sections = sections_of(blocks)
    best = min(top_of(blocks, offsets) for offsets in valleys(blocks, sections, 4))
    assert best <= 1.01 * sections.floor < top_of(blocks, sweep(blocks, 0))


def test_alike_blocks_are_no_trouble():
    blocks = [Block((Piece(number, number + 3, 64),)) for number in range(3_000)]
    offsets = next(valleys(blocks, sections_of(blocks), 1))
    assert top_of(blocks, offsets) <= 6 * 64
