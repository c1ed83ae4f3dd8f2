"""Orders of tasks: the best ones of small problems are found, and are as good as trying all."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from every import every

from tirlite.graph.order.decide import Task, Tasks, stretches
from tirlite.graph.order.memory_order import order_of, segments


def random_tasks(seed: int, count: int, reach: int = 100) -> Tasks:
    """Tasks that each write one tensor and read up to three of the latest."""
    random = Random(seed)
    tasks = []
    for number in range(count):
        latest = range(max(0, number - reach), number)
        reads = tuple(random.sample(latest, min(len(latest), random.randint(0, 3))))
        lenders = reads[:1] if random.random() < 0.4 else ()
        tasks.append(Task(reads, (number,), lenders, random.choice((0, 0, 5))))
    return Tasks(tuple(tasks), tuple(random.randint(1, 20) for _ in range(count)))


def all_orders(tasks: Tasks, done: int = 0) -> Iterator[tuple[int, ...]]:
    if done == (1 << len(tasks.tasks)) - 1:
        yield ()
    for number, before in enumerate(tasks.before):
        if not done >> number & 1 and not before & ~done:
            yield from ((number, *rest) for rest in all_orders(tasks, done | 1 << number))


def test_what_shrinks_first_makes_room():
    # Two inputs grow to 10 bytes each and shrink to 1: one after the other takes 11 at most, in step 20.
    tasks = Tasks(
        (Task((), (0,)), Task((), (1,)), Task((0,), (2,)), Task((1,), (3,)), Task((2, 3), (4,))), (10, 10, 1, 1, 0)
    )
    assert tasks.peak([0, 1, 2, 3, 4]) == 21
    found = order_of(tasks)
    assert found.peak == tasks.peak(found.order) == 12
    assert found.proved


def test_a_result_in_place_of_an_operand_counts_once():
    tasks = Tasks((Task((), (0,)), Task((0,), (1,), lenders=(0,)), Task((1,), (2,))), (8, 8, 0))
    assert tasks.peak([0, 1, 2]) == 8


def test_stretches_end_where_all_ways_meet():
    diamond = [Task((), (0,)), Task((0,), (1,)), Task((0,), (2,)), Task((1, 2), (3,)), Task((3,), (4,))]
    assert stretches(Tasks(tuple(diamond), (1,) * 5)) == [[0], [1, 2, 3], [4]]


@every("seed", range(40))
def test_no_order_is_better_than_the_best(seed: int):
    tasks = random_tasks(seed, 7)
    found = order_of(tasks)
    assert found.proved
    assert sorted(found.order) == list(range(7))
    assert found.peak == tasks.peak(found.order) == min(map(tasks.peak, all_orders(tasks)))


@every("seed", range(60))
def test_no_order_of_chains_is_better_than_the_best(seed: int):
    tasks = chains(*((2, 3), (3, 2))[seed % 2], seed, forked=seed % 3 == 0)
    found = order_of(tasks)
    assert found.proved
    assert found.peak == tasks.peak(found.order) == min(map(tasks.peak, all_orders(tasks)))


def chains(count: int, length: int, seed: int, *, forked: bool = False) -> Tasks:
    """Chains of one length that meet at the end; with `forked` they begin at one task too."""
    random = Random(seed)
    tasks, sizes, ends = [], [], []
    if forked:
        tasks, sizes = [Task((), (0,))], [random.randint(1, 20)]
    for _ in range(count):
        reads = (0,) if forked else ()
        for _ in range(length):
            tasks.append(Task(reads, (len(tasks),), reads if random.random() < 0.3 else (), random.choice((0, 0, 5))))
            sizes.append(random.randint(1, 100))
            reads = tasks[-1].writes
        ends += reads
    return Tasks((*tasks, Task(tuple(ends), (len(tasks),))), (*sizes, 1))


@pytest.mark.parametrize("forked", [False, True])
@pytest.mark.parametrize(("count", "length"), [(14, 2), (9, 3), (7, 4), (4, 7), (2, 14)])
def test_thirty_operators_in_chains_are_proved(count: int, length: int, forked: bool):
    tasks = chains(count, length, 0, forked=forked)
    found = order_of(tasks)
    assert found.proved
    assert found.peak == tasks.peak(found.order)


@pytest.mark.parametrize(("reach", "seed"), [*((8, seed) for seed in range(10)), (100, 0), (100, 1), (100, 2)])
def test_thirty_operators_are_proved(reach: int, seed: int):
    tasks = random_tasks(seed, 30, reach)
    found = order_of(tasks)
    assert found.proved
    assert found.peak == tasks.peak(found.order) <= tasks.peak(range(30))


def test_a_chain_is_one_group_up_to_the_end_behind_which_it_is_smallest():
    # 10 bytes become 1, then 5 become 2: each pair runs without a break, and others may come in between.
    chain = (Task((), (0,)), Task((0,), (1,)), Task((1,), (2,)), Task((2,), (3,)))
    assert segments(Tasks((*chain, Task((3,), (4,))), (10, 1, 5, 2, 0)), range(4), 0) == [(0, 1), (2, 3)]
    # A higher hill behind a lower one takes it along.
    assert segments(Tasks((*chain, Task((3,), (4,))), (5, 2, 10, 1, 0)), range(4), 0) == [(0, 1, 2, 3)]


def test_what_reads_what_others_read_stands_alone():
    tasks = (Task((), (0,)), Task((0,), (1,)), Task((1,), (2,)), Task((0,), (3,)))
    assert segments(Tasks(tasks, (9, 9, 1, 1)), (1, 2, 3), 1) == [(1,), (2,), (3,)]


def test_hundreds_are_never_worse_than_as_given():
    tasks = random_tasks(1, 300)
    found = order_of(tasks)
    assert sorted(found.order) == list(range(300))
    assert found.peak == tasks.peak(found.order) <= tasks.peak(range(300))
