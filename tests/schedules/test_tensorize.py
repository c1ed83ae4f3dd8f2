"""Tensorize: loops that do what a kernel says, done as another one says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from schedules.test_steps import body_of

import tirlite as tl

n, m, k = tl.dims("n m k")


@tl.kernel
def dot4(a: tl.u8[4], b: tl.i8[4], c: tl.i32[1]):
    for p in tl.reduce(4):
        c[0] += tl.i32(a[p]) * tl.i32(b[p])


@tl.kernel
def instruction(a: tl.u8[4], b: tl.i8[4], c: tl.i32[1]):
    c[0] = tl.dot(c[0], a[tl.ramp(0, 1, 4)], b[tl.ramp(0, 1, 4)])


@tl.kernel
def product(a: tl.u8[n, k], b: tl.i8[m, k], y: tl.out[tl.i32[n, m]]):
    for i in range(n):
        for j in range(m):
            y[i, j] = 0
            for p in tl.reduce(k):
                y[i, j] += tl.i32(a[i, p]) * tl.i32(b[j, p])


def test_a_loop_is_done_by_an_instruction() -> None:
    s = tl.schedule(product)
    s.split("p", 4, tail="peeled")
    s.tensorize("p.inner", dot4, instruction)
    assert str(s).endswith("s.tensorize('p.inner', dot4, instruction)")
    assert body_of(s) == (
        "for i in range(n):\n"
        "    for j in range(m):\n"
        "        y[i, j] = tl.i32(0)\n"
        "        for p_outer in range(0, k // 4 * 4, 4):\n"
        "            y[i, j] = tl.dot(y[i, j], a[i, tl.ramp(p_outer, 1, 4)], b[j, tl.ramp(p_outer, 1, 4)])\n"
        "        for p_rest in tl.reduce(k // 4 * 4, k):\n"
        "            y[i, j] = y[i, j] + tl.i32(a[i, p_rest]) * tl.i32(b[j, p_rest])"
    )
    kernel = tl.compile(product, schedule=s)
    numbers = np.random.default_rng(0)
    for rows, columns, terms in ((3, 5, 7), (1, 1, 1), (4, 4, 8), (9, 2, 33)):
        a = numbers.integers(0, 256, (rows, terms), np.uint8)
        b = numbers.integers(-128, 128, (columns, terms), np.int8)
        np.testing.assert_array_equal(kernel(a, b), a.astype("i4") @ b.astype("i4").T)


def test_parts_of_several_axes() -> None:
    @tl.kernel
    def corner(x: tl.f32[2, 2], y: tl.f32[2, 2]):
        for i in range(2):
            for j in range(2):
                y[i, j] = x[i, j] + 1

    @tl.kernel
    def by_rows(x: tl.f32[2, 2], y: tl.f32[2, 2]):
        for i in range(2):
            y[i, tl.ramp(0, 1, 2)] = x[i, tl.ramp(0, 1, 2)] + tl.broadcast(tl.f32(1), 2)

    @tl.kernel
    def more(x: tl.f32[3, 8, 6], y: tl.out[tl.f32[3, 8, 6]]):
        for t in tl.parallel(3):
            for i in range(8):
                for j in range(6):
                    y[t, i, j] = x[t, i, j] + 1

    s = tl.schedule(more)
    s.split("i", 2, tail="peeled")
    s.split("j", 2, tail="peeled")
    s.reorder("i.outer", "j.outer", "i.inner", "j.inner")
    s.tensorize("i.inner", corner, by_rows)
    assert "y[t, i_outer + i, tl.ramp(j_outer, 1, 2)] = x[t, i_outer + i, tl.ramp(j_outer, 1, 2)]" in body_of(s)
    x = np.random.default_rng(0).normal(size=(3, 8, 6)).astype("f")
    np.testing.assert_array_equal(tl.compile(more, schedule=s)(x), x + 1)


@tl.kernel
def off_by_one(a: tl.u8[4], b: tl.i8[4], c: tl.i32[1]):
    c[0] = tl.dot(c[0] + 1, a[tl.ramp(0, 1, 4)], b[tl.ramp(0, 1, 4)])


@tl.kernel
def saturating(a: tl.u8[4], b: tl.i8[4], c: tl.i32[1]):
    for p in range(0, 4, 2):
        pair = tl.i32(a[p]) * tl.i32(b[p]) + tl.i32(a[p + 1]) * tl.i32(b[p + 1])
        c[0] += max(min(pair, 32767), -32768)


@tl.kernel
def shorter(a: tl.u8[3], b: tl.i8[4], c: tl.i32[1]):
    c[0] = 0


@tl.kernel
def squares(a: tl.u8[4], b: tl.i8[4], c: tl.i32[1]):
    for p in tl.reduce(4):
        c[0] += tl.i32(a[p]) * tl.i32(a[p]) + tl.i32(b[p])


@tl.kernel
def in_order(a: tl.u8[4], b: tl.i8[4], c: tl.i32[1]):
    for p in range(4):
        c[0] += tl.i32(a[p]) * tl.i32(b[p])


@pytest.mark.parametrize(
    ("definition", "implementation", "reason"),
    [
        (dot4, off_by_one, r"`off_by_one` does not do what `dot4` says: `c\[0\]` is "),
        (dot4, saturating, "`saturating` does not do what `dot4` says"),
        (dot4, shorter, "`dot4` and `shorter` take different arrays"),
        (squares, instruction, r"`b\[j, p_inner\]` does not fit to `a\[p\]`"),
        (in_order, instruction, "the loop over `p.inner` is of another kind than that defined"),
    ],
)
def test_what_does_something_else_is_refused(definition: object, implementation: object, reason: str) -> None:
    s = tl.schedule(product)
    s.split("p", 4, tail="peeled")
    with pytest.raises(tl.KernelError, match=reason):
        s.tensorize("p.inner", definition, implementation)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("prepare", "loop", "reason"),
    [
        (lambda s: s.split("p", 4), "p.inner", "has not always as many iterations as that defined"),
        (lambda s: s.split("p", 8, tail="peeled"), "p.inner", "has not always as many iterations as that defined"),
    ],
)
def test_blocks_are_as_long_as_the_definition(prepare: Callable[[tl.Schedule], None], loop: str, reason: str) -> None:
    s = tl.schedule(product)
    prepare(s)
    with pytest.raises(tl.KernelError, match=reason):
        s.tensorize(loop, dot4, instruction)


def test_arrays_that_are_one_are_not_taken_for_two() -> None:
    @tl.kernel
    def sums(a: tl.i32[4], b: tl.i32[4], c: tl.i32[4]):
        for p in range(4):
            c[p] = a[p] + b[p]

    @tl.kernel
    def at_once(a: tl.i32[4], b: tl.i32[4], c: tl.i32[4]):
        c[tl.ramp(0, 1, 4)] = a[tl.ramp(0, 1, 4)] + b[tl.ramp(0, 1, 4)]

    @tl.kernel
    def running(x: tl.i32[17], y: tl.i32[17]):
        for i in range(16):
            y[i + 1] = y[i] + x[i]

    s = tl.schedule(running)
    s.split("i", 4, tail="peeled")
    with pytest.raises(tl.KernelError, match="would both be `y`, which is written"):
        s.tensorize("i.inner", sums, at_once)
