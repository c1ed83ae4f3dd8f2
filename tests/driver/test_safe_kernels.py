"""Kernels with a slip: nothing is written outside of an array, and the fault and the stores are the interpreter's."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from driver.alike import said_by_both

import tirlite as tl
from tirlite.driver.kernel import _OFTEN
from tirlite.rewrite import pipelines
from tirlite.rewrite.forms import Form

n, m = tl.dims("n m")


def assert_as_interpreted(kernel: tl.Kernel, *arguments: object, workers: int = 4) -> str:
    return said_by_both(tl.compile(kernel, target=tl.Target.host(workers=workers)), *arguments)


@tl.kernel
def shifted(x: tl.f32[n], k: tl.i64, y: tl.f32[n]):
    for i in range(n):
        y[i] = x[i + k]


@pytest.mark.parametrize("k", [0, 1, -1, 5, 2**63 - 1, -(2**63)])
def test_an_index_by_a_scalar(k: int) -> None:
    told = assert_as_interpreted(shifted, np.arange(4, dtype=np.float32), k, np.zeros(4, np.float32))
    assert ("is out of bounds for axis 0 of `x` with extent 4" in told) == (k != 0)


@tl.kernel
def gathered(x: tl.f32[n], at: tl.i32[m], y: tl.f32[m]):
    for i in range(m):
        y[i] = tl.exp(x[at[i]])


def test_a_loop_with_checks_keeps_its_order() -> None:
    at = np.zeros(10_000, np.int32)
    at[7000] = 5
    told = assert_as_interpreted(gathered, np.float32([0, 1, 2]), at, np.full(10_000, 7, np.float32))
    assert "index 5 is out of bounds for axis 0 of `x` with extent 3" in told


@tl.kernel
def from_a_table(x: tl.f32[n], at: tl.i32[m, 3], y: tl.f32[m]):
    for i in range(m):
        y[i] = x[at[i, 0]] + x[at[i, 1]] + x[at[i, 2]]


@pytest.mark.parametrize(("kernel", "width"), [(gathered, ()), (from_a_table, (3,))], ids=["row", "table"])
def test_workers_share_the_look_at_many_indices(kernel: tl.Kernel, width: tuple[int, ...]) -> None:
    with patch.object(pipelines, "_MANY", 1000):
        shared = tl.compile(kernel, target=tl.Target.host(workers=2))
        for last, bad in ((10_000, -1), (10_000, 0), (10_000, 9999), (300, 299), (0, -1)):
            at = np.ones((last, *width), np.int32)
            if bad >= 0:
                at[bad] = 3
            told = said_by_both(shared, np.float32([0, 1, 2]), at, np.full(last, 7, np.float32))
            assert ("index 3 is out of bounds for axis 0 of `x` with extent 3" in told) == (bad >= 0), told
        forms = {form: str(shared._in_form(False, form, None).rewritten.func) for form in (Form.USUAL, Form.LARGE)}
    assert ["i0_block in tl.parallel(" in forms[form] for form in forms] == [False, True]
    assert "= tl.alloc(tl.i32[64]," in forms[Form.LARGE]
    assert "arena" not in forms[Form.LARGE]


@tl.kernel
def neighbours(x: tl.f32[n], at: tl.i64[1], y: tl.f32[n]):
    first = tl.alloc(tl.f32[n])
    second = tl.alloc(tl.f32[n])
    for i in range(n):
        first[i] = x[i]
        second[i] = 2 * x[i]
    first[at[0]] = -1
    for i in range(n):
        y[i] = first[i] + second[i]


def test_a_slip_in_the_arena_reaches_no_neighbour() -> None:
    arguments = np.arange(16, dtype=np.float32), np.int64([16]), np.zeros(16, np.float32)
    assert "index 16 is out of bounds for axis 0 of `first`" in assert_as_interpreted(neighbours, *arguments)


@tl.kernel
def viewed(x: tl.f32[n], k: tl.i64, y: tl.f32[4]):
    window = tl.view(x, tl.f32[4], byte_offset=4 * k)
    for i in range(4):
        y[i] = window[i]


@pytest.mark.parametrize(("k", "fits"), [(0, True), (4, True), (5, False), (-1, False), (1 << 62, True)])
def test_a_view_that_starts_at_a_scalar(k: int, fits: bool) -> None:
    told = assert_as_interpreted(viewed, np.arange(8, dtype=np.float32), k, np.zeros(4, np.float32))
    assert (told == "") == fits
    assert fits or "of `x`, which has 32" in told


def test_what_lies_behind_an_array_stays_as_it_is() -> None:
    @tl.kernel
    def overrun(k: tl.i64, x: tl.f32[n]):
        for i in range(n + k):
            x[i] = 1

    whole = np.full(32, 9, np.float32)
    with pytest.raises(IndexError, match="index 16 is out of bounds"):
        overrun(3, whole[:16])
    assert whole.tolist() == [1] * 16 + [9] * 16


def test_a_callee_and_its_short_circuits() -> None:
    @tl.kernel
    def first_positive(x: tl.f32[n], k: tl.i64, y: tl.f32[1]):
        if k < n and x[k] > 0:
            y[0] = x[k]

    @tl.kernel
    def outer(x: tl.f32[n], k: tl.i64, y: tl.f32[1]):
        tl.call(first_positive, x, k, y)

    for k in (0, 3, 4, -1):
        assert_as_interpreted(outer, np.ones(4, np.float32), k, np.zeros(1, np.float32))


def test_threads() -> None:
    @tl.kernel
    def blocks(x: tl.f32[n], k: tl.i64, y: tl.f32[n]):
        for b in tl.thread("blockIdx.x", (n + 7) // 8):
            for t in tl.thread("threadIdx.x", 8):
                own = tl.alloc(tl.f32[2], scope="local")
                own[0] = 1
                own[k] = 2
                if b * 8 + t < n:
                    y[b * 8 + t] = own[0] + x[b * 8 + t]

    for k in (0, 1, 2):
        assert_as_interpreted(blocks, np.ones(12, np.float32), k, np.zeros(12, np.float32), workers=1)


@tl.kernel
def rows_of(starts: tl.i32[n], at: tl.i64[m], x: tl.f32[4], y: tl.f32[n]):
    for i in range(n - 1):
        for k in range(starts[i], starts[i + 1]):
            y[i] += x[at[k]]


@pytest.mark.parametrize(
    ("starts", "at", "says"),
    [
        ([0, 2, 3], [3, 0, 1], ""),
        ([0, 2, 4], [3, 0, 1], "index 3 is out of bounds for axis 0 of `at`"),
        ([0, 2, 3], [3, 4, 1], "index 4 is out of bounds for axis 0 of `x`"),
        ([0, 1, 1], [3, 4, 2**63 - 1], ""),  # what is wrong is never read
        ([-1, 1, 1], [3, 4, 9], "index -1 is out of bounds for axis 0 of `at`"),
    ],
)
def test_rows_of_a_sparse_matrix(starts: list[int], at: list[int], says: str) -> None:
    told = assert_as_interpreted(
        rows_of, np.int32(starts), np.int64(at), np.ones(4, np.float32), np.zeros(3, np.float32)
    )
    assert says in told
    assert bool(says) == bool(told)


def test_calls_for_the_version_in_order_are_quick_too() -> None:
    """The last indices belong to no row: a look at all of them says no, and each row's checks say yes."""
    kernel, x = tl.compile(rows_of, target=tl.Target.host(workers=2)), np.float32([1, 2, 4, 8])
    starts, room = np.int32([0, 2, 3]), np.zeros(3, np.float32)
    fits, padded = np.int64([3, 0, 1, 2]), np.int64([2, 0, 1, 9])
    for at in (fits, padded) * (_OFTEN + 1):
        kernel(starts, at, x, room)
    call = kernel._quick
    assert call is not None
    for _ in range(2):
        for at, wanted in ((fits, [9, 2, 0]), (padded, [5, 2, 0])):
            y = np.zeros(3, np.float32)
            assert call(starts, at, x, y) is None
            assert y.tolist() == wanted
        with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 of `x`"):
            kernel(starts + np.int32([0, 0, 1]), padded, x, room)


