"""`kernel.safety`: each access with how it stays in its buffer."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from driver.alike import said_by_both

import tirlite as tl
from tirlite.cli.main import main
from tirlite.kernels.operators.conv import conv
from tirlite.kernels.operators.indexing import gather
from tirlite.kernels.operators.pool import max_pool
from tirlite.kernels.operators.sampling import grid_sample, roi_align

n = tl.dim("n")

SOURCE = """
import tirlite as tl

n = tl.dim("n")


@tl.kernel
def shifted(x: tl.f32[n], k: tl.i64, y: tl.f32[n]):
    for i in range(n):
        y[i] = x[i + k]
"""


def test_what_rests_on_the_word_of_the_author() -> None:
    @tl.kernel
    def counted(at: tl.i32[n], x: tl.f32[n], y: tl.f32[n]):
        for i in tl.parallel(n):
            x[i] *= 2
            y[at[i]] += x[i]

    (line,) = counted.safety.by_word
    assert "iterations of `i`" in line
    assert "no element of `y`" in line
    assert str(counted.safety).endswith(line)


def test_a_callee_and_an_option() -> None:
    @tl.kernel
    def second(x: tl.f32[n], y: tl.f32[1]):
        y[0] = x[1]

    @tl.kernel
    def outer(x: tl.f32[n], y: tl.f32[1]):
        tl.call(second, x, y)
        y[0] += x[2]

    report = outer.safety
    assert [(each.function, each.access, each.how) for each in report] == [
        ("outer", "y[0]", "proved"),
        ("outer", "x[2]", "decided"),
        ("second", "x[1]", "decided"),
        ("second", "y[0]", "proved"),
    ]
    assert report[1].condition == "3 <= n"
    assert repr(tl.compile(outer, unchecked=True).safety) == "SafetyReport(proved=2, decided=0, checked=0, unchecked=2)"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "shifted.py"
    file.write_text(SOURCE)
    assert main(["show", f"{file}:shifted", "--safety"]) == 0
    assert "10    x[i + k]  decided  at entry  0 <= k and k <= 0" in capsys.readouterr().out


def test_what_is_called_is_decided_at_the_entry_of_the_outermost() -> None:
    m = tl.dim("m")

    @tl.kernel
    def shifted(x: tl.f32[n], k: tl.i64, y: tl.f32[m]):
        for i in range(m):
            y[i] = x[i + k]

    @tl.kernel
    def inner(x: tl.f32[n], k: tl.i64, y: tl.f32[m]):
        tl.call(shifted, x, k + 1, y)

    @tl.kernel
    def outer(x: tl.f32[n], k: tl.i64, y: tl.f32[m]):
        tl.call(inner, x, k, y)
        tl.call(shifted, x, 0, y)

    @tl.kernel
    def tested(x: tl.f32[n], k: tl.i64, y: tl.f32[m]):
        if x[0] > 0:
            tl.call(shifted, x, k, y)

    assert [(e.access, e.how, e.where) for e in outer.safety] == [
        ("x[i + k]", "decided", "at entry"),
        ("y[i]", "proved", "always"),
    ]
    assert [e.where for e in tested.safety if e.access == "x[i + k]"] == ["at its loop"]
    assert "tl.checked" not in str(outer.lowered)
    x = np.arange(10, dtype=np.float32)
    for kernel in (outer, tested):
        for k in (0, 6, 7, 8, -1, -2, 2**62, -(2**63), 2**63 - 1):
            told = said_by_both(kernel, x + 1, k, np.full(3, -1, np.float32))
            assert (told == "") == (0 <= k + (kernel is outer) <= 7)


def test_what_an_annotation_promises_of_elements_counts() -> None:
    k = tl.dim("k")

    @tl.kernel
    def picked(x: tl.f32[n], at: tl.buffer(tl.i32[k], below=n), wanted: tl.u8[k], y: tl.out[tl.f32[k]]):
        for i in range(k):
            y[i] = 0
            if wanted[i] > 0:
                y[i] = x[at[i]]

    assert {each.how for each in picked.safety} == {"proved"}
    assert tl.structural_equal(tl.parse(str(picked.ir)), picked.ir)
    x, every = np.arange(5, dtype=np.float32), np.ones(3, np.uint8)
    assert picked(x, np.int32([4, 0, 2]), every).tolist() == [4, 0, 2]
    given = np.int32([4, 5, -1])
    told = r"at least 0 and less than n \(at\[place\] = 5, place = 1, n = 5\)"
    for run in (picked, picked.interpret, pickle.loads(pickle.dumps(picked)), tl.compile(picked, unchecked=True)):
        y = np.full(3, 7, np.float32)
        with pytest.raises(tl.KernelAssertionError, match=told):
            run(x, given, 0 * every, y)
        assert (y == 7).all()


def test_promises_about_rows_are_found_behind_permissions_and_looked_at_as_one_row() -> None:
    k, m = tl.dims("k m")

    @tl.kernel(allow="contract")
    def picked(x: tl.f32[n], at: tl.buffer(tl.i32[k, m], below=n), y: tl.f32[k]):
        for i in range(k):
            y[i] = 0
            for j in tl.reduce(m):
                y[i] += x[at[i, j]]

    assert {each.how for each in picked.safety} == {"proved"}
    assert "at_flat[tl.ramp(tile, 1, 32)]" in str(picked.lowered)
    x = np.arange(5, dtype=np.float32)
    for rows, columns in ((1, 1), (3, 7), (5, 16), (2, 33)):
        given = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns) % 5
        y = np.zeros(rows, np.float32)
        picked(x, given, y)
        np.testing.assert_array_equal(y, x[given].sum(axis=1))
        for place in {0, columns - 1, rows * columns // 2, rows * columns - 1}:
            wrong = given.copy()
            wrong.flat[place:] = -3
            told = []
            for run in (picked, picked.interpret):
                with pytest.raises(tl.KernelAssertionError) as caught:
                    run(x, wrong, y)
                told.append(str(caught.value))
            i, j = divmod(place, columns)
            assert f"at[place0, place1] = -3, place0 = {i}, place1 = {j}, n = 5" in told[0]
            assert told[0] == told[1]


def test_a_promise_is_of_integers_that_are_given() -> None:
    text = 'n = tl.dim("n")\n\n@tl.kernel\ndef f(x: {}):\n    x[0] = 0\n'
    for annotation, told in (
        ("tl.buffer(tl.f32[n], below=n)", "for elements that fit into i64, not tl.f32"),
        ("tl.buffer(tl.u64[n], below=n)", "for elements that fit into i64, not tl.u64"),
        ("tl.out[tl.buffer(tl.i32[n], below=n)]", "for arrays that have elements when they are given"),
        ("tl.buffer(tl.i32[n], below=0.5)", "an integer, or an integer expression of dims"),
    ):
        with pytest.raises(tl.KernelError, match=told):
            tl.parse(text.format(annotation))


def test_a_promise_about_an_array_that_is_written_is_for_the_call_alone() -> None:
    @tl.kernel
    def shifted(x: tl.f32[n], at: tl.buffer(tl.i32[n], below=n)):
        for i in range(n):
            at[i] += 1
        for i in range(n):
            x[at[i]] = 0

    assert [each.how for each in shifted.safety if each.access == "x[at[i]]"] == ["checked"]


@pytest.mark.parametrize("promised", [True, False])
@pytest.mark.parametrize("wide", ["u16", "u32"])
def test_numbers_below_0_are_large_ones_without_a_sign(wide: str, promised: bool) -> None:
    given = "tl.buffer(tl.i8[n], least=-5, below=3)" if promised else "tl.i8[n]"
    turned = tl.compile(
        tl.parse(f"""
