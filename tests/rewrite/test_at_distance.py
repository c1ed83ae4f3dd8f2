"""Loops that store where they load go by vectors, where no vector holds what meets."""

from __future__ import annotations

import numpy as np
import pytest
from every import every

import tirlite as tl
from tirlite.ir import IfThenElse, Store, statements_of
from tirlite.rewrite import Normalize, VectorizeLoops

n, m, k = tl.dims("n m k")
# Four vectors of floats.
LANES = min(64, tl.Target.host().processor.vector_bytes)
SIZES = (0, 1, 2, 31, 32, 33, 64, 127, 128, 129, 130, 255, 256, 257, 1000)


def lanes_of(body: str) -> set[int]:
    func = VectorizeLoops()(
        Normalize()(
            tl.parse(f"""
n, m = tl.dims("n m")

@tl.kernel
def f(x: tl.f32[n], y: tl.f32[n], at: tl.i64[n], w: tl.i64, far: tl.f32[2 * n], one: tl.f32[()]):
{body}
""")
        )
    )
    return {store.value.dtype.lanes for store in statements_of(func.body, Store)}


@pytest.mark.parametrize(
    "body",
    [
        "    for i in range(n // 2):\n        x[i], x[n - 1 - i] = x[n - 1 - i], x[i]",
        "    for i in range(w, n):\n        x[i] += x[i - w]",
        "    for i in range(n - 1, w - 1, -1):\n        x[i] = max(x[i], x[i - w] + y[i])",
        "    for i in range(n - w):\n        x[i] = (x[i] + x[i + w]) / 2",
        "    for i in range(w, n):\n        y[i] = x[i - w]\n        x[i] = 1\n        x[i - 1] += 2",
        "    for i in range(w, n):\n        x[i] = 1\n        y[i] = x[i - w]",
    ],
)
def test_vectors_hold_what_does_not_meet(body: str) -> None:
    assert max(lanes_of(body)) == LANES


@pytest.mark.parametrize(
    "body",
    [
        "    for i in range(1, n - 1, 2):\n        x[i] = (x[i - 1] + x[i + 1]) / 2",
        "    for i in range(1 + w % 2, n - 2, 3):\n        x[i] += x[i - 1] * y[i] + x[i + 1]",
        "    for i in range(n - 2, 0, -2):\n        x[i] -= x[i - 1]",
    ],
)
def test_elements_between_which_others_stay_go_by_one_vector(body: str) -> None:
    assert max(lanes_of(body)) == LANES // 4


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_what_is_left_goes_by_four_at_least(dtype: str) -> None:
    func = VectorizeLoops()(
        Normalize()(
            tl.parse(f"""
n, m = tl.dims("n m")

@tl.kernel
def sums(x: tl.{dtype}[n, m]):
    for i in range(1, n):
        for j in range(m):
            x[i, j] += x[i - 1, j]
""")
        )
    )
    assert {1, 4} < {store.value.dtype.lanes for store in statements_of(func.body, Store)} <= {1, 4, 8, 16, 32, 64}


@every(
    "body",
    [
        "    for i in range(n):\n        x[i] = x[n - 1 - i]",  # the second half is made of the first
        "    for i in range(n):\n        x[i] += x[at[i]]",  # anywhere
        "    for i in range(w, n):\n        x[i - 1] += 2\n        x[i] = y[i - w]",  # each makes the next
        "    for i in range(n - 1):\n        x[i] += x[i + 1]",  # LLVM sees as much
        "    for i in range(n):\n        far[i] = x[i]\n        far[n + i] = y[i]",  # LLVM tells these apart
        "    for i in range(1, n):\n        x[i] += x[i - 1]",
        "    for i in range(w, n):\n        j = i - w\n        far[i + j] += far[i + j - w]",  # by twice the number
        "    for i in range(w, n):\n        one[()] += x[i]\n        x[i] += x[i - w]",  # one element
        "    for i in range(2, n, 2):\n        x[i] += x[i - 2]",  # each makes the next
        "    for i in range(1, n, 5):\n        x[i] += x[i - 1]",  # too far apart
        "    for i in range(1, n // 2, 2):\n        x[2 * i] += x[2 * i - 1]",  # so are these
    ],
)
def test_other_loops_stay(body: str) -> None:
    assert lanes_of(body) == {1}


