"""Under what hangs: the search lays large blocks below all others, with the same answer from every engine."""

from itertools import accumulate
from random import Random

from blocks_apart import overlapping

from tirlite.plan.blocks import Block, Piece, sections_of, top_of
from tirlite.plan.pack.many.under import Hung, under
from tirlite.plan.search.engine import PythonEngine
from tirlite.solver import LateEngine


def dominated(
    count: int, seed: int, aligns: tuple[int, ...] = (1,), *, filling: int = 8, with_gaps: bool = False
) -> list[Block]:
    """One block in twenty-five is large and long-lived, and the others are next to nothing."""
    random = Random(seed)
    blocks = []
    for low in range(count):
        is_large = low % 25 == 7
        size = random.randrange(1_000, 50_000) if is_large else random.randrange(1, filling)
        high = low + 1 + random.randrange(count // 3 if is_large else 10)
        pieces = [Piece(low, high, size)]
        if with_gaps and random.random() < 0.2:
            pieces.append(Piece(high + 3, high + 5, size))
        blocks.append(Block(tuple(pieces), random.choice(aligns)))
    return blocks


def test_no_two_blocks_share_a_byte_at_one_time() -> None:
    for seed, aligns in ((1, (1,)), (2, (1, 8, 64))):
        blocks = dominated(200, seed, aligns, with_gaps=True)
        offsets = under(blocks, sections_of(blocks), LateEngine())
        assert offsets is not None
        assert min(offsets) >= 0
        assert all(offset % block.align == 0 for offset, block in zip(offsets, blocks, strict=True))
        assert overlapping(blocks, offsets) == []


def test_what_waits_for_room_is_placed_as_well() -> None:
    blocks = dominated(300, 6, filling=40)
    sections = sections_of(blocks)
    hung = Hung.of(blocks, sections, [number for number, block in enumerate(blocks) if block.size >= 1_000])
    shortened = hung.shortened(max(hung.heights) - 20)
    assert shortened.waiting
    assert sorted([*shortened.large, *shortened.numbers, *shortened.waiting]) == list(range(300))
    assert max(shortened.heights) <= max(hung.heights) - 20
    stacked = list(accumulate((blocks[number].size for number in hung.large), initial=0))
    offsets = shortened.offsets(stacked[:-1], stacked[-1] + max(shortened.depth))
    assert overlapping(blocks, offsets) == []


def test_it_comes_close_to_the_floor() -> None:
    blocks = dominated(500, 3)
    sections = sections_of(blocks)
    offsets = under(blocks, sections, LateEngine())
    assert offsets is not None
    assert sections.floor <= top_of(blocks, offsets) <= sections.floor * 1.02


def test_engines_give_the_same_answer() -> None:
    blocks = dominated(120, 4)
    sections = sections_of(blocks)
    assert under(blocks, sections, PythonEngine()) == under(blocks, sections, LateEngine(0))


def test_where_what_hangs_keeps_it_from_the_floor_nothing_is_searched() -> None:
    random = Random(5)
    lows = range(400)
    blocks = [Block((Piece(low, low + random.randrange(1, 90), random.randrange(1, 1_000)),)) for low in lows]
    assert under(blocks, sections_of(blocks), PythonEngine()) is None


def test_blocks_of_no_size_are_not_large() -> None:
    blocks = [Block((Piece(low, low + 5, 0),)) for low in range(100)]
    assert under(blocks, sections_of(blocks), PythonEngine()) is None
