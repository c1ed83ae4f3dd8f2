"""Loops over all elements of whole rows are one loop in native code, and compute what the interpreter does."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.codegen import lower

b, c, h, w = tl.dims("b c h w")


@tl.kernel
def scaled(x: tl.f32[b, c, h, w], g: tl.f32[c], y: tl.out[tl.f32[b, c, h, w]]):
    for q in range(b):
        for o in range(c):
            for i in range(h):
                for j in range(w):
                    y[q, o, i, j] = x[q, o, i, j] * g[o]


@tl.kernel
def above(x: tl.i32[h, w], y: tl.i32[h + 2, w], count: tl.i32[1]):
    """From the second row on, and so that the order of the iterations is seen."""
    for i in range(1, h):
        for j in range(w):
            if x[i, j] > count[0]:
                count[0] += 1
            y[i + 2, j] = x[i, j] - count[0]


@tl.kernel
def reversed_rows(x: tl.i32[h, w], y: tl.out[tl.i32[h, w]]):
    for i in range(h - 1, -1, -1):
        for j in range(w):
            y[i, j] = x[i, j] + 1


@pytest.mark.parametrize("sizes", [(2, 3, 1, 1), (2, 3, 5, 7), (1, 4, 0, 3), (2, 1, 3, 0), (3, 2, 9, 33)])
@pytest.mark.parametrize("workers", [1, 2])
def test_rows_of_all_lengths_give_what_the_interpreter_does(sizes: tuple[int, ...], workers: int) -> None:
    _, channels, rows, width = sizes
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal(sizes).astype(np.float32), rng.standard_normal(channels).astype(np.float32)
    kernel = tl.compile(scaled, target=tl.Target.host(workers=workers))
    np.testing.assert_array_equal(kernel(x, g), x * g[:, None, None])

    image = rng.integers(-9, 9, (rows, width)).astype(np.int32)
    for each, given in (
        (above, lambda: (image, np.zeros((rows + 2, width), np.int32), np.zeros(1, np.int32))),
        (reversed_rows, lambda: (image, np.zeros((rows, width), np.int32))),
    ):
        found, expected = given(), given()
        each(*found)
        each.interpret(*expected)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


@tl.kernel
def where_positive(x: tl.i32[h, w], table: tl.i32[c], at: tl.i32[1], y: tl.i32[h, w]):
    for i in range(h):
        for j in range(w):
            if x[i, j] > 0:
                y[i, j] = table[at[0]]


def test_a_fault_in_a_row_tells_the_row_and_the_column() -> None:
    x = np.zeros((3, 4), np.int32)
    x[1, 2] = 1
    for call in (where_positive, where_positive.interpret):
        with pytest.raises(tl.KernelIndexError, match="index 9 is out of bounds .* at i = 1, j = 2"):
            call(x, np.zeros(5, np.int32), np.array([9], np.int32), np.zeros_like(x))


def is_one_loop(source: str) -> bool:
    """Whether loops over rows and columns with this statement are one loop in native code."""
    func = tl.parse(f"""
n, m = tl.dims("n m")

@tl.kernel
def f(x: tl.f32[n, m], y: tl.f32[n, m], row: tl.f32[m], wide: tl.f32[n, m + 1]):
    for i in range(n):
        for j in range(m):
            {source}
""")
    return lower(func).text.count("phi i64") == 1


def test_only_loops_that_go_through_whole_rows_are_one() -> None:
    assert is_one_loop("y[i, j] = x[i, j] + x[0, 0]")
    assert is_one_loop("if x[i, j] > y[i, j]: y[i, j] = x[i, j]")
    for apart in (
        "y[i, j] = wide[i, j]",  # rows that go on behind
        "y[i, j] = x[i, j] + row[j]",
        "y[i, j] = tl.f32(j)",
        "y[i, j] = x[j, i]",
        "y[i, j] = wide[i, j + 1]",
        "y[i, 0] += x[i, j]",
        "y[i, j] = row[tl.checked(n)]",
    ):
        assert not is_one_loop(apart), apart