def test_what_the_iteration_before_has_stored_is_not_asked_for_by_vectors() -> None:
    func = VectorizeLoops()(
        Normalize()(
            tl.parse("""
n, m = tl.dims("n m")

@tl.kernel
def scores(x: tl.i32[n, m], a: tl.u8[m]):
    for i in range(1, n):
        for j in range(1, m):
            x[i, j] = tl.i32(max(tl.i64(x[i - 1, j - 1]) + tl.i64(a[j]), max(x[i - 1, j], x[i, j - 1]) - 2))
""")
        )
    )
    assert {store.value.dtype.lanes for store in statements_of(func.body, Store)} == {1}


def test_a_distance_is_looked_at_in_front_of_the_loop() -> None:
    func = VectorizeLoops()(
        Normalize()(
            tl.parse("""
n = tl.dim("n")

@tl.kernel
def f(x: tl.f32[n], w: tl.i64):
    for i in range(w, n):
        x[i] += x[i - w]
""")
        )
    )
    (branch,) = statements_of(func.body, IfThenElse)
    assert tl.ir.text(branch.condition) == f"0 - w >= 0 or 0 - w <= -min(max(max(n, w) - w, 0), {LANES})"


@tl.kernel
def swaps(x: tl.f32[n], y: tl.f32[n], w: tl.i64):
    for i in range(n - w):
        y[i] = x[i + w] + 1
        x[i + w] = x[i] - y[i]
        x[i] = x[i + w] + x[i]


@pytest.mark.parametrize("size", SIZES[3:])
@pytest.mark.parametrize("apart", [1, 4, 5, 16, 31, 33, 64, 100])
def test_stores_that_meet_are_kept_in_order(size: int, apart: int) -> None:
    func = VectorizeLoops()(Normalize()(swaps.ir))
    assert max(store.value.dtype.lanes for store in statements_of(func.body, Store)) == LANES
    x = np.random.default_rng(size).standard_normal(size, np.float32)
    for run in (swaps, tl.compile(swaps.lowered)):
        mine, its = (x.copy(), np.zeros_like(x)), (x.copy(), np.zeros_like(x))
        run(*mine, apart)
        swaps.interpret(*its, apart)
        np.testing.assert_array_equal(mine, its)


@tl.kernel
def transformed(re: tl.f32[n], im: tl.f32[n], cos: tl.f32[n], sin: tl.f32[n]):
    half = tl.i64(1)
    while half < n:
        for i in range(0, n - half, 2 * half):
            for j in range(min(half, n - half - i)):
                turned = re[i + j + half] * cos[half + j] - im[i + j + half] * sin[half + j]
                other = re[i + j + half] * sin[half + j] + im[i + j + half] * cos[half + j]
                re[i + j + half] = re[i + j] - turned
                im[i + j + half] = im[i + j] - other
                re[i + j] += turned
                im[i + j] += other
        half *= 2


@pytest.mark.parametrize("size", SIZES[1:])
def test_butterflies_go_by_vectors(size: int) -> None:
    data = np.random.default_rng(size).standard_normal((4, 2 * size), np.float32)
    mine, its = data.copy(), data.copy()
    transformed(*mine)
    transformed.interpret(*its)
    np.testing.assert_array_equal(mine, its)