n = tl.dim("n")

@tl.kernel
def turned(x: tl.f32[8], at: {given}, y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = x[tl.i64(tl.{wide}(at[i])) + 5]
""")
    )
    x = np.arange(8, dtype=np.float32)
    assert turned(x, np.int8([0, 2])).tolist() == [5, 7]
    with pytest.raises(IndexError, match="is out of bounds for axis 0 of `x` with extent 8, at i = 1"):
        turned(x, np.int8([0, -5]))


def test_values_that_a_condition_picks_are_told_apart() -> None:
    m = tl.dim("m")

    @tl.kernel
    def from_the_end(x: tl.f32[n], k: tl.i64[m], y: tl.f32[m]):
        for j in range(m):
            index = k[j]
            y[j] = x[index + n if index < 0 else index]

    @tl.kernel
    def asserted(x: tl.f32[n], k: tl.i64[m], y: tl.f32[m]):
        for j in range(m):
            index = k[j]
            assert -n <= index < n
            at = index + n if index < 0 else index
            y[j] = x[at]

    @tl.kernel
    def around(x: tl.f32[n], y: tl.f32[n]):
        for j in range(n):
            after = j + 1 if j + 1 < n else 0
            y[j] = x[after] - x[j - 1 if j > 0 else n - 1]

    @tl.kernel
    def at_most_the_last(x: tl.f32[n], k: tl.i64[m], y: tl.f32[m]):
        for j in range(m):
            y[j] = x[min(k[j], n - 1)]

    @tl.kernel
    def mirrored(x: tl.f32[n], y: tl.f32[m]):
        for j in range(m):
            period = max(2 * (n - 1), 1)
            at = j % period
            y[j] = x[min(at, period - at)]

    @tl.kernel
    def windows(x: tl.f32[n], k: tl.i64[m], y: tl.f32[m, 8]):
        for j in range(m):
            if n >= 8:
                start = min(max(k[j], 0), n - 8)
                for q in range(8):
                    y[j, q] = x[start + q]

    (decided,) = (each for each in from_the_end.safety if each.how != "proved")
    assert decided.condition == "0 <= n + least_k and greatest_k + 1 <= n"
    for kernel in (asserted, around, mirrored, windows):
        assert {each.how for each in kernel.safety} == {"proved"}
    assert [each.condition for each in at_most_the_last.safety if each.how != "proved"] == ["0 <= least_k"]


def test_operators_that_look_around_check_nothing_where_it_stands() -> None:
    window = {"strides": (2, 2), "pads": (1, 1, 1, 1), "dilations": (1, 1)}
    x, y = tl.f32[1, 4, 9, 9], tl.f32[1, 4, 5, 5]
    functions = (
        conv(x, tl.f32[4, 4, 3, 3], None, y, **window),
        conv(x, tl.f32[4, 1, 3, 3], None, y, groups=4, **window),
        max_pool(x, y, window=(3, 3), **window),
        grid_sample(x, tl.f32[1, 5, 5, 2], y),
        roi_align(x, tl.f32[7, 4], tl.i64[7], tl.f32[7, 4, 5, 5]),
        gather(tl.f32[n, 9], tl.i64[5], tl.f32[5, 9], axis=0),
    )
    assert {each.how for func in functions for each in tl.compile(func).safety} == {"proved"}


def test_bands_of_a_matrix_are_decided_by_their_width() -> None:
    m = tl.dim("m")

    @tl.kernel
    def tested(k: tl.i64, a: tl.f32[n, m], x: tl.f32[n], y: tl.f32[n]):
        for i in range(n):
            y[i] = 0
            for d in range(2 * k + 1):
                j = i + d - k
                if 0 <= j < n:
                    y[i] += a[i, d] * x[j]

    @tl.kernel
    def bounded(k: tl.i64, a: tl.f32[n, m], x: tl.f32[n], y: tl.f32[n]):
        for i in range(n):
            y[i] = 0
            for j in range(max(i - k, 0), min(i + k + 1, n)):
                y[i] += a[i, j - i + k] * x[j]

    for kernel, where in ((tested, "at its loop"), (bounded, "at entry")):
        assert [(each.where, each.condition) for each in kernel.safety if each.access.startswith("a[")] == [
            (where, "2 * k + 1 <= m")
        ]
        for k in (2, 3, 0, -1, 1 << 62):
            said_by_both(
                kernel, k, np.ones((9, 5), np.float32), np.arange(9, dtype=np.float32), np.zeros(9, np.float32)
            )


def test_a_test_by_name_proves_what_it_tells() -> None:
    h = tl.dim("h")

    @tl.kernel
    def window(x: tl.f32[h], y: tl.out[tl.f32[h]]):
        for i in range(h):
            y[i] = 0
            for u in tl.reduce(3):
                r = i + u - 1
                inside = (r >= 0) & (r < h)
                y[i] += x[r] if inside else 0

    assert {each.how for each in window.safety} == {"proved"}
    assert window(np.float32([1, 2, 4])).tolist() == [3, 7, 6]


def test_a_chain_around_an_index_proves_what_it_tells() -> None:
    @tl.kernel
    def padded(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        for i in range(n):
            at = i - 3
            at += 1
            y[i] = x[at + 1] if 0 <= at + 1 < n else 7
            for u in range(3):
                if 0 <= i + u - 1 < n:
                    y[i] += x[i + u - 1]

    assert {each.how for each in padded.safety} == {"proved"}
    x = np.float32([1, 2, 4])
    assert padded(x).tolist() == padded.interpret(x).tolist() == [10, 8, 8]


def test_a_reduction_of_which_a_copy_has_checks() -> None:
    @tl.kernel
    def window(x: tl.f32[n], first: tl.i64, y: tl.out[tl.f32[n]]):
        for i in range(n):
            y[i] = 0
            for u in tl.reduce(3):
                for v in tl.reduce(2):
                    y[i] += x[first + u + v] if i > 0 else 0

    assert "at its loop" in {each.where for each in window.safety}
    assert window(np.arange(5, dtype=np.float32), 1).tolist() == [0, 15, 15, 15, 15]


def test_a_loop_whose_end_is_read_is_decided_in_front_of_it_and_not_by_what_hardly_any_array_meets() -> None:
    m = tl.dim("m")

    @tl.kernel
    def knapsack(w: tl.i32[n], v: tl.i32[n], best: tl.i32[m]):
        for i in range(n):
            for j in range(m - 1, w[i] - 1, -1):
                best[j] = max(best[j], best[j - w[i]] + v[i])

    @tl.kernel
    def shifted(w: tl.i32[n], v: tl.i32[n], best: tl.i32[m]):
        for i in range(n):
            for j in range(w[i] + 1):
                best[j + w[i]] += v[i]

    for kernel in (knapsack, shifted):
        assert {each.where for each in kernel.safety if each.access.startswith("best")} == {"at its loop"}
        for ends in ((0, 4), (1, 5), (2, 2), (-1, 3), (0, 12), (-(1 << 31), 3), (3, (1 << 31) - 1)):
            said_by_both(kernel, np.int32([2, *ends, 1]), np.int32([5, 3, 4, 1]), np.arange(9, dtype=np.int32))


def test_numbers_that_count_up_are_decided_in_front_of_their_loop() -> None:
    m = tl.dim("m")

    @tl.kernel
    def repeated(counts: tl.i32[n], y: tl.i32[m], at: tl.i64):
        to = at
        for v in range(n):
            for _ in range(counts[v]):
                y[to] = v
                to += 1

    @tl.kernel
    def chosen(counts: tl.i32[n], y: tl.i32[m], at: tl.i64):
        to = at
        for v in range(n):
            for i in range(1, counts[v]):
                if i % 2 == 0:
                    y[to] += v
                    to += 1

    @tl.kernel
    def behind(counts: tl.i32[n], y: tl.i32[m], at: tl.i64):
        to = at
        for v in range(n):
            for _ in range(counts[v]):
                to += 1
                y[to] = v

    for kernel, where in ((repeated, "at its loop"), (chosen, "at its loop"), (behind, "where it stands")):
        assert {each.where for each in kernel.safety if each.access == "y[to]"} == {where}
        for first in (0, 3, -1, 9, 10, -(1 << 63), (1 << 63) - 1):
            for counts in ([2, 3, 1], [2, -7, 8], [9, 0, 1], [0, 0, 0], [1, 2**31 - 1, 1]):
                said_by_both(kernel, np.int32(counts), np.arange(9, dtype=np.int32), first)
