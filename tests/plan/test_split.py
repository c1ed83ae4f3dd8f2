"""The split: large blocks from the ground up, all others upside down above them."""

from random import Random

from blocks_apart import overlapping

from tirlite.plan.pack.blocks import Block, Piece, sections_of, top_of
from tirlite.plan.pack.many.split import part_of_largest, split
from tirlite.plan.pack.sweep import sweep


def mixed(count: int, seed: int, aligns: tuple[int, ...] = (1,), *, with_gaps: bool = False) -> list[Block]:
    """Most blocks small and short-lived, few large; with gaps, some that live twice."""
    random = Random(seed)
    blocks = []
    for low in range(count):
        size = random.randrange(1, 100) if random.random() < 0.9 else random.randrange(1_000, 50_000)
        high = low + 1 + random.randrange(10 if random.random() < 0.9 else count // 4)
        pieces = [Piece(low, high, size)]
        if with_gaps and random.random() < 0.2:
            pieces.append(Piece(high + 3, high + 5, size))
        blocks.append(Block(tuple(pieces), random.choice(aligns)))
    return blocks


def test_no_two_blocks_share_a_byte_at_one_time() -> None:
    for seed in range(3):
        blocks = mixed(600, seed, with_gaps=True)
        found = list(split(blocks, sections_of(blocks)))
        assert found
        for offsets in found:
            assert min(offsets) >= 0
            assert overlapping(blocks, offsets) == []


def test_what_hangs_upside_down_is_aligned() -> None:
    blocks = mixed(600, 4, aligns=(1, 8, 64))
    for offsets in split(blocks, sections_of(blocks)):
        assert overlapping(blocks, offsets) == []
        assert all(offset % block.align == 0 for offset, block in zip(offsets, blocks, strict=True))


def test_a_few_large_blocks_among_many_small_ones_need_less_than_in_sweeps() -> None:
    blocks = mixed(3_000, 5)
    sections = sections_of(blocks)
    best = min(top_of(blocks, offsets) for offsets in split(blocks, sections))
    swept = min(top_of(blocks, sweep(blocks, tight, backward=back)) for tight, back in ((0, False), (0.1, True)))
    assert sections.floor <= best < swept


def test_too_few_blocks_to_tell_large_from_small_are_left_alone() -> None:
    blocks = mixed(100, 6)
    assert list(split(blocks, sections_of(blocks))) == []


def test_the_part_of_the_largest_counts_what_is_live_together() -> None:
    few = [Block((Piece(0, 10, 600),)), Block((Piece(20, 30, 700),))]
    many = [Block((Piece(time, time + 1, 100),)) for time in range(60)]
    assert part_of_largest(few + many, sections_of(few + many)) == 700 / 800
    assert part_of_largest(many, sections_of(many)) == 1
    assert part_of_largest([], sections_of([])) == 0
