"""Products of narrow integers: by dot products of the processor, over copies by groups of terms, exact to the bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
from effort import effort
from random_cases import IS_THOROUGH
from small_tiles import SMALL

import tirlite as tl
from tirlite.codegen import Effort
from tirlite.diag import KernelError
from tirlite.schedules import Dots
from tirlite.schedules.auto.tiling import Tiling
from tirlite.schedules.dots import types_of

n, m, k, h = tl.dims("n m k h")
SIZES = ((7, 9, 9, 3), (5, 5, 1, 2), (14, 4, 8, 1), (4, 4, 0, 1))


@pytest.fixture(autouse=True)
def _small_tiles() -> Iterator[None]:
    with tiles("u8 s8", "s16 s16"), effort(Effort.NONE):
        yield


def tiles(*dots: str, masks_bytes: bool = False) -> object:
    """Small tiles, of a processor with these dot products."""
    return patch.object(Tiling, "of", lambda processor: replace(SMALL, dots=dots, masks_bytes=masks_bytes))


def extremes(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of all sizes, and many of the largest and of the least."""
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    numbers = rng.integers(least, most, shape, dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.4, np.where(rng.random(shape) < 0.7, least, most), numbers).astype(dtype)


@cache
def as_lowered(kernel: tl.Kernel) -> tl.Kernel:
    return tl.compile(kernel.lowered, schedule=None)


def is_exact(kernel: tl.Kernel, *shapes: tuple[int, ...]) -> None:
    """Whether code and interpreter, of the kernel as written and as it is lowered, give the same."""
    rng = np.random.default_rng(3)
    params = [param for param in kernel.ir.params if param.name != "y"]
    given = [extremes(rng, param.dtype.numpy, shape) for param, shape in zip(params, shapes, strict=True)]
    wanted = kernel.interpret(*given)
    np.testing.assert_array_equal(kernel(*given), wanted)
    np.testing.assert_array_equal(as_lowered(kernel).interpret(*given), wanted)


def product_of(one: tl.ir.DType, other: tl.ir.DType) -> tl.Kernel:
    @tl.kernel
    def multiply(a: one[n, k], b: other[k, m], y: tl.out[tl.i32[n, m]]):
        for i in range(n):
            for j in range(m):
                y[i, j] = 0
                for p in tl.reduce(k):
                    y[i, j] += tl.i32(a[i, p]) * tl.i32(b[p, j])

    return multiply


NARROW = (tl.i8, tl.u8, tl.i16)
# Each type stands on each side.
PAIRS = [*product(NARROW, NARROW)] if IS_THOROUGH else [(tl.i8, tl.u8), (tl.u8, tl.i16), (tl.i16, tl.i8)]


def test_each_pair_of_types_is_exact() -> None:
    for one, other in PAIRS:
        kernel = product_of(one, other)
        assert any(isinstance(step, Dots) for step in kernel.schedule.steps)
        for rows, columns, terms, _ in SIZES:
            is_exact(kernel, (rows, terms), (terms, columns))


def test_columns_and_terms_that_are_not_there_are_lanes_that_are_off() -> None:
    with tiles("u8 s8", "s16 s16", masks_bytes=True):
        for one, other in PAIRS:
            kernel = product_of(one, other)
            assert any(isinstance(step, Dots) and step.masked for step in kernel.schedule.steps)
            for rows, columns, terms, _ in (*SIZES, (5, 1, 7, 1), (4, 3, 3, 1)):
                is_exact(kernel, (rows, terms), (terms, columns))


@tl.kernel
def turned(a: tl.i8[k, n], b: tl.i8[m, k], y: tl.out[tl.i32[m, n]]):
    for i in range(n):
        for j in range(m):
            total = tl.i32(7)
            for p in tl.reduce(k):
                total += tl.i32(b[j, p]) * tl.i32(a[p, i])
            y[j, i] = total - 1


