"""What a search is told of a problem: few sections, small numbers, equal buffers in a row, a bound."""

from tirlite.plan.blocks import Block
from tirlite.plan.search.instance import instances, overlaps


def one(*rows):
    (instance,) = instances([Block.even(size, live, align) for size, align, *live in rows])
    return instance


def test_sections_are_the_sets_that_no_other_contains():
    instance = one((4, 1, (0, 9)), (4, 1, (1, 3)), (4, 1, (2, 5)), (4, 1, (5, 8)))
    assert instance.sections == ((0, 1, 2), (0, 3))
    assert instance.spans == ((0, 2), (0, 1), (0, 1), (1, 2))
    assert instance.neighbours == ((1, 2, 3), (0, 2), (0, 1), (0,))
    assert (instance.unit, instance.sizes, instance.floor) == (4, (1, 1, 1, 1), 3)


def test_the_unit_divides_all_sizes_and_swallows_alignments_that_divide_it():
    assert one((2048, 64, (0, 2)), (3072, 512, (1, 3))).aligns == (1, 1)
    mixed = one((48, 32, (0, 2)), (80, 1, (1, 3)))
    assert (mixed.unit, mixed.aligns, mixed.sizes) == (16, (2, 1), (3, 5))


def test_sizes_are_rounded_where_all_around_is_aligned_and_the_top_is_not():
    instance = one((5, 4, (0, 2)), (6, 4, (0, 2)), (7, 4, (0, 2)))
    assert (instance.sizes, instance.nets, instance.slacks, instance.floor) == ((8, 8, 8), (5, 6, 7), (3,), 21)


def test_equal_buffers_stand_in_a_row():
    instance = one((4, 1, (0, 3)), (4, 1, (1, 2)), (4, 1, (0, 3)), (4, 1, (0, 3)))
    assert instance.before == (-1, -1, 0, 2) or instance.before == (-1, 0, 1, 2)


def test_parts_that_do_not_overlap_are_apart_and_the_largest_comes_first():
    parts = list(instances([Block.even(4, ((0, 2),)), Block.even(9, ((2, 5),)), Block.even(0, ((0, 9),))]))
    assert [part.numbers for part in parts] == [(1,), (0,)]


def test_overlaps_are_counted_up_to_a_limit():
    crowd = [Block.even(1, ((0, 2),)) for _ in range(10)]
    assert overlaps(crowd, 100) == 45
    assert overlaps(crowd, 20) > 20
