"""What pairs in place save at one time at most: the heaviest matching, tried out; and what is left of what lives."""

from itertools import combinations
from random import Random

from every import every

from tirlite.plan.blocks import Block
from tirlite.plan.search.pairing import Saving, greedily_saved, least_live, most_saved


def drawn(seed, nodes, count):
    random = Random(seed)
    edges = [(*random.sample(range(nodes), 2), random.randrange(1, 9)) for _ in range(count)]
    return sorted(edges, key=lambda edge: -edge[2])


def heaviest(edges):
    """The weight of the heaviest set of edges of which no two have a node in common."""
    found = 0
    for size in range(len(edges) + 1):
        for some in combinations(edges, size):
            nodes = [node for a, b, _ in some for node in (a, b)]
            if len(nodes) == len(set(nodes)):
                found = max(found, sum(weight for _, _, weight in some))
    return found


@every("seed", range(20))
def test_of_few_requests_the_heaviest_matching_counts(seed):
    edges = drawn(seed, 6, 7)
    assert greedily_saved(edges) <= heaviest(edges) == most_saved(edges)


@every("seed", range(20))
def test_of_many_no_less_than_that(seed):
    edges = drawn(seed, 13, 13)
    assert greedily_saved(edges) <= heaviest(edges) <= most_saved(edges)


def item(size, low, high, align=1):
    return Block.even(size, ((low, high),), align)


def test_two_that_want_the_same_place_save_once():
    items = [item(8, 0, 3), item(8, 2, 5), item(6, 2, 5)]
    assert least_live(items, []) == 22
    assert least_live(items, [Saving(1, 0, (2, 3), 8), Saving(2, 0, (2, 3), 6)]) == 14


def test_what_is_saved_at_other_times_does_not_count():
    items = [item(8, 0, 3), item(8, 2, 5), item(6, 3, 5)]
    assert least_live(items, [Saving(1, 0, (2, 3), 8)]) == 14


def test_aligned_items_fill_whole_multiples_below_the_topmost():
    items = [item(5, 0, 2, align=8), item(6, 0, 2, align=8), item(7, 0, 2, align=8), item(1, 0, 2)]
    assert least_live(items, []) == 8 + 8 + 5
    assert least_live(items, [Saving(1, 0, (0, 2), 5)]) == 8 + 5 + 1