@tl.kernel
def batched(a: tl.u8[h, n, k], b: tl.u8[h, k, m], y: tl.out[tl.i32[h, n, m]]):
    for g in tl.parallel(h):
        for i in range(n):
            for j in range(m):
                y[g, i, j] = 0
            for p in tl.reduce(k):
                for j in range(m):
                    y[g, i, j] += tl.i32(a[g, i, p]) * tl.i32(b[g, p, j])


@tl.kernel
def gram(a: tl.i8[n, k], y: tl.out[tl.i32[n, n]]):
    for i in range(n):
        for j in range(n):
            y[i, j] = 0
            for p in tl.reduce(k):
                y[i, j] += tl.i32(a[i, p]) * tl.i32(a[j, p])


@tl.kernel
def convolution(x: tl.i8[h, n + 2, m + 2], f: tl.i8[k, h, 3, 3], y: tl.out[tl.i32[k, n, m]]):
    for q in range(k):
        for i in range(n):
            for j in range(m):
                y[q, i, j] = 0
                for p in tl.reduce(h):
                    for u in tl.reduce(3):
                        for v in tl.reduce(3):
                            y[q, i, j] += tl.i32(f[q, p, u, v]) * tl.i32(x[p, i + u, j + v])


def test_factors_lie_in_any_way() -> None:
    for kernel in (turned, batched, gram, convolution):
        assert any(isinstance(step, Dots) for step in kernel.schedule.steps), kernel.name
    for rows, columns, terms, count in SIZES:
        is_exact(turned, (terms, rows), (columns, terms))
        is_exact(batched, (count, rows, terms), (count, terms, columns))
        is_exact(gram, (rows, terms))
        is_exact(convolution, (count, rows + 2, columns + 2), (terms, count, 3, 3))


def in_groups(left: tl.ir.DType, columns: int, rows: object) -> tl.Kernel:
    @tl.kernel
    def by_panels(a: left[rows, 12], w: tl.i8[2, 3, columns, 4], y: tl.out[tl.i32[rows, 2, columns]]):
        for u in range(2):
            for i in range(rows):
                for j in range(columns):
                    total = tl.i32(0)
                    for q in tl.reduce(3):
                        for r in tl.reduce(4):
                            total += tl.i32(a[i, 4 * q + r]) * tl.i32(w[u, q, j, r])
                    y[i, u, j] = total

    return by_panels


@pytest.mark.parametrize("rows", [n, 1, 5])
@pytest.mark.parametrize("left", [tl.u8, tl.i8])
def test_an_operand_that_lies_by_groups_is_read_where_it_lies(left: tl.ir.DType, rows: object) -> None:
    kernel = in_groups(left, 8, rows)
    assert any(isinstance(step, Dots) for step in kernel.schedule.steps)
    assert "w_packed" not in str(kernel.lowered)
    for count in (1, 2, 7) if rows is n else (rows,):
        is_exact(kernel, (count, 12), (2, 3, 8, 4))


def test_one_that_does_not_is_copied() -> None:
    odd, pairs = in_groups(tl.u8, 7, n), in_groups(tl.u8, 8, n)
    with tiles("s16 s16"):
        for kernel, columns in ((odd, 7), (pairs, 8)):
            assert "w_packed" in str(kernel.lowered)
            is_exact(kernel, (5, 12), (2, 3, columns, 4))


def over_a_copy(columns: int) -> tl.Kernel:
    @tl.kernel
    def windows(x: tl.u8[2, 6, 40], f: tl.i8[5, 2, 3, 8], y: tl.out[tl.i32[2, 5, columns]]):
        for b in range(2):
            rows = tl.alloc(tl.u8[8, 44])
            for c in range(8):
                for v in range(44):
                    rows[c, v] = x[b, c, v] if c < 6 and v < 40 else tl.u8(9)
            for o in range(5):
                for j in range(columns):
                    total = tl.i32(0)
                    for u in tl.reduce(2):
                        for v in tl.reduce(3):
                            for c in tl.reduce(8):
                                total += tl.i32(f[o, u, v, c]) * tl.i32(rows[c, j + 20 * u + v])
                    y[b, o, j] = total

    return windows


