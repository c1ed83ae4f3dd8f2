"""Where only the proof is missing that a plan is safe, a weaker one is taken; what is wrong stays an error."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import pytest

import tirlite as tl
from tirlite.plan import Counterexample, Ok, Plan, Problem, Request, check, solve
from tirlite.plan.verdict import Fault
from tirlite.sizes import Dim

n, m = Dim("n"), Dim("m")
problem = Problem((Request("a", 4 * n, (0, 2)), Request("b", 4 * m, (1, 3)), Request("c", 4 * n, (2, 4))))


def blind(*strategies: str) -> Callable[[Problem, Plan], Ok | Counterexample]:
    """A checker that proves nothing of symbolic plans of these strategies."""

    def checked(problem: Problem, plan: Plan) -> Ok | Counterexample:
        if plan.strategy in strategies and problem.dims:
            return Counterexample(Fault.OVERLAP, "`a` and `b` are not proved to lie apart", ("a", "b"))
        return check(problem, plan)

    return checked


@pytest.mark.parametrize("strategy", ["auto", "pack", "coalesce", "group"])
@pytest.mark.parametrize(("doubted", "taken"), [((), "share"), (("share",), "none")])
def test_the_next_strategy_is_taken_where_a_proof_is_missing(
    strategy: str, doubted: tuple[str, ...], taken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("tirlite.plan.solve"), "check", blind(strategy, *doubted))
    plan = solve(problem, strategy)
    assert plan.strategy == taken
    assert check(problem, plan)


def test_a_plan_that_is_wrong_at_a_sample_is_an_error_of_the_strategy(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("tirlite.plan.strategies.pack")
    wrong = Plan.of(problem, {request.id: ("arena", 0) for request in problem.requests}, "pack")
    monkeypatch.setattr(module, "pack", lambda problem: wrong)
    with pytest.raises(tl.InternalError, match="live together at time 1") as caught:
        solve(problem, "pack")
    assert caught.value.code == "broken-strategy"


def test_a_strategy_of_the_user_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("tirlite.plan.solve"), "check", blind("pack"))
    with pytest.raises(tl.PlanError, match="not proved to lie apart"):
        solve(problem, lambda given: import_module("tirlite.plan.strategies.pack").pack(given))
