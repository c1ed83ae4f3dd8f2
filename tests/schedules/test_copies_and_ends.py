"""Steps that never change results: copies of what is read, ends of loops apart, iterations written out, remarks."""

from __future__ import annotations

import numpy as np
import pytest
from schedules.test_steps import body_of, product

import tirlite as tl

n, m, k = tl.dims("n m k")


@tl.kernel
def smooth(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
    for i in range(n):
        for j in range(m):
            y[i, j] = x[i, max(j - 1, 0)] + x[i, min(j + 1, m - 1)]


def same_bits(schedule: object) -> None:
    kernel = tl.compile(smooth, schedule=schedule)  # type: ignore[arg-type]
    for rows, columns in ((1, 1), (2, 3), (5, 17), (3, 80)):
        x = np.random.default_rng(0).normal(size=(rows, columns)).astype("f")
        np.testing.assert_array_equal(kernel(x), smooth.interpret(x))


def test_iterations_at_both_ends_go_into_loops_of_their_own() -> None:
    s = tl.schedule(smooth)
    s.peel("i", first=2, last=1)
    assert body_of(s).startswith("for i_first in range(min(2, n)):\n")
    assert "for i in range(min(2, n), max(n - 1, min(2, n))):" in body_of(s)
    assert "for i_last in range(max(n - 1, min(2, n)), n):" in body_of(s)
    same_bits(s)


def test_what_asks_for_the_ends_of_rows_is_peeled_without_a_number() -> None:
    s = tl.schedule(smooth)
    s.peel("j")
    assert "for j in range(1, m - 1):\n        y[i, j] = x[i, j - 1] + x[i, j + 1]" in body_of(s)
    assert str(s).endswith("s.peel('j')")
    same_bits(s)
    with pytest.raises(tl.KernelError, match="no iterations of the loop over `i` are told from the others"):
        s.peel("i")


def test_iterations_are_written_out_one_behind_the_other() -> None:
    s = tl.schedule(smooth)
    s.unroll("i", 2)
    assert "for i in range(0, n // 2 * 2, 2):\n    for j in range(m):\n        y[i, j] = " in body_of(s)
    assert "    for j in range(m):\n        y[i + 1, j] = " in body_of(s)
    assert "for i_rest in range(n // 2 * 2, n):" in body_of(s)
    same_bits(s)
    with pytest.raises(tl.KernelError, match="how often the loop over `j` runs is not known"):
        tl.schedule(smooth).unroll("j")


def test_all_iterations_are_written_out_where_their_number_is_known() -> None:
    @tl.kernel
    def three(x: tl.f32[3], y: tl.f32[1]):
        for i in tl.reduce(3):
            y[0] += x[i]

    s = tl.schedule(three)
    s.unroll("i")
    assert body_of(s).count("y[0] = y[0] + x[") == 3


def test_rows_of_a_loop_over_several_axes() -> None:
    @tl.kernel
    def scaled(x: tl.f32[n, 8], g: tl.f32[8], y: tl.out[tl.f32[n, 8]]):
        for i in range(n * 8):
            y[i // 8, i % 8] = x[i // 8, i % 8] * g[i % 8]

    s = tl.schedule(scaled)
    s.delinearise("i", 8)
    assert body_of(s) == (
        "for i_outer in range(n):\n"
        "    for i_inner in range(8):\n"
        "        y[i_outer, i_inner] = x[i_outer, i_inner] * g[i_inner]"
    )
    with pytest.raises(tl.KernelError, match="not proved to have whole rows of 3"):
        tl.schedule(scaled).delinearise("i", 3)


def test_what_a_tile_reads_is_copied_as_it_lies_there() -> None:
    s = tl.schedule(smooth)
    s.split("j", 16)
    s.cache_read("x", at="j.outer")
    assert body_of(s) == (
        "for i in range(n):\n"
        "    for j_outer in range(0, m, 16):\n"
        "        x_cached = tl.alloc(tl.f32[1, 18])\n"
        "        for x_axis1 in range(max(j_outer - 1, 0), min(j_outer + 17, m)):\n"
        "            x_cached[0, x_axis1 - (j_outer - 1)] = x[i, x_axis1]\n"
        "        for j_inner in range(j_outer, min(j_outer + 16, m)):\n"
        "            y[i, j_inner] = x_cached[0, max(j_inner, 1) - j_outer]"
        " + x_cached[0, min(j_inner + 2, m) - j_outer]"
    )
    same_bits(s)
    assert tl.compile(smooth, schedule=s).plan.total == 4 * 18


@pytest.mark.parametrize("index", ["at[i]", "i + at[0]"])
def test_what_narrow_integers_lead_to_may_lie_anywhere(index: str) -> None:
    gathered = f"""
few = tl.dim("few", max=64)
k = tl.dim("k")

@tl.kernel
def gathered(at: tl.i32[few], x: tl.f32[k], y: tl.out[tl.f32[few]]):
    for i in range(few):
        y[i] = x[{index}]
"""
    s = tl.schedule(tl.parse(gathered))
    s.cache_read("x", at="i")
    assert "x_cached = tl.alloc(tl.f32[k])" in body_of(s)
    at, x = np.int32([3, 0, 2, 1]), np.float32(np.arange(8))
    wanted = x[at] if index == "at[i]" else x[3:7]
    np.testing.assert_array_equal(tl.compile(s.func)(at, x), wanted)


def test_rows_in_memory_may_lie_anywhere() -> None:
    @tl.kernel
    def sums(starts: tl.i32[n], at: tl.i32[m], x: tl.f32[k], y: tl.f32[n]):
        for i in range(n - 1):
            for p in range(starts[i], starts[i + 1]):
                y[i] += x[at[p]]

    s = tl.schedule(sums)
    s.cache_read("x", at="p")
    assert "x_cached = tl.alloc(tl.f32[k])" in body_of(s)
    assert "y[i] = y[i] + x_cached[at[p]]" in body_of(s)
    y = np.zeros(3, np.float32)
    tl.compile(sums, schedule=s)(np.int32([0, 2, 3]), np.int32([2, 1, 0]), np.float32([5, 6, 7]), y)
    assert y.tolist() == [13, 5, 0]


def test_what_is_written_is_not_copied() -> None:
    with pytest.raises(tl.KernelError, match=r"y\[i, j\] \(line \d+\) may write `y`"):
        tl.schedule(product).cache_read("y", at="i")


def test_what_a_tile_updates_is_stored_when_it_is_done() -> None:
    def by_tiles(s: tl.Schedule) -> None:
        s.split("j", 8)
        s.reorder("j.outer", "i", "j.inner")
        s.distribute("p", out_of="i")
        s.cache_write("y", at="j.outer")

    s = tl.Schedule.by(by_tiles, product.ir)
    assert body_of(s) == (
        "for j_outer in range(0, m, 8):\n"
        "    y_cached = tl.alloc(tl.f32[n, 8])\n"
        "    for i_before in range(n):\n"
        "        for j_inner_before in range(j_outer, min(j_outer + 8, m)):\n"
        "            y_cached[i_before, j_inner_before - j_outer] = tl.f32(0.0)\n"
        "    for i in range(n):\n"
        "        for j_inner in range(j_outer, min(j_outer + 8, m)):\n"
        "            for p in tl.reduce(k):\n"
        "                y_cached[i, j_inner - j_outer] = y_cached[i, j_inner - j_outer] + a[i, p] * b[p, j_inner]\n"
        "    for y_axis0_stored in range(n):\n"
        "        for y_axis1_stored in range(j_outer, min(j_outer + 8, m)):\n"
        "            y[y_axis0_stored, y_axis1_stored] = y_cached[y_axis0_stored, y_axis1_stored - j_outer]"
    )
    kernel, plain = tl.compile(product, schedule=by_tiles), tl.compile(product, schedule=None)
    numbers = np.random.default_rng(0)
    for rows, columns, terms in ((1, 1, 1), (3, 20, 5), (4, 8, 2)):
        a, b = numbers.normal(size=(rows, terms)).astype("f"), numbers.normal(size=(terms, columns)).astype("f")
        np.testing.assert_array_equal(kernel(a, b), plain(a, b))


def test_a_tile_of_which_the_body_sets_a_part_is_loaded_first() -> None:
    @tl.kernel
    def evens(x: tl.f32[n], y: tl.f32[n]):
        for i in tl.parallel(n // 4):
            y[4 * i] = x[i]
            y[4 * i + 2] = y[4 * i] + 1

    s = tl.schedule(evens)
    s.cache_write("y", at="i")
    assert "y_cached[y_axis0 - i * 4] = y[y_axis0]\n    y_cached[0] = x[i]\n    y_cached[2] = " in body_of(s)
    x, y, wanted = np.arange(9, dtype="f"), np.full(9, 7, "f"), np.full(9, 7, "f")
    evens(x, wanted)
    for debug in (False, True):
        tl.compile(evens, schedule=s, debug=debug)(x, y)
        np.testing.assert_array_equal(y, wanted)


def test_workers_store_nothing_that_others_have_in_their_tiles() -> None:
    @tl.kernel
    def apart(x: tl.f32[n], y: tl.f32[n]):
        for i in tl.parallel(n // 2 - 1):
            y[2 * i] = x[i]
            y[2 * i + 3] = x[i]

    with pytest.raises(tl.KernelError) as error:
        tl.schedule(apart).cache_write("y", at="i")
    assert error.value.code == "step-breaks-order"


def test_conditions_on_dims() -> None:
    s = tl.schedule(smooth)
    s.specialize("i", {"m": 64, "n * m": 4096})
    assert body_of(s).startswith("if m >= 64 and n * m >= 4096:\n    for i in range(n):\n")
    same_bits(s)


def test_a_remark_stands_around_a_loop_and_changes_nothing() -> None:
    s = tl.schedule(smooth)
    s.annotate("j", "hot")
    assert '    with tl.attr("pragma", "hot"):\n        for j in range(m):\n' in body_of(s)
    same_bits(s)


@pytest.mark.parametrize("size", [16, 4096])
def test_vectors_go_past_the_caches_where_it_is_said(size: int) -> None:
    @tl.kernel
    def doubled(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        for i in range(n):
            y[i] = 2 * x[i]

    s = tl.schedule(doubled)
    s.vectorize("i", 16)
    s.nontemporal("y", at=s.loop("i", 0))
    assert 'with tl.attr(y, "nontemporal"):' in body_of(s)
    kernel = tl.compile(doubled, schedule=s, target=tl.Target("x86-64-v3"))
    assert "!nontemporal" in kernel.llvm
    x = np.arange(size, dtype="f")
    np.testing.assert_array_equal(tl.compile(doubled, schedule=s)(x), 2 * x)
    with pytest.raises(tl.KernelError, match="does not write `x`"):
        s.nontemporal("x", at=s.loop("i", 1))


def test_what_is_read_again_stays_in_the_caches() -> None:
    with pytest.raises(tl.KernelError, match=r"the loop reads y\[i, j\]"):
        tl.schedule(product).nontemporal("y", at="i")


@pytest.mark.parametrize("tail", ["guarded", "masked", "peeled", "overlapped"])
def test_blocks_that_are_all_as_long(tail: str) -> None:
    s = tl.schedule(smooth)
    s.split("j", 4, tail=tail)
    assert str(s).endswith(f"s.split('j', 4, tail='{tail}')")
    same_bits(s)


def test_iterations_beyond_the_end_do_nothing() -> None:
    s = tl.schedule(smooth)
    s.split("i", 4, tail="guarded")
    assert body_of(s).startswith(
        "for i_outer in range(0, n, 4):\n    for i_inner in range(i_outer, i_outer + 4):\n        if i_inner < n:\n"
    )


def test_the_last_block_alone_is_a_vector_under_a_mask() -> None:
    s = tl.schedule(smooth)
    s.split("j", 8, tail="masked")
    assert body_of(s).endswith(
        "    if m // 8 * 8 < m:\n"
        "        for j_rest in range(m // 8 * 8, m // 8 * 8 + 8):\n"
        "            if j_rest < m:\n"
        "                y[i, j_rest] = x[i, max(j_rest - 1, 0)] + x[i, min(j_rest + 1, m - 1)]"
    )

    @tl.kernel
    def doubled(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        for i in range(n):
            y[i] = 2 * x[i]

    s = tl.schedule(doubled)
    s.split("i", 8, tail="masked")
    s.vectorize("i.inner", 8)
    s.vectorize("i.rest", 8)
    assert body_of(s) == (
        "for i_outer in range(0, n // 8 * 8, 8):\n"
        "    y[tl.ramp(i_outer, 1, 8)] = tl.broadcast(tl.f32(2.0), 8) * x[tl.ramp(i_outer, 1, 8)]\n"
        "if n // 8 * 8 < n:\n"
        "    i_rest = n // 8 * 8\n"
        "    holds = tl.ramp(i_rest, 1, 8) < tl.broadcast(n, 8)\n"
        "    y[tl.masked(tl.ramp(i_rest, 1, 8), holds)] = "
        "tl.broadcast(tl.f32(2.0), 8) * x[tl.masked(tl.ramp(i_rest, 1, 8), holds)]"
    )
    kernel = tl.compile(doubled, schedule=s)
    for size in (1, 8, 21):
        x = np.arange(size, dtype="f")
        np.testing.assert_array_equal(kernel(x), 2 * x)


def test_the_last_block_goes_back_where_there_are_as_many_iterations() -> None:
    s = tl.schedule(smooth)
    s.split("i", 4, tail="overlapped")
    assert body_of(s).startswith(
        "if n >= 4:\n"
        "    for i_outer in range(0, n, 4):\n"
        "        i_first = min(i_outer, n - 4)\n"
        "        for i_inner in range(i_first, i_first + 4):\n"
    )
    assert "else:\n    for i_rest in range(n):\n" in body_of(s)
    with pytest.raises(tl.KernelError, match="must come after"):
        s.parallel("i.outer")


def test_what_an_iteration_updates_is_not_done_twice() -> None:
    @tl.kernel
    def doubled(y: tl.f32[n]):
        for i in range(n):
            y[i] = 2 * y[i]

    with pytest.raises(tl.KernelError, match=r"y\[i\] \(line \d+\) is read and written by an iteration"):
        tl.schedule(doubled).split("i", 4, tail="overlapped")
