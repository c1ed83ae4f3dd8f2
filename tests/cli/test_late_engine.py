"""The engine that is loaded late gives the answers of the one that was never compiled."""

from __future__ import annotations

from tirlite.cli.late_engine import LateEngine
from tirlite.cli.plan_instances import cut
from tirlite.plan import solve
from tirlite.plan.search.engine import PythonEngine


def test_the_same_plan_for_the_same_budget() -> None:
    problem = cut(40)
    late, plain = (solve(problem, "exact", 300, engine=engine) for engine in (LateEngine(), PythonEngine()))
    assert late.placements == plain.placements
    assert late.total == plain.total
