"""Windows are combined row by row where neighbours share rows, and where the order may change."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.ir import For, Store, statements_of
from tirlite.rewrite.vectors.taps import by_window_rows

REDUCED = "tl.reduce(3)"
TERM = "x[i + u, j + v]"


def combined(term: str = TERM, loop: str = REDUCED, dtype: str = "f32", combine: str = "s = s + {}") -> str:
    """The value that is stored in the innermost loop that is left."""
    func = tl.parse(f"""
h, w = tl.dims("h w")

@tl.kernel
def f(x: tl.{dtype}[h + 2, w + 2], q: tl.{dtype}[3, 3], y: tl.{dtype}[h, w]):
    for i in range(h):
        for j in range(w):
            s = tl.{dtype}(0)
            for u in {loop}:
                for v in {loop}:
                    {combine.format(term)}
            y[i, j] = s
""")
    rows, columns = [*statements_of(func.body, For)][:2]
    made = by_window_rows(columns.body, rows.var)
    return str([*statements_of(made, Store)][1].value)


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ({}, "s[()] + (x[i + u, j] + x[i + u, j + 1] + x[i + u, j + 2])"),
        ({"dtype": "i32", "loop": "range(3)"}, "s[()] + (x[i + u, j] + x[i + u, j + 1] + x[i + u, j + 2])"),
        (
            {"combine": "s = max(s, {})"},
            "max(s[()], max(max(x[i + u, j], x[i + u, j + 1]), x[i + u, j + 2]))",
        ),
    ],
)
def test_rows_are_combined_first(written: dict[str, str], wanted: str) -> None:
    assert combined(**written) == wanted


@pytest.mark.parametrize(
    "written",
    [
        {"loop": "range(3)"},  # floats in the order that is written
        {"term": "q[u, v] * x[i + u, j + v]"},  # rows of another window have other weights
        {"term": "x[i + 2 * u, j + v]", "loop": "tl.reduce(2)"},
        {"term": "x[u, j + v]"},
        {"term": "s * x[i + u, j + v]", "dtype": "i32", "loop": "range(3)"},
    ],
)
def test_others_stay(written: dict[str, str]) -> None:
    term = written.get("term", TERM)
    assert combined(**written) == f"s[()] + {term}".replace("s * x", "s[()] * x")


@pytest.mark.parametrize("shape", [(1, 1), (7, 9), (12, 33)])
def test_the_interpreter_says_the_same(shape: tuple[int, int]) -> None:
    h, w = tl.dims("h w")

    @tl.kernel
    def f(x: tl.f32[h + 4, w + 4], y: tl.out[tl.f32[h, w]], z: tl.out[tl.f32[h, w]]):
        for i in range(h):
            for j in range(w):
                s = tl.f32(0)
                t = tl.f32(0)
                for u in tl.reduce(5):
                    for v in tl.reduce(5):
                        s += x[i + u, j + v]
                        t += x[i + u, j + v] * x[i + u, j + v]
                y[i, j] = s
                z[i, j] = t

    x = np.random.default_rng(0).standard_normal((shape[0] + 4, shape[1] + 4), np.float32)
    found, wanted = np.zeros((2, *shape), "f4"), np.zeros((2, *shape), "f4")
    f(x, *found)
    tl.compile(f.lowered, strategy="none").interpret(x, *wanted)
    np.testing.assert_array_equal(found, wanted)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(float), (5, 5))
    np.testing.assert_allclose(found, [windows.sum((2, 3)), (windows**2).sum((2, 3))], rtol=1e-4, atol=1e-4)
