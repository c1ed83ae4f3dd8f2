"""Searches beside each other: the answer of one thread, whoever is ready first."""

from random import Random
from threading import Event, current_thread, enumerate as running_threads, get_ident, main_thread
from time import sleep

import pytest

from tirlite.diag import PlanError
from tirlite.plan import Problem, Request, solve
from tirlite.plan.search import descent
from tirlite.plan.search.engine import PythonEngine


class ParallelEngine(PythonEngine):
    """The engine in Python, in as many threads as are wanted: two have begun before one goes on, at random."""

    is_parallel = True
    slice = 20

    def __init__(self, seed):
        self.threads = set()
        self._are_two = Event()
        self._random = Random(seed)

    def advance(self, cells, nodes):
        if current_thread() is not main_thread():
            self.threads.add(get_ident())
            if len(self.threads) > 1:
                self._are_two.set()
            self._are_two.wait(10)
        sleep(self._random.choice((0, 0.0005)))
        super().advance(cells, nodes)


def crowd(seed, count):
    """Requests of odd sizes, too many to be placed at the bound by chance."""
    random = Random(seed)
    lows = [random.randrange(40) for _ in range(count)]
    return Problem(
        tuple(
            Request(f"r{i}", random.randrange(1, 90), (low, low + random.randrange(2, 16)))
            for i, low in enumerate(lows)
        )
    )


@pytest.mark.parametrize(("seed", "count"), [(2, 70), (11, 70)])
def test_threads_change_no_plan(seed, count, monkeypatch):
    monkeypatch.setattr(descent, "_THREADED", 1)
    one = solve(crowd(seed, count), "exact", 2_500, engine=PythonEngine())
    engine = ParallelEngine(seed)
    two = solve(crowd(seed, count), "exact", 2_500, engine=engine, threads=3)
    assert len(engine.threads) > 1
    assert two.placements == one.placements
    assert two.lower_bound == one.lower_bound
    assert two.deterministic


class Interrupted(ParallelEngine):
    """The user loses patience while several threads search."""

    def advance(self, cells, nodes):
        super().advance(cells, nodes)
        if len(self.threads) > 1:
            raise KeyboardInterrupt


def test_an_interrupt_ends_all_threads_and_leaves_the_best_plan(monkeypatch):
    monkeypatch.setattr(descent, "_THREADED", 1)
    before = {*running_threads()}
    plan = solve(crowd(11, 70), "exact", 2_500, engine=Interrupted(4), threads=3)
    assert not plan.deterministic
    assert plan.total >= plan.lower_bound
    assert {*running_threads()} <= before


def test_a_number_of_threads_below_one_is_refused():
    with pytest.raises(PlanError, match="threads"):
        solve(crowd(5, 4), "exact", threads=0)
