"""Small products inside of loops: an operand that they have in common is packed once for many of them."""

from textwrap import dedent

import numpy as np
import pytest
from effort import effort

import tirlite as tl
from tirlite.codegen import Effort
from tirlite.schedules import Pack
from tirlite.schedules.handle import LoopHandle, LoopName

# Two-dimensional transforms of square blocks, one product after the other.
TRANSFORM = """
h, w = tl.dims("h w")

@tl.kernel(allow=("contract", "reassociate"))
def transform(x: tl.f32[{n} * h, {n} * w], c: tl.f32[{n}, {n}], y: tl.out[tl.f32[{n} * h, {n} * w]]):
    for {other} in range(w):
        y[0, {n} * {other}] = 1.0
    for b in range(h):
        for q in range(w):
            t = tl.alloc(tl.f32[{n}, {n}])
            for i in range({n}):
                for j in range({n}):
                    s = tl.f32(0)
                    for p in range({n}):
                        s += c[i, p] * x[{n} * b + p, {n} * q + j]
                    t[i, j] = s
            {between}
            for i in range({n}):
                for j in range({n}):
                    s = tl.f32(0)
                    for p in range({n}):
                        s += t[i, p] * c[{index}]
                    y[{n} * b + i, {n} * q + j] = s
"""
TARGET = tl.Target("x86-64-v4")


def source(**changes: object) -> tl.PrimFunc:
    given = {"n": 8, "other": "i", "between": "pass", "index": "j, p"}
    return tl.parse(dedent(TRANSFORM.format(**(given | changes))))


def places_of(func: tl.PrimFunc) -> list[LoopName]:
    """The loops at whose begin `c` is packed."""
    steps = tl.compile(func, target=TARGET).schedule.steps
    return [step.at for step in steps if isinstance(step, Pack) and step.buffer == "c"]


@pytest.mark.parametrize("n", [8, 12, 16, 20])
def test_a_transposed_operand_is_packed_once_for_a_row_of_blocks(n: int) -> None:
    assert places_of(source(n=n)) == ["b"]


def test_loops_of_the_same_name_are_told_apart() -> None:
    assert places_of(source(other="b")) == [LoopHandle("b", 1)]


# Two products in one loop, behind another loop of its name.
BOTH = """
h, w = tl.dims("h w")

@tl.kernel(allow=("contract", "reassociate"))
def both(x: tl.f32[8 * h, 8 * w], c: tl.f32[8, 8], d: tl.f32[8, 8], y: tl.out[tl.f32[2, 8 * h, 8 * w]]):
    for b in range(h):
        y[0, 8 * b, 0] = 1.0
    for b in range(h):
        for q in range(w):
            for i in range(8):
                for j in range(8):
                    s = tl.f32(0)
                    for p in range(8):
                        s += x[8 * b + i, 8 * q + p] * c[j, p]
                    y[0, 8 * b + i, 8 * q + j] = s
            for i in range(8):
                for j in range(8):
                    s = tl.f32(0)
                    for p in range(8):
                        s += x[8 * b + i, 8 * q + p] * d[j, p]
                    y[1, 8 * b + i, 8 * q + j] = s
"""


def test_a_loop_around_two_products_is_told_apart_from_others() -> None:
    kernel = tl.compile(tl.parse(dedent(BOTH)), target=TARGET)
    packs = {step.buffer: step.at for step in kernel.schedule.steps if isinstance(step, Pack)}
    assert packs == {"c": LoopHandle("b", 1), "d": LoopHandle("b", 1)}


@pytest.mark.parametrize("between", ["c[0, 0] = t[0, 0]", "c[q % 8, 1] *= tl.f32(2)"])
def test_an_operand_that_changes_meanwhile_is_packed_for_each(between: str) -> None:
    assert places_of(source(between=between)) == ["j.outer"]


def test_an_operand_that_moves_with_the_loop_between_is_packed_for_each() -> None:
    func = source(index="(j + q) % 8, p")
    assert "b" not in places_of(func)


@pytest.mark.parametrize("n", [5, 8])
@pytest.mark.parametrize("change", [{}, {"other": "b"}, {"between": "c[0, 1] *= tl.f32(2)"}, {"index": "p, j"}])
def test_results_are_those_of_the_interpreter(n: int, change: dict[str, str]) -> None:
    with effort(Effort.NONE):
        kernel = tl.compile(source(n=n, **change))
    lowered = tl.compile(kernel.lowered, schedule=None)
    numbers = np.random.default_rng(n)
    c = numbers.standard_normal((n, n), dtype=np.float32)
    for h, w in ((1, 1), (3, 2), (4, 0)):
        x = numbers.standard_normal((n * h, n * w), dtype=np.float32)
        results = []
        for run in (kernel, lowered.interpret):
            own, y = c.copy(), np.zeros_like(x)
            run(x, own, y)
            results.append((own, y))
        for one, other in zip(*results, strict=True):
            np.testing.assert_array_equal(one, other)
