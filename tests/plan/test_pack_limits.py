"""Where many requests are packed, the clock and Ctrl-C end it, and the best plan so far is taken."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from tirlite.plan import Problem, Request, check, solve
from tirlite.plan.search.engine import Limits, Progress
from tirlite.plan.strategies.pack import pack


@pytest.fixture(scope="module")
def many() -> Problem:
    draw = Random(3)
    begins = [draw.randrange(6000) for _ in range(5200)]
    return Problem(
        [Request(f"r{i}", draw.randint(1, 900), (low, low + draw.randint(2, 90))) for i, low in enumerate(begins)]
    )


@pytest.mark.parametrize("strategy", ["auto", "exact"])
def test_no_other_heuristic_is_tried_once_the_time_is_up(many: Problem, strategy: str) -> None:
    heard: list[Progress] = []
    plan = solve(many, strategy, time_limit=0.0, listener=heard.append)
    assert not plan.deterministic
    assert [progress.total for progress in heard] == [plan.total]


def test_an_interrupt_takes_the_best_plan_so_far(many: Problem) -> None:
    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    plan = pack(many, limits=Limits(0, None, interrupt))
    assert check(many, plan)
    assert not plan.deterministic


def test_an_interrupt_before_the_first_plan_gets_one_quickly(many: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> Iterator[list[int]]:
        raise KeyboardInterrupt
        yield []

    monkeypatch.setattr("tirlite.plan.pack.portfolio._attempts", interrupt)
    plan = solve(many, "auto")
    assert check(many, plan)
    assert not plan.deterministic


def test_few_requests_get_all_their_heuristics() -> None:
    few = Problem([Request(f"r{i}", 1 + i % 7, (i, i + 5)) for i in range(50)])
    limits = Limits(0, 0.0)
    assert pack(few, limits=limits).placements == pack(few).placements
    assert not limits.ended_by_clock
