"""Four rows that are added to a row of results are taken in at once, and so are four that sums go along."""

from __future__ import annotations

from textwrap import indent

import numpy as np
import pytest
from every import every

import tirlite as tl
from tirlite.rewrite import Normalize, VectorizeLoops

n, m, k = tl.dims("n m k")


def vectorized(source: str) -> tl.PrimFunc:
    return VectorizeLoops(target="x86-64-v4")(Normalize()(tl.parse(source)))


def source(stmt: str, loop: str = "range(n)", inner: str = "range(m)") -> str:
    return f"""
n, m = tl.dims("n m")

@tl.kernel
def f(x: tl.f32[n, m], y: tl.f32[m], z: tl.f32[n, m], at: tl.i32[m], few: tl.f32[20], k: tl.i32[n]):
    for i in {loop}:
        for j in {inner}:
            {stmt}
"""


def test_four_rows_are_one_loop() -> None:
    wanted = """
n, m = tl.dims("n m")

@tl.kernel
def f(x: tl.f32[n, m], y: tl.f32[m], z: tl.f32[n, m], at: tl.i32[m], few: tl.f32[20], k: tl.i32[n]):
    for i in range(0, n // 4 * 4, 4):
        for j in range(m):
            y[j] = y[j] + x[i, j]
            y[j] = y[j] + x[i + 1, j]
            y[j] = y[j] + x[i + 2, j]
            y[j] = y[j] + x[i + 3, j]
    for i in range(n // 4 * 4, n):
        for j in range(m):
            y[j] = y[j] + x[i, j]
"""
    found, expected = vectorized(source("y[j] = y[j] + x[i, j]")), Normalize()(tl.parse(wanted))
    assert tl.structural_equal(found, expected), str(found)


def named(value: str, stmt: str) -> str:
    return source(stmt).replace("        for j", f"        v = {value}\n        for j")


def test_rows_whose_factor_has_a_name_go_together_unless_the_row_decides_it() -> None:
    found = str(vectorized(named("few[i % 20]", "y[j] += v * x[i, j]")))
    assert "for i in range(0, n // 4 * 4, 4):" in found
    assert "y[j] = y[j] + v_3 * x[i + 3, j]" in found
    for value in ("y[0]", "few[i % 20] + y[i % m]", "few[0 // (i + m)]"):
        given = named(value, "y[j] += v * x[i, j]")
        assert tl.structural_equal(vectorized(given), Normalize()(tl.parse(given)))


@pytest.mark.parametrize(("rows", "step"), [(4, 4), (5, 5), (6, 3), (10, 5), (12, 4), (13, 4)])
def test_of_a_known_number_of_rows_none_is_left_over_if_that_can_be(rows: int, step: int) -> None:
    found = str(vectorized(source("y[j] += z[i, j]", f"range({rows})")))
    assert f"for i in range(0, {rows // step * step}, {step}):" in found
    assert ("for i in range(12, 13):" in found) is (rows == 13)


def test_rows_above_are_added_to_a_row_of_the_same_array() -> None:
    """The rows of a triangular system: no update changes what the next one adds."""
    rows = """
n, m = tl.dims("n m")

@tl.kernel
def f(a: tl.f32[n, n], x: tl.f32[n, m]):
    for i in range(n):
        for t in range({stop}):
            for j in range(m):
                x[i, j] -= a[i, t] * x[t, j]
"""
    assert "x[i, j] = x[i, j] - a[i, t + 3] * x[t + 3, j]" in str(vectorized(rows.format(stop="i")))
    assert "t + 3" not in str(vectorized(rows.format(stop="i + 1")))


@every(
    "stmt, loop, inner",
    [
        ("y[j] += y[0] * x[i, j]", "range(n)", "range(m)"),  # from another element of the row
        ("z[i, j] += x[i, j]", "range(n)", "range(m)"),  # to rows of their own
        ("y[at[j]] += x[i, j]", "range(n)", "range(m)"),  # to elements that may be the same
        ("few[j] = x[i, j]", "range(n)", "range(20)"),  # from nothing
        ("y[j] += x[i, j]", "range(n)", "range(k[i])"),  # of lengths of their own
        ("few[j] += x[i, j]", "tl.reduce(n)", "range(20)"),  # blocks of iterations have copies
        ("y[j] += x[i, j]", "range(3)", "range(m)"),  # too few
        ("few[j] += x[i, j]", "range(n)", "range(16)"),  # that stay in registers
        ("pass", "range(n)", "range(m)"),
    ],
)
def test_other_rows_follow_one_another(stmt: str, loop: str, inner: str) -> None:
    given = source(stmt, loop, inner)
    assert tl.structural_equal(vectorized(given), Normalize()(tl.parse(given)))


