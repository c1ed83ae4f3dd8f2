"""ComputeOnce: what a reduction and the loop behind it both compute is stored, but where that would change results."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.interp import interpret
from tirlite.rewrite import ComputeOnce, Normalize

HEADER = """
n, m = tl.dims("n m")

@tl.kernel
def f(x: tl.f32[n, m], w: tl.f32[m], y: tl.f32[n, m], z: tl.f32[n]):
    for i in range(n):
"""
SUM = """
        z[i] = 0.0
        for j in tl.reduce(m):
            z[i] += tl.exp(x[i, j] - w[0])
"""
END = """
        for j in range(m):
            y[i, j] = tl.exp(x[i, j] - w[0]) / z[i]
"""


def parsed(body: str) -> tl.PrimFunc:
    return Normalize()(tl.parse(HEADER + body))


def test_exponentials_of_a_softmax_are_computed_once() -> None:
    wanted = parsed("""
        z[i] = 0.0
        for j in range(m):
            y[i, j] = tl.exp(x[i, j] - w[0])
        for j in tl.reduce(m):
            z[i] += y[i, j]
        for j in range(m):
            y[i, j] = y[i, j] / z[i]
""")
    found = ComputeOnce()(parsed(SUM + END))
    assert tl.structural_equal(found, wanted), str(found)


def test_names_of_values_are_seen_through() -> None:
    named = END.replace(
        "y[i, j] = tl.exp(x[i, j] - w[0])", "value = x[i, j]\n            y[i, j] = tl.exp(value - w[0])"
    )
    assert tl.structural_equal(ComputeOnce()(parsed(SUM + named)), ComputeOnce()(parsed(SUM + END)))


@pytest.mark.parametrize(
    "body",
    [
        SUM + "        w[0] = 1.0\n" + END,
        SUM + "        y[i, 0] = 1.0\n" + END,
        SUM + "        assert z[i] > 0.0\n" + END,
        SUM.replace("x[i, j]", "y[i, j]") + END.replace("x[i, j]", "y[i, j]"),
        SUM + END.replace("w[0]", "w[1]"),
        SUM + END.replace("range(m)", "range(1, m)"),
        SUM + END.replace("y[i, j] =", "y[i, 0] ="),
        SUM + END.replace("/ z[i]", "/ y[i, 0]"),
        SUM.replace("tl.exp", "tl.abs") + END.replace("tl.exp", "tl.abs"),
        SUM.replace("tl.reduce", "range") + END,
    ],
    ids=[
        "operand",
        "result",
        "assertion",
        "in-place",
        "other",
        "range",
        "one-element",
        "reads",
        "cheap",
        "no-reduction",
    ],
)
def test_nothing_is_stored_where_it_would_differ_or_not_pay(body: str) -> None:
    func = parsed(body)
    assert ComputeOnce()(func) is func


def test_parameters_of_called_functions_may_be_one_array_where_they_are_read_at_the_place_of_the_result() -> None:
    first = "        total = tl.f32(0)\n"
    loops = (SUM + END).replace("        z[i] = 0.0\n", "").replace("z[i]", "total").replace(" - w[0]", "")
    alike = parsed(first + loops)
    assert ComputeOnce(called=True)(alike) is not alike
    beside = parsed(SUM + END)
    assert ComputeOnce(called=True)(beside) is beside


@pytest.mark.parametrize("columns", [0, 1, 5, 16, 197])
def test_results_stay_the_same_to_the_last_bit(columns: int) -> None:
    n, m = tl.dims("n m")

    @tl.kernel
    def softmax(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
        for i in range(n):
            top = tl.f32(-9)
            for j in tl.reduce(m):
                top = max(top, x[i, j])
            total = tl.f32(0)
            for j in tl.reduce(m):
                total += tl.exp(x[i, j] - top)
            for j in range(m):
                y[i, j] = tl.exp(x[i, j] - top) / total

    x = np.random.default_rng(0).normal(size=(3, columns)).astype(np.float32)
    once, twice = tl.compile(softmax), tl.compile(softmax, schedule=())
    expected = np.empty_like(x)
    func = once.lowered
    interpret(func, dict(zip((*func.dims, *func.params), (3, columns, x, expected), strict=True)))
    np.testing.assert_array_equal(once(x), expected)
    np.testing.assert_array_equal(once(x), twice(x))


RESIZED = """
n, m, h, w = tl.dims("n m h w")

@tl.kernel
def f(x: tl.u8[h, w, 3], y: tl.out[tl.u8[n, m, 3]], k: tl.i64):
"""


def test_places_in_a_row_are_divided_once_for_all_rows() -> None:
    func = Normalize()(
        tl.parse(
            RESIZED
            + """
    for i in range(n):
        for j in range(m):
            for c in range(3):
                y[i, j, c] = x[i * h // n, j * w // m, c] + x[i * h // n, j * w // m, 0]
"""
        )
    )
    wanted = Normalize()(
        tl.parse(
            RESIZED
            + """
    quotients = tl.alloc(tl.i64[m])
    for j in range(m):
        quotients[j] = j * w // m
    for i in range(n):
        for j in range(m):
            for c in range(3):
                y[i, j, c] = x[i * h // n, quotients[j], c] + x[i * h // n, quotients[j], 0]
"""
        )
    )
    found = ComputeOnce()(func)
    assert tl.structural_equal(found, wanted), str(found)
    x = np.random.default_rng(0).integers(0, 256, (7, 5, 3)).astype(np.uint8)
    kernel = tl.compile(func, schedule=None)
    for shape in ((1, 1, 3), (3, 11, 3), (16, 2, 3)):
        once, plain = np.empty(shape, np.uint8), np.empty(shape, np.uint8)
        sizes = {"n": shape[0], "m": shape[1], "h": 7, "w": 5}
        dims = {dim: sizes[dim.name] for dim in found.dims}
        interpret(found, {**dims, **dict(zip(found.params, (x, once, 1), strict=True))})
        kernel(x, plain, 1)
        np.testing.assert_array_equal(once, plain)
    assert ComputeOnce(called=True)(func) is func


@pytest.mark.parametrize(
    "body",
    [
        "for j in range(m):\n        y[0, j, 0] = x[0, j * w // m, 0]",
        "for i in range(n):\n        for j in range(m):\n            y[i, j, 0] = x[0, (i + j) * w // m, 0]",
        "for i in range(n):\n        for j in range(m):\n            y[i, j, 0] = x[0, j // 2, 0]",
        "for i in range(n):\n        for j in range(k):\n            y[i, j, 0] = x[0, j // k, 0]",
        "for i in range(n):\n        for j in range(i):\n            y[i, j, 0] = x[0, j // k, 0]",
    ],
    ids=["one row", "both", "constant", "no extent", "triangle"],
)
def test_other_quotients_stay(body: str) -> None:
    func = Normalize()(tl.parse(RESIZED + "    " + body + "\n"))
    assert ComputeOnce()(func) is func
