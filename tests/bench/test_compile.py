"""`tirlite bench compile`: what it measures, and how figures are shown. No test asserts a time."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tirlite as tl
from tirlite.bench.compile import _exponent
from tirlite.bench.figures import Figure, figures_json, figures_text
from tirlite.bench.main import main
from tirlite.bench.programs import EXTREMES, SHAPES, all_live, chain, deep_nest, long_sum, straight_line, symbolic_chain


def test_quick_figures_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "compile", "--quick", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["machine"]) == {"Python", "numpy", "llvmlite", "machine", "cores", "load"}
    names = [figure["name"] for figure in found["figures"]]
    for expected in (
        "import tirlite, beyond NumPy",
        "vector add with symbolic n, source to first result",
        "first call of a kernel that the cache on disk has",
        "call with three arrays, all checks, of a new kernel",
        "call with three arrays, all checks, after some hundreds",
        "passes, chain, 400 temporaries",
        "passes, all live, 400 temporaries",
        "passes, symbolic, exponent of growth",
        "a sum of 200 terms, IR to result",
        "200 statements in a row, IR to result",
        "40 nested loops, IR to result",
    ):
        assert names.count(expected) == 1
    assert all(set(figure) == {"name", "value", "unit", "bar", "note", "met"} for figure in found["figures"])
    assert all(figure["value"] is not None for figure in found["figures"])


def test_figures_show_whether_their_bar_is_met() -> None:
    figures = [
        Figure("fast", 1.0, "ms", 2.0),
        Figure("slow", 3000.0, "ms", 2.0, "on a bad day"),
        Figure("any", 0.1234, "s"),
        Figure("broken", None, "s", 1.0),
    ]
    assert [figure.met for figure in figures] == [True, False, None, False]
    rows = [line.split("  ") for line in figures_text(figures).splitlines()[-4:]]
    assert [[cell.strip() for cell in row if cell] for row in rows] == [
        ["fast", "1 ms", "2 ms", "yes"],
        ["slow", "3,000 ms", "2 ms", "NO", "on a bad day"],
        ["any", "0.123 s"],
        ["broken", "failed", "1 s", "NO"],
    ]
    assert [figure["met"] for figure in json.loads(figures_json(figures))["figures"]] == [True, False, None, False]


def test_the_exponent_of_growth() -> None:
    sizes = (1_000, 4_000, 16_000)
    assert _exponent(sizes, [2e-6 * size for size in sizes]) == pytest.approx(1)
    assert _exponent(sizes, [3e-9 * size**2 for size in sizes]) == pytest.approx(2)


@pytest.mark.parametrize(
    ("func", "expected"),
    [
        (chain(5), 6),
        (symbolic_chain(5), 6),
        (all_live(4), 4 * 1 + (0 + 1 + 2 + 3)),
        (long_sum(7), 7),
        (straight_line(9), 9),
        (deep_nest(40), 1),
    ],
    ids=lambda value: value.name if isinstance(value, tl.PrimFunc) else "",
)
def test_the_programs_compute_what_they_say(func: tl.PrimFunc, expected: float) -> None:
    x, y = np.ones(1, np.float32), np.zeros(1, np.float32)
    tl.compile(func, strategy="share")(x, y)
    assert y[0] == expected


def test_the_shapes_are_what_they_are_called() -> None:
    plans = {name: tl.compile(make(50), strategy="share").plan for name, make in SHAPES.items()}
    assert {name: len(plan.placements) for name, plan in plans.items()} == dict.fromkeys(SHAPES, 50)
    assert len(plans["chain"].pools) == 1, "each temporary takes over the place of the one before"
    assert len(plans["all live"].pools) == 50
    assert plans["symbolic"].problem.dims != ()
    assert set(EXTREMES) == {"sum", "row", "nest", "temporaries"}
