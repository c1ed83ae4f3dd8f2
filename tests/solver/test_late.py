"""The engine that compiles itself late gives the answers of those that do it at once or never; kernels are given it."""

from __future__ import annotations

import pytest

import tirlite as tl
from tirlite import driver
from tirlite.bench.plan_instances import cut
from tirlite.plan import solve
from tirlite.plan.search.cells import Cells
from tirlite.plan.search.engine import PythonEngine
from tirlite.solver import LateEngine


@pytest.mark.parametrize("work", [0, 20_000, 1 << 40])
def test_the_same_plan_for_the_same_budget(work: int) -> None:
    """Wherever it goes over to compiled code: at once, in the middle of a search, or never."""
    problem = cut(128)
    late, plain = (solve(problem, "exact", 2000, engine=engine) for engine in (LateEngine(work), PythonEngine()))
    assert late.placements == plain.placements
    assert late.total == plain.total


class Counting(PythonEngine):
    """Counts the nodes that it is asked for."""

    asked = 0

    def advance(self, cells: Cells, nodes: int, /) -> None:
        Counting.asked += nodes
        super().advance(cells, nodes)


SOURCE = """
@tl.kernel
def f(x: tl.f32[64], y: tl.f32[64]):
    a = tl.alloc(tl.f32[60])
    b = tl.alloc(tl.f32[40])
    a[0] = x[0]
    b[0] = x[1]
    y[0] = a[0] + b[0]
    c = tl.alloc(tl.f32[100])
    c[1] = b[0]
    y[1] = c[1]
"""


def test_exact_kernels_search_on_the_engine_that_they_are_given() -> None:
    assert isinstance(tl.compile(tl.parse(SOURCE)).options.engine(), LateEngine)
    assert driver.compile(tl.parse(SOURCE)).options.engine is None
    auto = tl.compile(tl.parse(SOURCE), engine=Counting)
    assert auto.plan.total >= auto.plan.lower_bound
    assert Counting.asked == 0
    plans = [
        tl.compile(tl.parse(SOURCE), strategy="exact", budget=50, engine=each, cache=None).plan
        for each in (Counting, LateEngine)
    ]
    assert plans[0].placements == plans[1].placements
    assert all(plan.deterministic for plan in plans)