@tl.kernel
def histogram(at: tl.u16[m], y: tl.i64[n]):
    for i in tl.reduce(m):
        y[at[i]] += 1


@pytest.mark.parametrize("last", [3, 4])
def test_a_histogram(last: int) -> None:
    at = np.zeros(50_000, np.uint16)
    at[40_000] = last
    told = assert_as_interpreted(histogram, at, np.zeros(4, np.int64))
    assert (told != "") == (last == 4)


@tl.kernel
def behind(x: tl.f32[n], k: tl.i64[m], y: tl.f32[m]):
    for j in range(m):
        index = k[j]
        if index >= 0 and index + 5 < n:
            y[j] = x[index + 5]


@tl.kernel
def from_the_end(x: tl.f32[n], k: tl.i64[m], y: tl.f32[m]):
    for j in range(m):
        index = k[j]
        y[j] = x[index + n if index < 0 else index]


@tl.kernel
def clamped(x: tl.f32[n], k: tl.i64[m], y: tl.f32[m]):
    for j in range(m):
        y[j] = x[min(k[j], n - 1)]


@tl.kernel
def shifted_by_five(x: tl.f32[n], k: tl.i64[m], y: tl.f32[m]):
    for j in range(m):
        y[j] = x[k[j] + 5]


LARGEST = 2**63 - 1


