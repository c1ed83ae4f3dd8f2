"""DivideLoops, before and after: one loop over several axes becomes a loop over rows and one through each."""

from __future__ import annotations

import numpy as np
import pytest
from every import every
from parsed import parsed

import tirlite as tl
from tirlite.interp import interpret
from tirlite.ir import validate
from tirlite.rewrite import DivideLoops, Normalize

HEADER = """
n = tl.dim("n", min=0)

@tl.kernel
def f(x: tl.f32[n * 192], s: tl.f32[64], r: tl.f32[n * 3], q: tl.f32[n], y: tl.f32[n * 192]):
"""


def kernel(body: str) -> tl.PrimFunc:
    return Normalize()(parsed(HEADER, body))


def result(run: object, func: tl.PrimFunc, n: int) -> np.ndarray:
    arrays = [
        np.random.default_rng(seed).standard_normal(size).astype(np.float32)
        for seed, size in enumerate((n * 192, 64, n * 3, n, n * 192))
    ]
    if run is interpret:
        interpret(func, {**dict(zip(func.params, arrays, strict=True)), func.dims[0]: n})
    else:
        tl.compile(func)(*arrays)
    return arrays[-1]


def expect(before: str, after: str) -> None:
    """That `before` becomes `after`, up to names, and does the same."""
    func, wanted = kernel(before), kernel(after)
    found = DivideLoops()(func)
    validate(found)
    assert tl.structural_equal(found, wanted), f"{found}\nis not\n{wanted}"
    for n in (0, 1, 3):
        np.testing.assert_array_equal(result(interpret, found, n), result(interpret, func, n))
        np.testing.assert_array_equal(result(tl.compile, func, n), result(interpret, func, n))


def test_a_row_is_a_loop_of_its_own() -> None:
    expect(
        """
        for i in range(n * 192):
            y[i] = x[i] * s[i % 64] + r[i // 64]
        """,
        """
        for i in range(3 * n):
            for j in range(64):
                y[i * 64 + j] = x[i * 64 + j] * s[j] + r[i]
        """,
    )


def test_short_rows_are_written_out() -> None:
    expect(
        """
        for i in range(n * 192):
            y[i] = x[i] * s[i % 3] + x[i // 6]
        """,
        """
        for i in range(64 * n):
            for j in range(3):
                y[i * 3 + j] = x[i * 3 + j] * s[j] + x[i // 2]
        """,
    )


def test_what_is_left_of_a_short_row_is_a_loop_behind() -> None:
    expect(
        """
        for i in range(n * 3 - 1):
            y[i] = x[i] * s[i % 5]
        """,
        """
        for i in range(max(3 * n - 1, 0) // 5):
            for j in range(5):
                y[i * 5 + j] = x[i * 5 + j] * s[j]
        for i in range(max(n * 3 - 1, 0) // 5 * 5, n * 3 - 1):
            y[i] = x[i] * s[i % 5]
        """,
    )


@pytest.mark.parametrize("length", [2, 3, 5, 8])
def test_elements_that_are_repeated(length: int) -> None:
    text = f"""
n, m = tl.dims("n m")

@tl.kernel
def larger(x: tl.u8[n, m], c: tl.u8[{length}], y: tl.u8[{length} * n, {length} * m]):
    for i in range({length} * n):
        for j in range({length} * m):
            y[i, j] = x[i // {length}, j // {length}] + c[j % {length}]
"""
    kernel = tl.compile(tl.parse(text))
    c = np.arange(length, dtype=np.uint8)
    for rows, columns in ((1, 1), (2, 7), (3, 33), (1, 100)):
        x = np.random.default_rng(columns).integers(0, 200, (rows, columns), np.uint8)
        y = np.zeros((length * rows, length * columns), np.uint8)
        kernel(x, c, y)
        wanted = x.repeat(length, axis=0).repeat(length, axis=1) + np.tile(c, columns)
        np.testing.assert_array_equal(y, wanted)


def test_other_numbers_are_multiples_of_the_smallest() -> None:
    expect(
        """
        for i in tl.parallel(n * 192):
            row = i // 192
            y[i] = x[i] * s[i % 64] + r[row] * x[i % 192]
        """,
        """
        for i in tl.parallel(3 * n):
            for j in tl.parallel(64):
                row = i // 3
                y[i * 64 + j] = x[i * 64 + j] * s[j] + r[row] * x[i % 3 * 64 + j]
        """,
    )


@every(
    "body",
    [
        "for i in range(n * 192):\n    y[i] = x[i]",
        "for i in range(n * 192):\n    y[i] = s[i % 12]",  # neither short nor long rows
        "for i in range(n * 192):\n    y[i] = s[i % 48] + s[i % 64]",
        "for i in range(n * 192):\n    y[i] = s[i % 17]",  # no whole rows, which are long
        "for i in range(n * 192):\n    if i % 2 == 0:\n        y[i] = x[i]",  # a mask says as much
        "for i in range(1, n * 192):\n    y[i] = s[i % 64]",
        "for i in range(0, n * 192, 2):\n    y[i] = s[i % 64]",
        "for i in range(n * 192):\n    y[0] = s[i % 64]",  # in order
        "for i in range(n * 192):\n    for k in range(3):\n        y[i] = s[i % 64]",
    ],
)
def test_what_stays_whole(body: str) -> None:
    func = kernel(body)
    assert DivideLoops()(func) is func
