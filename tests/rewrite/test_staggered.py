"""Rows that wait for the element before go together, each as far behind the one before as it has to be."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.ir import For, PrimFunc, statements_of
from tirlite.rewrite import Normalize, VectorizeLoops

HEADER = """
n, m = tl.dims("n m")

@tl.kernel
def f(x: tl.f32[n, m], y: tl.f32[n, m], top: tl.i32[()], last: tl.f32[()], at: tl.i64[n]):
"""


def parsed(body: str) -> PrimFunc:
    return tl.parse(HEADER + "".join(f"    {line}\n" for line in body.splitlines()))


def made(body: str) -> PrimFunc:
    return VectorizeLoops()(Normalize()(parsed(body)))


def nest(update: str, columns: str = "1, m", rows: str = "1, n") -> str:
    return f"for i in range({rows}):\n    for j in range({columns}):\n        {update}"


@pytest.mark.parametrize(
    ("update", "behind"),
    [
        ("x[i, j] = max(x[i, j - 1], x[i - 1, j]) + y[i, j]", 0),
        ("x[i, j] = x[i, j - 1] * 0.5 + y[i, j]", 0),  # rows of their own
        ("x[i, j] = x[i, j - 1] + x[at[i], j]", 0),  # of whatever row, but the same column
        ("x[i, j] = (x[i, j - 1] + x[i - 1, j]) * x[i - 1, j - 1]; top[()] = max(top[()], tl.i32(x[i, j]))", 0),
        ("x[i, j] = x[i, j - 1] + x[i - 1, j + 1] * 0.5", 1),
        ("x[i, j] = x[i, j - 1] + x[i - 2, j + 3] * 0.5", 2),  # in two rows
        ("x[i, j] = x[i, j - 1] + x[i - 1, m - 1 - j] * 0.5", None),  # at no fixed distance
        ("x[i, j] = x[i, j - 1] + x[i - 1, j + 5] * 0.5", None),  # too far
        ("x[i, j] = x[i, j - 1] + y[i, j]; last[()] = x[i, j]", None),  # the last one stays
        ("x[i, j] = y[i, j - 1] + y[i, j]", None),  # waits for nothing
    ],
)
def test_rows_go_together_that_lie_so_far_behind(update: str, behind: int | None) -> None:
    body = nest(update.replace("; ", "\n        "), "1, m - 5", "2, n")
    func = made(body)
    blocks = [loop for loop in statements_of(func.body, For) if loop.step == 4 and loop.var.name == "i"]
    assert [len(block.body.stmts) for block in blocks] == ([] if behind is None else [3 if behind else 1])
    kernel, written = tl.compile(func, schedule=None), tl.compile(parsed(body), schedule=None)
    random = np.random.default_rng(0)
    for shape in ((6, 7), (11, 50), (3, 64)) if blocks else ():
        x, y = (random.normal(size=shape).astype(np.float32) for _ in range(2))
        at = random.integers(0, shape[0], shape[0])
        found, again, wanted = ((x.copy(), y, np.zeros((), np.int32), np.zeros((), "f"), at) for _ in range(3))
        kernel(*found)
        kernel.interpret(*again)
        written.interpret(*wanted)
        np.testing.assert_equal(found, wanted)
        np.testing.assert_equal(again, wanted)


@pytest.mark.parametrize(
    "body",
    [
        nest("x[i, j] = x[i, j - 1] + y[i, j]", columns="i, m"),  # other columns in each row
        nest("x[i, j] = x[i, j - 1] + y[i, j]", columns="1, 20"),  # few
        nest("x[i, j] = x[i, j - 1] + x[i - 1, tl.checked(at[i])]"),  # may stop
    ],
)
def test_other_rows_follow_each_other(body: str) -> None:
    assert all(loop.step == 1 for loop in statements_of(made(body).body, For))