@pytest.mark.parametrize("kernel", [behind, from_the_end, clamped, shifted_by_five], ids=lambda kernel: kernel.name)
def test_indices_of_64_bits_that_arithmetic_wraps_around_with(kernel: tl.Kernel) -> None:
    for at in ([0, 1], [LARGEST - 2, 0], [-LARGEST - 1, 0], [3, LARGEST], [-9, 8], [-5, 3], [1 << 62, 1 << 62], []):
        assert_as_interpreted(kernel, np.arange(9, dtype=np.float32), np.int64(at), np.zeros(len(at), np.float32))


@tl.kernel
def all_of(x: tl.f32[n], at: tl.i64[m], y: tl.f32[m]):
    numbers = tl.view(at, tl.i64[m])
    for i in range(m):
        y[i] = x[numbers[i]]


@tl.kernel
def pair_of(x: tl.f32[n], at: tl.i64[m], y: tl.f32[m], z: tl.f32[m]):
    tl.call(all_of, x, at, y)
    tl.call(all_of, y, at, z)


@tl.kernel
def of_both(x: tl.f32[n], first: tl.i64[m], second: tl.i64[m], y: tl.f32[m], z: tl.f32[m]):
    tl.call(pair_of, x, first, y, z)
    tl.call(pair_of, x, second, y, z)


@pytest.mark.parametrize("last", [1, 4, LARGEST, -1])
def test_index_arrays_of_callees_are_looked_at_by_the_outermost_kernel(last: int) -> None:
    x, y = np.arange(4, dtype=np.float32), np.zeros(3, np.float32)
    told = assert_as_interpreted(of_both, x, np.int64([0, 1, 2]), np.int64([2, last, 0]), y, y.copy())
    assert ("is out of bounds" in told) == (last != 1)
    assert "for i0 in range(m):" in str(of_both.lowered)
    assert of_both.safety.count("checked") == 0


@tl.kernel
def raised(x: tl.f32[n], at: tl.i64, y: tl.f32[n]):
    y[at] = x[at] + 1


@tl.kernel
def raised_by_another(x: tl.f32[n], at: tl.i64, y: tl.f32[n]):
    tl.call(raised, x, at, y)


@tl.kernel
def raised_in_turn(x: tl.f32[n], at: tl.i64[m], y: tl.f32[n]):
    for i in range(m):
        tl.call(raised_by_another, x, at[i], y)


@pytest.mark.parametrize("last", [3, 4])
def test_a_function_that_only_calls_others_hands_on_an_index_from_memory(last: int) -> None:
    arguments = np.ones(4, np.float32), np.int64([0, 2, last]), np.zeros(4, np.float32)
    assert ("is out of bounds for axis 0 of `x`" in assert_as_interpreted(raised_in_turn, *arguments)) == (last == 4)
