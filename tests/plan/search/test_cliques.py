"""Maximal cliques: all of them, each once, beside all sets tried; and no more work than was allowed."""

from itertools import combinations
from random import Random

from every import every

from tirlite.plan.search.sections import cliques


def graph(seed, count):
    random = Random(seed)
    rows = [0] * count
    for a, b in combinations(range(count), 2):
        if random.random() < 0.6:
            rows[a] |= 1 << b
            rows[b] |= 1 << a
    return rows


def is_clique(rows, mask):
    members = [v for v in range(len(rows)) if mask >> v & 1]
    return all(rows[a] >> b & 1 for a, b in combinations(members, 2))


@every("seed", range(10))
def test_all_maximal_cliques_are_found_once(seed):
    rows = graph(seed, 8)
    every = {mask for mask in range(1, 1 << 8) if is_clique(rows, mask)}
    maximal = sorted(mask for mask in every if not any(mask != other and mask & other == mask for other in every))
    assert sorted(cliques(rows, [1] * 8, (1 << 8) - 1, 10_000)) == maximal


def test_what_weighs_most_comes_first_where_the_steps_do_not_reach():
    rows = [0b1110, 0b0001, 0b0001, 0b0001]
    assert list(cliques(rows, [1, 2, 9, 3], 0b1111, 3)) == [0b0101]


def test_only_what_is_within_counts():
    rows = [0b110, 0b101, 0b011]
    assert list(cliques(rows, [1, 1, 1], 0b011, 100)) == [0b011]