@tl.kernel
def taps(x: tl.f32[n], f: tl.f32[k], y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = 0
    for t in range(k):
        weight = f[t]
        for i in range(n - k + 1):
            y[i] += weight * x[i + t]


def test_taps_with_names_are_those_in_order() -> None:
    rng = np.random.default_rng(0)
    for size, count in ((1, 1), (5, 9), (20, 4), (64, 7), (100, 1), (1000, 30)):
        x, f = rng.random(size, np.float32), rng.random(count, np.float32)
        np.testing.assert_array_equal(taps(x, f), taps.interpret(x, f))


@tl.kernel
def rows_of_a_sparse_matrix(ptr: tl.i32[n + 1], at: tl.i32[k], v: tl.f32[k], x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
    for i in range(n):
        for j in range(m):
            y[i, j] = 0
        for p in range(ptr[i], ptr[i + 1]):
            for j in range(m):
                y[i, j] += v[p] * x[at[p], j]


@pytest.mark.parametrize("width", [1, 5, 33])
def test_each_element_is_summed_up_in_the_order_that_is_written(width: int) -> None:
    draw = np.random.default_rng(width)
    ptr = np.cumsum([0, 0, 1, 4, 5, 9]).astype(np.int32)
    v, x = draw.normal(size=19).astype(np.float32), draw.normal(size=(5, width)).astype(np.float32)
    at = draw.integers(0, 5, 19).astype(np.int32)
    wanted = np.zeros((5, width), np.float32)
    for row in range(5):
        for p in range(ptr[row], ptr[row + 1]):
            wanted[row] += v[p] * x[at[p]]
    for run in (rows_of_a_sparse_matrix, rows_of_a_sparse_matrix.interpret):
        assert run(ptr, at, v, x).tobytes() == wanted.tobytes()


SUMS = """
n, m, k = tl.dims("n m k")

@tl.kernel
def f(x: tl.f32[n, k], z: tl.f32[m, k], v: tl.f32[k], y: tl.f32[n, m], w: tl.f32[n]):
{body}
"""


def test_sums_that_share_a_row_go_together() -> None:
    before = """
    for i in range(n):
        w[i] = 0
        for p in tl.reduce(k):
            w[i] += x[i, p] * v[p]
"""
    after = """
    for i in range(0, n // 4 * 4, 4):
        w[i] = 0
        w[i + 1] = 0
        w[i + 2] = 0
        w[i + 3] = 0
        for p in tl.reduce(k):
            w[i] += x[i, p] * v[p]
            w[i + 1] += x[i + 1, p] * v[p]
            w[i + 2] += x[i + 2, p] * v[p]
            w[i + 3] += x[i + 3, p] * v[p]
    for i in range(n // 4 * 4, n):
        w[i] = 0
        for p in tl.reduce(k):
            w[i] += x[i, p] * v[p]
"""
    found, wanted = vectorized(SUMS.format(body=before)), Normalize()(tl.parse(SUMS.format(body=after)))
    assert tl.structural_equal(found, wanted), str(found)


@pytest.mark.parametrize(
    "stmt",
    [
        "w[i] += x[i, p] * x[i, p]",  # no row that others go along
        "w[i] += x[i, k - 1 - p] * v[p]",  # backwards
        "w[i] = x[i, p] * v[p]",  # no sum: the loop is over `range`
    ],
)
def test_other_sums_follow_one_another(stmt: str) -> None:
    kind = "tl.reduce" if "+=" in stmt else "range"
    given = SUMS.format(body=f"    for i in range(n):\n        for p in {kind}(k):\n            {stmt}\n")
    assert "n // 4" not in str(vectorized(given))


def test_as_many_rows_go_together_as_have_registers_for_their_sums() -> None:
    one = "            total += x[i, p] * z[j, p]\n"
    other = "            least += (x[i, p] - z[j, p]) * (x[i, p] - z[j, p])\n"
    for sums, rows in ((one, 4), (one + other, 2)):
        body = f"""
    for i in range(n):
        for j in range(m):
            total = tl.f32(0)
            least = tl.f32(0)
            for p in tl.reduce(k):
{indent(sums, "    ")}
            y[i, j] = total + least
"""
        found = str(vectorized(SUMS.format(body=body)))
        assert f"for i in range(0, n // {rows} * {rows}, {rows}):" in found
        assert f"for j in range(0, m // {rows} * {rows}, {rows}):" in found


@tl.kernel(allow="contract")
def product_with_rows(x: tl.f32[n, k], z: tl.f32[m, k], y: tl.out[tl.f32[n, m]]):
    for i in range(n):
        for j in range(m):
            total = tl.f32(0)
            for p in tl.reduce(k):
                total += x[i, p] * z[j, p]
            y[i, j] = total


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 7), (9, 6, 37), (17, 31, 70)])
def test_products_with_rows(shape: tuple[int, int, int]) -> None:
    rows, columns, length = shape
    draw = np.random.default_rng(length)
    x, z = draw.random((rows, length), np.float32), draw.random((columns, length), np.float32)
    y = product_with_rows(x, z)
    np.testing.assert_allclose(y, x @ z.T, rtol=1e-5)
    lowered = tl.compile(product_with_rows.lowered, strategy="none")
    np.testing.assert_array_equal(lowered.interpret(x, z), y)