@pytest.mark.parametrize(("columns", "is_once"), [(8, True), (10, True), (21, False)])
def test_what_terms_move_along_is_copied_once_where_vectors_are_whole(columns: int, *, is_once: bool) -> None:
    kernel = over_a_copy(columns)
    assert [step.once for step in kernel.schedule.steps if isinstance(step, Dots)] == [is_once]
    is_exact(kernel, (2, 6, 40), (5, 2, 3, 8))


def test_once_is_refused_where_nothing_moves() -> None:
    s = tl.schedule(product_of(tl.u8, tl.i8))
    s.split("j", 4)
    with pytest.raises(KernelError, match="no terms move along columns of `b`"):
        s.dots(outside="i", at="j.outer", axes=["p", "j.inner"], whole=4, types=("u8", "i8"), once=True)


def test_few_products_stay_in_place() -> None:
    with patch.object(Tiling, "of", lambda _: replace(SMALL, dots=("u8 s8",), least_products=200)):
        kernel = product_of(tl.u8, tl.i8)
        assert "'i * j * p': 200}" in str(kernel.schedule)
        for terms in (3, 40):
            is_exact(kernel, (5, terms), (terms, 6))


def test_sums_wrap_around() -> None:
    a = np.full((5, 1 << 17), -128, np.int8)
    wanted = np.full((5, 5), (1 << 31) - (1 << 32), np.int64).astype(np.int32)
    np.testing.assert_array_equal(gram(a), wanted)


def test_copies_have_types_that_a_processor_multiplies() -> None:
    vnni, arm = ("u8 s8", "s16 s16"), ("s8 s8", "u8 u8")
    assert types_of(tl.i8, tl.i8, vnni) == ("u8", "i8")
    assert types_of(tl.i8, tl.u8, vnni) == ("i8", "u8")
    assert types_of(tl.u8, tl.u8, vnni) == ("i8", "u8")
    assert types_of(tl.u8, tl.i16, vnni) == ("i16", "i16")
    assert types_of(tl.i8, tl.i8, arm) == ("i8", "i8")
    assert types_of(tl.i8, tl.u8, arm) == ("u8", "u8")
    assert types_of(tl.u16, tl.i8, vnni) is None
    assert types_of(tl.i16, tl.i16, arm) is None
    assert types_of(tl.i8, tl.u8, ("s16 s16",)) == ("i16", "i16")


def test_each_processor_has_its_own_copies() -> None:
    kernel = product_of(tl.i8, tl.i8)
    for dots in (("s16 s16",), ("s8 s8", "u8 u8")):
        with tiles(*dots):
            made = tl.compile(kernel.ir)
            is_exact(made, (7, 9), (9, 5))
            assert any(isinstance(step, Dots) for step in made.schedule.steps)


def test_other_sums_are_refused() -> None:
    @tl.kernel
    def of_words(a: tl.i32[n, k], b: tl.i8[k, m], y: tl.out[tl.i32[n, m]]):
        for i in range(n):
            for j in range(m):
                y[i, j] = 0
                for p in tl.reduce(k):
                    y[i, j] += a[i, p] * tl.i32(b[p, j])

    assert not any(isinstance(step, Dots) for step in of_words.schedule.steps)
    s = tl.schedule(of_words)
    s.split("j", 4)
    with pytest.raises(KernelError, match="do not sum up products"):
        s.dots(outside="i", at="j.outer", axes=["p", "j.inner"], whole=4, types=("u8", "i8"))
    s = tl.schedule(product_of(tl.i16, tl.i16))
    s.split("j", 4)
    with pytest.raises(KernelError, match="do not fit"):
        s.dots(outside="i", at="j.outer", axes=["p", "j.inner"], whole=4, types=("u8", "i8"))
