"""Sets of items that stand on each other: what lives at one time, what never does, what is aligned by itself."""

from itertools import combinations

from tirlite.plan.blocks import Block, Piece
from tirlite.plan.search.instance import instances
from tirlite.plan.search.sections import meetings


def item(size, *live, align=1):
    return Block.even(size, live, align)


def test_items_of_which_any_two_meet_need_the_sum_of_all_though_they_never_live_at_once():
    (instance,) = instances([item(3, (0, 2), (7, 8)), item(4, (1, 4)), item(5, (3, 6), (7, 8))])
    assert (0, 1, 2) in instance.sections
    assert instance.floor == 12


def test_a_buffer_that_is_smaller_while_another_one_lives_fills_less_beside_it():
    handed_on = Block((Piece(0, 2, 9), Piece(2, 6, 2)))
    (instance,) = instances([handed_on, item(4, (3, 4), (8, 9)), item(5, (4, 6), (8, 9))])
    assert instance.floor == 11


def test_what_is_aligned_fills_whole_multiples_beside_smaller_things_that_are_not():
    (instance,) = instances([item(5, (0, 2), align=8), item(6, (0, 2), align=8), item(1, (0, 2))])
    assert [sum(fills) for fills in instance.fills] == [12, 16]
    assert instance.floor == 8 + 5


def test_what_may_lie_over_each_other_is_in_no_section_together():
    items = [item(size, (0, 9)) for size in (3, 4, 5, 6)]
    loose = {0: {1}, 1: {0, 2}, 2: {1}}
    near, live = meetings(items, range(4), loose)
    assert sorted(members for members, _ in live) == [(0, 2, 3), (1, 3)]
    apart = {frozenset(pair) for pair in combinations(range(4), 2) if pair[1] not in near[pair[0]]}
    assert apart == {frozenset((0, 1)), frozenset((1, 2))}
