"""Blocks that live alike are packed as bundles."""

from random import Random

from tirlite.plan.pack.blocks import Block, Piece, sections_of, top_of
from tirlite.plan.pack.bundles import Bundles
from tirlite.plan.pack.portfolio import pack_blocks


def alike(count: int, lifetimes: int, aligns: tuple[int, ...] = (1,)) -> list[Block]:
    """Blocks with few different lifetimes."""
    random = Random(lifetimes)
    lives = [(low, low + random.randrange(1, 5)) for low in range(lifetimes)]
    return [
        Block((Piece(*random.choice(lives), random.randrange(1, 500)),), random.choice(aligns)) for _ in range(count)
    ]


def test_a_bundle_holds_blocks_one_above_the_other_each_aligned() -> None:
    blocks = alike(1_000, 3, (1, 16))
    bundles = Bundles.of(blocks, 10)
    assert bundles is not None
    assert sorted(number for part in bundles.members for number in part) == list(range(1_000))
    offsets = bundles.offsets([0] * len(bundles.whole))
    for whole, part in zip(bundles.whole, bundles.members, strict=True):
        assert len({(blocks[number].low, blocks[number].high) for number in part}) == 1
        end = 0
        for number in part:
            assert offsets[number] >= end
            assert offsets[number] % blocks[number].align == 0
            end = offsets[number] + blocks[number].size
        assert end == whole.size


def test_blocks_that_live_alike_reach_the_floor() -> None:
    blocks = alike(3_000, 5)
    assert top_of(blocks, pack_blocks(blocks)) == sections_of(blocks).floor


def test_where_lifetimes_differ_there_are_no_bundles() -> None:
    assert Bundles.of(alike(100, 20), 10) is None
