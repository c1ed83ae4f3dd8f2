"""The search: what it finds is as low as the best of all arrangements, and its bound says so."""

from itertools import pairwise, permutations
from random import Random

import pytest
from every import every
from random_cases import groups

from tirlite.plan.blocks import Block, Piece
from tirlite.plan.search.descent import minimise
from tirlite.plan.search.engine import Limits, PythonEngine

ENOUGH = 100_000


def item(size, *live, align=1, fixed=None):
    return Block.even(size, live, align, fixed)


def meetings(a, b):
    """What both fill, in each stretch of time in which both live and fill anything."""
    for low, high, mine in a.pieces:
        for begin, end, theirs in b.pieces:
            if low < end and begin < high and mine and theirs:
                yield mine, theirs


def clash(a, at, b, other):
    return any(at < other + theirs and other < at + mine for mine, theirs in meetings(a, b))


def lowest_room(items, placed, number):
    """The lowest offset at which an item clashes with none of those placed."""
    own, offset = items[number], 0
    taken = [(at - mine, at + theirs) for n, at in placed.items() for mine, theirs in meetings(own, items[n])]
    for low, high in sorted(taken):
        if offset <= low:
            break
        offset = max(offset, -(-high // own.align) * own.align)
    return offset


def best_height(items):
    """The least height over all orders of first fit, None where fixed offsets clash. Every packing settles to one."""
    fixed = {n: each.fixed for n, each in enumerate(items) if each.fixed is not None}
    if any(clash(items[a], fixed[a], items[b], fixed[b]) for a in fixed for b in fixed if a < b):
        return None
    heights = []
    for order in permutations(set(range(len(items))) - set(fixed)):
        placed = dict(fixed)
        for number in order:
            placed[number] = lowest_room(items, placed, number)
        heights.append(max(placed[n] + items[n].size for n in placed))
    return min(heights)


def random_items(random, most=6):
    """Items in any mix of alignments, gaps, fixed offsets, equal copies, and sizes that vary."""
    has_aligns, has_gaps, has_fixed, has_copies, has_pieces = (random.random() < 0.4 for _ in range(5))
    scale, end = random.choice([1, 1, 4, 8]), random.choice([4, 8, 14])
    items = []
    while len(items) < random.randrange(1, most + 1):
        low = random.randrange(end)
        live = [(low, low + random.randrange(1, end))]
        if has_gaps and random.random() < 0.5:
            again = live[0][1] + random.randrange(1, 4)
            live.append((again, again + random.randrange(1, 5)))
        align = random.choice([1, 2, 4, 8]) if has_aligns else 1
        size = scale * random.randrange(random.random() > 0.1, random.choice([4, 12]))
        fixed = align * random.randrange(6) if has_fixed and random.random() < 0.35 else None
        even = Block.even(size, live, align, fixed)
        uneven = has_pieces and random.random() < 0.5
        block = Block(tuple(pieces_of(random, live, size)), align, fixed) if uneven else even
        items += [block] * (2 if has_copies and fixed is None else 1)
    return items[:most]


def pieces_of(random, live, size):
    """Stretches in which a buffer fills its size, and others in which it fills less, or nothing."""
    for low, high in live:
        for begin, end in pairwise(sorted({low, high, random.randint(low, high)})):
            yield Piece(begin, end, random.choice([size, size, size // 2, 0]))


def assert_valid(items, packing):
    for n, each in enumerate(items):
        assert packing.offsets[n] % each.align == 0
        assert each.fixed in (None, packing.offsets[n])
        assert packing.offsets[n] + each.size <= packing.total
        assert not any(clash(each, packing.offsets[n], items[o], packing.offsets[o]) for o in range(n))


@every("seed", range(40))
def test_it_finds_what_trying_all_orders_finds(seed):
    for number in groups(100):
        items = random_items(Random(1000 * seed + number))
        packing = minimise(items, PythonEngine(), Limits(ENOUGH))
        wanted = best_height(items)
        if wanted is None:
            assert packing is None
        else:
            assert (packing.total, packing.bound) == (wanted, wanted)
            assert_valid(items, packing)


def test_a_height_above_the_largest_sum_can_be_proved():
    items = [item(3, (1, 4), align=4), item(3, (0, 1), align=4), item(4, (0, 1), align=2), item(2, (0, 2), align=2)]
    packing = minimise(items, PythonEngine(), Limits(ENOUGH))
    assert (packing.total, packing.bound) == (10, 10)
    assert best_height(items) == 10
    assert sum(each.size for each in items[1:]) == 9


def test_a_buffer_lies_low_where_its_neighbour_has_shrunk():
    shrinking = Block((Piece(0, 2, 8), Piece(2, 6, 2)))
    packing = minimise([shrinking, item(6, (3, 6))], PythonEngine(), Limits(ENOUGH), start=(0, 8))
    assert (packing.total, packing.bound) == (8, 8)


def test_padding_counts_in_the_bound():
    items = [item(5, (0, 2), align=4), item(5, (0, 2), align=4), item(5, (0, 2), align=4)]
    packing = minimise(items, PythonEngine(), Limits(ENOUGH))
    assert (packing.total, packing.bound) == (21, 21)


def jigsaw(seed, count):
    """A rectangle of 512 bytes cut to pieces."""
    random = Random(seed)
    parts = [(0, 64, 0, 512)]
    while len(parts) < count:
        parts.sort(key=lambda part: (part[1] - part[0]) * (part[3] - part[2]))
        low, high, bottom, top = parts.pop()
        if (random.random() < 0.5 and high - low > 3) or top - bottom < 16:
            cut = random.randrange(low + 1, high)
            parts += [(low, cut, bottom, top), (cut, high, bottom, top)]
        else:
            cut = random.randrange(bottom + 1, top)
            parts += [(low, high, bottom, cut), (low, high, cut, top)]
    return [item(top - bottom, (low, high)) for low, high, bottom, top in parts]


@pytest.mark.parametrize("seed", range(4))
def test_a_cut_rectangle_is_put_together_again(seed):
    packing = minimise(jigsaw(seed, 60), PythonEngine(), Limits(5000))
    assert (packing.total, packing.bound) == (512, 512)


def test_more_nodes_are_never_worse_and_bounds_never_cross():
    items = jigsaw(2, 80)
    results = [minimise(items, PythonEngine(), Limits(nodes)) for nodes in (1, 500, 1500, 4000)]
    for packing in results:
        assert_valid(items, packing)
        assert packing.bound == 512 <= packing.total
    totals = [packing.total for packing in results]
    assert totals == sorted(totals, reverse=True)
    assert totals[-1] < totals[0]


def test_the_answer_does_not_depend_on_how_the_search_is_sliced():
    class Sliced(PythonEngine):
        slice = 7

    items = jigsaw(2, 80)
    whole, sliced = Limits(3000), Limits(3000)
    assert minimise(items, Sliced(), sliced) == minimise(items, PythonEngine(), whole)
    assert sliced.used == whole.used


def test_a_start_is_kept_where_nothing_better_is_found():
    items = [item(4, (0, 2)), item(4, (1, 3)), item(4, (2, 4))]
    assert minimise(items, PythonEngine(), Limits(ENOUGH), start=(4, 0, 4)).offsets == (4, 0, 4)
    assert minimise(items, PythonEngine(), Limits(ENOUGH), start=(0, 4, 8)).total == 8


def test_an_interrupt_leaves_the_best_so_far():
    class Interrupted(PythonEngine):
        calls = 0

        def advance(self, cells, nodes):
            self.calls += 1
            if self.calls > 12:
                raise KeyboardInterrupt
            super().advance(cells, nodes)

    items, limits = jigsaw(2, 80), Limits(ENOUGH)
    packing = minimise(items, Interrupted(), limits)
    assert_valid(items, packing)
    assert limits.ended_by_clock


def test_progress_falls_and_says_what_was_spent():
    heard = []
    limits = Limits(2000, listener=heard.append)
    packing = minimise(jigsaw(2, 80), PythonEngine(), limits)
    assert [each.nodes for each in heard] == sorted(each.nodes for each in heard)
    assert min(each.total for each in heard) == packing.total
    assert limits.used >= 2000 or packing.total == packing.bound


def test_nothing_needs_nothing():
    assert minimise([], PythonEngine(), Limits(10)).total == 0
    assert minimise([item(0, (0, 3)), item(0, (1, 2))], PythonEngine(), Limits(10)).offsets == (0, 0)


def test_progress_tells_of_all_parts_together():
    told = []
    high, low = item(40, (0, 2)), item(10, (5, 7))
    minimise([high, low], PythonEngine(), Limits(ENOUGH, listener=told.append), start=None)
    assert (told[-1].total, told[-1].bound) == (40, 40)
    assert all(each.bound == 40 for each in told)
