"""The fill: blocks are placed from below, where the most is still to come; compiled as in Python."""

from dataclasses import fields
from random import Random

import numpy as np
import pytest
from blocks_apart import overlapping

from tirlite.plan.blocks import Block, Piece, sections_of, top_of
from tirlite.plan.pack import portfolio
from tirlite.plan.pack.heuristics import sweep
from tirlite.plan.pack.many.fill import fill, filled, fillings
from tirlite.plan.pack.many.terrain import LEFT, Terrain, Times
from tirlite.plan.pack.portfolio import pack_blocks
from tirlite.plan.search.engine import PythonEngine
from tirlite.solver import LateEngine


def crowd(count: int, seed: int, aligns: tuple[int, ...] = (1,), *, is_whole: bool = True) -> list[Block]:
    """Blocks of all sizes, some born together, some with gaps, some of no size."""
    random = Random(seed)
    blocks = []
    for number in range(count):
        low = number // 2
        high = low + random.randrange(1, count // 4)
        size = random.choice((0, random.randrange(1, 9), random.randrange(1, 200)))
        pieces = [Piece(low, high, size)]
        if not is_whole and random.random() < 0.3:
            pieces.append(Piece(high + 2, high + 5, size))
        blocks.append(Block(tuple(pieces), random.choice(aligns)))
    return blocks


@pytest.mark.parametrize("seed", range(4))
def test_no_two_blocks_share_a_byte_at_one_time(seed):
    blocks = crowd(120, seed, (1, 1, 8, 64), is_whole=seed % 2 == 0)
    runs = list(fillings(blocks, PythonEngine(), 3))
    assert runs
    for offsets in runs:
        assert min(offsets) >= 0
        assert all(offset % block.align == 0 for offset, block in zip(offsets, blocks, strict=True))
        assert overlapping(blocks, offsets) == []


def test_one_block_or_none_is_placed_on_the_ground():
    assert next(fillings([Block((Piece(3, 9, 5),), 8)], PythonEngine(), 1)) == [0]
    assert next(fillings([Block((Piece(3, 9, 0),))], PythonEngine(), 1)) == [0]


def test_sections_are_those_that_tell_conflicts():
    blocks = [block for block in crowd(200, 5) if block.size]
    sections, times = sections_of(blocks), Times.of(blocks)
    assert tuple(times.load) == sections.load
    spans = zip(times.low, times.high, times.size, strict=True)
    assert [(tuple(span),) for span in spans] == [sections.spans[number] for number in times.order]


def test_compiled_it_leaves_the_same_in_all_cells():
    times = Times.of(crowd(150, 7, (1, 1, 16)))
    ranks = np.random.default_rng(7).permutation(len(times.order))
    for capacity in (int(times.load.max()), 1 << 60):
        runs = [Terrain.of(times, ranks, times.load, 10**9) for _ in range(2)]
        PythonEngine().run(fill, runs[0], capacity, 4)
        LateEngine().run(fill, runs[1], capacity, 4)
        for field in fields(Terrain):
            python, native = (list(getattr(run, field.name)) for run in runs)
            assert python == native, field.name


def test_what_lives_where_the_most_is_to_come_goes_first():
    # The first one has the highest rank, but the others live while the most is live.
    lives = ((0, 6, 10), (4, 10, 10), (8, 12, 30), (8, 12, 30))
    times = Times.of([Block((Piece(*life),)) for life in lives])
    offsets = filled(times, np.array([9.0, 8.0, 1.0, 2.0]), times.load, 1 << 60, PythonEngine())
    assert offsets.tolist() == [10, 0, 40, 10]


def test_it_ends_where_it_takes_too_long():
    times = Times.of(crowd(100, 8))
    terrain = Terrain.of(times, np.arange(len(times.order)), times.load, 50)
    fill(terrain, 1 << 60, 4)
    assert terrain.state[LEFT] > 0


def test_very_many_blocks_come_closer_to_the_floor_than_by_a_sweep():
    random = Random(9)
    lives = [(low, low + 1 + random.randrange(200), random.randrange(1, 1_000)) for low in range(6_000)]
    blocks = [Block((Piece(*life),)) for life in lives]
    offsets = pack_blocks(blocks, engine=LateEngine())
    floor = sections_of(blocks).floor
    assert floor <= top_of(blocks, offsets) < floor * 1.04 < top_of(blocks, sweep(blocks, 0))


def test_some_thousand_blocks_are_filled_as_well(monkeypatch):
    random = Random(5)
    blocks = []
    for _ in range(1_300):
        low = random.randrange(2_600)
        blocks.append(Block((Piece(low, low + random.randint(1, 130), random.randint(1, 1_000)),)))
    with_fill = [top_of(blocks, pack_blocks(blocks, engine=engine)) for engine in (None, LateEngine())]
    monkeypatch.setattr(portfolio, "fillings", lambda *_: ())
    assert sections_of(blocks).floor <= max(with_fill) < top_of(blocks, pack_blocks(blocks))
