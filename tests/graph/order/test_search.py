"""Orders of tasks: the best ones of small problems are found, and are as good as trying all."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from tirlite.graph.order.search import order_of
from tirlite.graph.order.stretches import stretches
from tirlite.graph.order.tasks import Task, Tasks


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


@pytest.mark.parametrize("seed", range(40))
def test_no_order_is_better_than_the_best(seed: int):
    tasks = random_tasks(seed, 7)
    found = order_of(tasks)
    assert found.proved
    assert sorted(found.order) == list(range(7))
    assert found.peak == tasks.peak(found.order) == min(map(tasks.peak, all_orders(tasks)))


@pytest.mark.parametrize("seed", range(10))
def test_thirty_operators_are_proved(seed: int):
    tasks = random_tasks(seed, 30, reach=8)
    found = order_of(tasks)
    assert found.proved
    assert found.peak == tasks.peak(found.order) <= tasks.peak(range(30))


def test_hundreds_are_never_worse_than_as_given():
    tasks = random_tasks(1, 300)
    found = order_of(tasks)
    assert sorted(found.order) == list(range(300))
    assert found.peak == tasks.peak(found.order) <= tasks.peak(range(300))