@tl.kernel
def turned(x: tl.i16[n]):
    for i in range(n // 2):
        x[i], x[n - 1 - i] = x[n - 1 - i], x[i]


@tl.kernel
def turned_copy(x: tl.bool_[n], y: tl.out[tl.bool_[n]]):
    for i in range(n):
        y[i] = x[n - 1 - i]


@pytest.mark.parametrize("size", SIZES)
def test_arrays_are_turned_in_place(size: int) -> None:
    x = np.arange(size, dtype=np.int16)
    for run in (turned, turned.interpret, tl.compile(turned.lowered)):
        y = x.copy()
        run(y)
        np.testing.assert_array_equal(y, x[::-1])
    flags = x % 3 == 0
    np.testing.assert_array_equal(turned_copy(flags), flags[::-1])


@tl.kernel
def halves(x: tl.f32[n], w: tl.f32[m]):
    for b in range(n // (2 * m)):
        for j in range(m):
            low = 2 * m * b + j
            high = low + m
            turned = x[high] * w[j]
            x[high] = x[low] - turned
            x[low] = x[low] + turned


@pytest.mark.parametrize("half", [1, 16, 65, 300])
def test_halves_that_names_tell_apart_go_by_vectors(half: int) -> None:
    func = VectorizeLoops()(Normalize()(halves.ir))
    assert max(store.value.dtype.lanes for store in statements_of(func.body, Store)) == LANES
    random = np.random.default_rng(half)
    x, w = random.normal(size=7 * half).astype(np.float32), random.normal(size=half).astype(np.float32)
    wanted = x.copy()
    halves(x, w)
    halves.interpret(wanted, w)
    np.testing.assert_array_equal(x, wanted)


@tl.kernel
def packed_down(weights: tl.i32[k], values: tl.i32[k], best: tl.i32[m]):
    for i in range(k):
        for j in range(m - 1, weights[i] - 1, -1):
            best[j] = max(best[j], best[j - weights[i]] + values[i])


@tl.kernel
def packed_up(weights: tl.i32[k], values: tl.i32[k], best: tl.i32[m]):
    for i in range(k):
        for j in range(weights[i], m):
            best[j] = max(best[j], best[j - weights[i]] + values[i])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("heaviest", [2, 20, 300])
def test_what_meets_at_any_distance_is_taken_in_order(size: int, heaviest: int) -> None:
    random = np.random.default_rng(size)
    weights = random.integers(0, heaviest, 9, dtype=np.int32)
    values = random.integers(-5, 100, 9, dtype=np.int32)
    for kernel in (packed_down, packed_up):
        best, wanted = np.zeros(size, np.int32), np.zeros(size, np.int32)
        kernel(weights, values, best)
        for weight, value in zip(weights, values, strict=True):
            places = range(int(weight), size)
            for j in places if kernel is packed_up else reversed(places):
                wanted[j] = max(wanted[j], wanted[j - weight] + value)
        np.testing.assert_array_equal(best, wanted)


@tl.kernel
def by_colours(x: tl.f32[n, m], y: tl.f32[n, m]):
    for colour in range(2):
        for i in range(1, n - 1):
            for j in range(1 + (i + colour) % 2, m - 1, 2):
                x[i, j] = (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1] - y[i, j]) * 0.25


@pytest.mark.parametrize("size", SIZES)
def test_colours_of_a_board_follow_each_other(size: int) -> None:
    rng = np.random.default_rng(size)
    x, y = rng.standard_normal((2, 4, size), np.float32)
    wanted = x.copy()
    inside = (slice(1, -1), slice(1, -1))
    rows, columns = np.indices((4, size))
    for colour in range(2):
        beside = wanted[:-2, 1:-1] + wanted[2:, 1:-1] + wanted[1:-1, :-2] + wanted[1:-1, 2:]
        is_due = (rows + columns) % 2 == (1 + colour) % 2
        wanted[inside] = np.where(is_due[inside], (beside - y[inside]) * np.float32(0.25), wanted[inside])
    for run in (by_colours, by_colours.interpret, tl.compile(by_colours.lowered)):
        given = x.copy()
        run(given, y)
        np.testing.assert_array_equal(given, wanted)
