"""What tirlite does with nests that fill temporaries for others: a tile of them at a time, to the bit as written."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import pytest
from effort import effort
from schedules.test_steps import body_of

import tirlite as tl
from tirlite.codegen import Effort
from tirlite.ir import Allocate, walk
from tirlite.rewrite import Normalize
from tirlite.rewrite.forms import Form
from tirlite.rewrite.pipelines import LOOPS
from tirlite.schedules import ComputeAt
from tirlite.schedules.auto import ScheduleChains, chains

n, m, k = tl.dims("n m k")
# Tiles so small that arrays of some elements have several, and no arrays that are too small for tiles.
JOIN_ROWS = chains.join_rows
SMALL = {"_ROWS": 2, "_FEWEST": 4, "_MOST": 4, "_LINES": 0, "_MUCH": 4, "_SMALL": 0}


@pytest.fixture(autouse=True)
def _small_tiles() -> Iterator[None]:
    with patch.multiple(chains, join_rows=lambda *_given: False, **SMALL), effort(Effort.NONE):
        yield


@tl.kernel
def blur(x: tl.f32[n + 2, m + 2], y: tl.out[tl.f32[n, m]]):
    rows = tl.alloc(tl.f32[n + 2, m])
    for i in range(n + 2):
        for j in range(m):
            rows[i, j] = x[i, j] + x[i, j + 1] + x[i, j + 2]
    for i in range(n):
        for j in range(m):
            y[i, j] = (rows[i, j] + rows[i + 1, j] + rows[i + 2, j]) / 9


@tl.kernel
def clamped(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
    rows = tl.alloc(tl.f32[n, m])
    for i in range(n):
        for j in range(m):
            rows[i, j] = x[i, max(j - 1, 0)] + x[i, j] + x[i, min(j + 1, m - 1)]
    for i in range(n):
        for j in range(m):
            y[i, j] = rows[max(i - 1, 0), j] + rows[i, j] + rows[min(i + 1, n - 1), j]


@tl.kernel
def corners(x: tl.f32[n + 4, m + 4], y: tl.out[tl.f32[n, m]]):
    across = tl.alloc(tl.f32[n + 2, m + 2])
    down = tl.alloc(tl.f32[n + 2, m + 2])
    for i in range(n + 2):
        for j in range(m + 2):
            across[i, j] = x[i, j + 2] - x[i, j]
            down[i, j] = x[i + 2, j] - x[i, j]
    both = tl.alloc(tl.f32[n + 2, m + 2])
    for i in range(n + 2):
        for j in range(m + 2):
            both[i, j] = across[i, j] * down[i, j]
    for i in range(n):
        for j in range(m):
            total = tl.f32(0)
            for u in tl.reduce(3):
                for v in tl.reduce(3):
                    total += both[i + u, j + v]
            y[i, j] = total


@tl.kernel
def of_channels(x: tl.u8[k, n + 2, m], y: tl.out[tl.u8[k, n, m]]):
    sums = tl.alloc(tl.u16[k, n, m])
    for c in range(k):
        for i in range(n):
            for j in range(m):
                sums[c, i, j] = x[c, i, j] + tl.u16(x[c, i + 2, j])
    for c in range(k):
        for i in range(n):
            for j in range(m):
                y[c, i, j] = tl.u8(sums[c, i, j] // 2 + sums[c, max(i - 1, 0), j] // 4)


@tl.kernel
def half(x: tl.f32[2 * n + 2, 2 * m], y: tl.out[tl.f32[n, m]]):
    rows = tl.alloc(tl.f32[2 * n + 2, m])
    for i in range(2 * n + 2):
        for j in range(m):
            rows[i, j] = x[i, 2 * j] + x[i, 2 * j + 1]
    for i in range(n):
        for j in range(m):
            y[i, j] = rows[2 * i, j] + rows[2 * i + 1, j] + rows[2 * i + 2, j]


@pytest.mark.parametrize("kernel", [blur, clamped, corners, of_channels, half], ids=lambda kernel: kernel.name)
def test_temporaries_are_tiles_and_values_as_written(kernel: tl.Kernel) -> None:
    tiled = tl.compile(kernel.ir, target=tl.Target.host(workers=2))
    assert any(isinstance(step, ComputeAt) for step in tiled.schedule.steps)
    assert tiled.plan.at(dict.fromkeys((var.dim for var in kernel.ir.dims), 1000)).total <= 2 * 3 * 64
    again = tl.compile(kernel.ir, schedule=tiled.schedule.steps)
    assert str(again.schedule.func) == str(tiled.schedule.func)
    x = kernel.ir.params[0]
    for numbers in ((1, 1, 1), (2, 3, 2), (5, 9, 1), (9, 4, 3), (0, 3, 1)):
        sizes = dict(zip(("n", "m", "k"), numbers, strict=True))
        shape = [eval(str(extent), {}, sizes) for extent in x.shape]
        given = np.random.default_rng(7).integers(0, 50, shape).astype(x.dtype.numpy)
        np.testing.assert_array_equal(tiled(given), kernel.interpret(given))


def test_what_one_element_needs_takes_no_memory() -> None:
    @tl.kernel
    def staged(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
        half = tl.alloc(tl.f32[n, m])
        for i in range(n):
            for j in range(m):
                half[i, j] = x[i, j] / 2
        for i in range(n):
            for j in range(m):
                y[i, j] = half[i, j] * half[i, j]

    steps = staged.schedule.steps[: -len(LOOPS)]
    assert [str(step) for step in steps] == ["s.compute_at(s.loop('i', 0), at=s.loop('j', 1))"]
    assert staged.plan.total == 0


def test_what_each_tile_would_compute_anew_stays_where_it_is() -> None:
    @tl.kernel
    def of_columns(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
        powers = tl.alloc(tl.f32[n, m])
        for i in range(n):
            for j in range(m):
                powers[i, j] = x[i, j] * x[i, j]
        for i in range(n):
            for j in range(m):
                total = tl.f32(0)
                for u in tl.reduce(m):
                    total += powers[i, u]
                y[i, j] = total

    def kept(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]], more: tl.out[tl.f32[m]]):
        rows = tl.alloc(tl.f32[n, m])
        for i in range(n):
            for j in range(m):
                rows[i, j] = x[i, j] * 2
        for i in range(n):
            for j in range(m):
                y[i, j] = rows[max(i - 1, 0), j]
        for j in range(m):
            more[j] = rows[0, j]

    for kernel in (of_columns, tl.compile(kept)):
        assert not any(isinstance(step, ComputeAt) for step in kernel.schedule.steps)


def test_rows_of_a_tile_begin_in_lines_of_their_own() -> None:
    target = tl.Target.host()
    with patch.multiple(chains, _ROWS=16, _FEWEST=128, _MOST=4096, _LINES=1, _MUCH=1.2):
        lowered = tl.compile(blur.ir, target=target, cache=None).lowered
    (arena,) = (node for node in walk(lowered) if isinstance(node, Allocate))
    pitch = arena.buffer.shape[-1].value * 4
    assert pitch // target.processor.line % 2 == 1


def test_a_nest_may_read_temporaries_and_store_nothing() -> None:
    @tl.kernel
    def unread(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
        t = tl.alloc(tl.f32[n, m])
        for i in range(n):
            for j in range(m):
                t[i, j] = x[i, j] + 1
                y[i, j] = x[i, j]
        for i in range(1, n):
            for j in range(m):
                last = t[i, j] + t[i - 1, j]

    x = np.ones((3, 4), np.float32)
    assert np.array_equal(unread(x), x)


def test_a_window_of_rows_slides_along_with_the_loop_that_reads_them() -> None:
    s = tl.schedule(blur)
    s.join(s.loop("i", 0), s.loop("i", 1), behind=2)
    s.store_at("rows", at="i")
    assert "rows = tl.alloc(tl.f32[3, m])" in str(s.func)
    assert "rows[(i - 2) % 3, j]" in str(s.func)
    assert str(s).endswith("s.store_at('rows', at='i')")
    x = np.random.default_rng(0).normal(size=(9, 12)).astype("f")
    np.testing.assert_array_equal(tl.compile(blur, schedule=s)(x), blur.interpret(x))


def test_a_loop_that_does_not_hold_all_uses_keeps_no_window() -> None:
    s = tl.schedule(blur)
    with pytest.raises(tl.KernelError, match="the loop over `i` does not hold all uses of `rows`"):
        s.store_at("rows", at=s.loop("i", 1))


def test_a_temporary_is_computed_where_it_is_read() -> None:
    s = tl.schedule(blur)
    s.inline("rows")
    assert "tl.alloc" not in str(s.func)
    x = np.random.default_rng(0).normal(size=(9, 12)).astype("f")
    np.testing.assert_array_equal(tl.compile(blur, schedule=s)(x), blur.interpret(x))


def test_what_is_written_meanwhile_is_not_computed_later() -> None:
    @tl.kernel
    def changed(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        t = tl.alloc(tl.f32[n])
        for i in range(n):
            t[i] = 2 * x[i]
        for i in range(n):
            x[i] = 0
        for i in range(n):
            y[i] = t[i]

    with pytest.raises(tl.KernelError, match=r"`x\[i\] = .*` writes what is computed from"):
        tl.schedule(changed).inline("t")


def test_a_temporary_of_which_some_elements_are_not_set_is_kept() -> None:
    @tl.kernel
    def partly(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        t = tl.alloc(tl.f32[n])
        for i in range(1, n):
            t[i] = 2 * x[i]
        for i in range(1, n):
            y[i] = t[i]

    with pytest.raises(tl.KernelError, match=r"t\[i\] \(line \d+\) does not set all elements of `t`"):
        tl.schedule(partly).inline("t")


def test_little_is_left_of_a_temporary_that_loops_in_one_fill_and_read() -> None:
    @tl.kernel
    def normed(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
        twice = tl.alloc(tl.f32[n, m])
        total = tl.alloc(tl.f32[n])
        for i in range(n):
            total[i] = 0
            for j in range(m):
                twice[i, j] = 2 * x[i, j]
                total[i] += twice[i, j]
        for i in range(n):
            for j in range(m):
                y[i, j] = twice[i, j] / total[i]

    s = tl.schedule(normed)
    with pytest.raises(tl.KernelError, match="all of `twice` is touched in the body that it is allocated in"):
        s.shrink("twice")
    s.join(s.loop("i", 0), s.loop("i", 1))
    s.shrink("twice")
    s.shrink("total")
    assert body_of(s) == (
        "for i in range(n):\n"
        '    total = tl.alloc(tl.f32[1], scope="local")\n'
        "    twice = tl.alloc(tl.f32[1, m])\n"
        "    total[0] = tl.f32(0.0)\n"
        "    for j in range(m):\n"
        "        twice[0, j] = tl.f32(2.0) * x[i, j]\n"
        "        total[0] = total[0] + twice[0, j]\n"
        "    for j in range(m):\n"
        "        y[i, j] = twice[0, j] / total[0]"
    )
    assert str(s).endswith("s.shrink('twice')\ns.shrink('total')")
    x = np.random.default_rng(0).uniform(1, 2, size=(9, 12)).astype("f")
    np.testing.assert_array_equal(tl.compile(normed, schedule=s)(x), normed.interpret(x))
    with pytest.raises(tl.KernelError, match="`x` is no temporary"):
        s.shrink("x")


def test_tiles_of_large_arrays_are_twice_as_high() -> None:
    forms = {form: str(ScheduleChains(form=form)(Normalize()(blur.ir))) for form in (Form.USUAL, Form.LARGE)}
    assert "min(i_outer + 2, n)" in forms[Form.USUAL]
    assert "min(i_outer + 4, n)" in forms[Form.LARGE]


def test_small_arrays_have_no_tiles_where_temporaries_are_small_as_well() -> None:
    @tl.kernel
    def outer(x: tl.f32[n + 2], y: tl.out[tl.f32[n]]):
        all_pairs = tl.alloc(tl.f32[n + 2, n])
        for i in range(n + 2):
            for j in range(n):
                all_pairs[i, j] = x[i] * x[j]
        for i in range(n):
            y[i] = 0
            for j in range(n):
                y[i] += all_pairs[i, j] * all_pairs[i + 2, j]

    with patch.object(chains, "_SMALL", 2):
        kernel = tl.compile(blur.ir, target=tl.Target.host(workers=1))
        assert "s.for_small(" in str(kernel.schedule)
        assert "s.for_small(" not in str(tl.compile(outer.ir).schedule)
        assert "s.for_small(" not in str(tl.compile(blur.ir, schedule="compact").schedule)
        assert tl.compile(blur.ir, capacity=1 << 20)._version.limits.form(8) is Form.USUAL
        limit = kernel._version.limits.small_below
        small, tiled = (64, 64), (limit // 8 // 64, 64)
        forms = [kernel._version.limits.form(8 * rows * columns) for rows, columns in (small, tiled)]
        assert forms == [Form.SMALL, Form.USUAL]
        plain = tl.compile(blur.ir, schedule=None)
        for rows, columns in (small, tiled, (0, 3)):
            x = np.random.default_rng(0).random((rows + 2, columns + 2), np.float32)
            for _ in range(3):
                np.testing.assert_array_equal(kernel(x), plain(x))


@tl.kernel
def sharpened(x: tl.u8[n, m], y: tl.out[tl.u8[n, m]]):
    grey = tl.alloc(tl.f32[n, m])
    rows = tl.alloc(tl.f32[n, m])
    for i in range(n):
        for j in range(m):
            grey[i, j] = tl.f32(x[i, j])
    for i in range(n):
        for j in range(m):
            rows[i, j] = grey[i, max(j - 1, 0)] + grey[i, j] + grey[i, min(j + 1, m - 1)]
    for i in range(n):
        for j in range(m):
            y[i, j] = tl.u8(min(max(2 * grey[i, j] - rows[max(i - 1, 0), j] / 3, 0.0), 255.0))


def test_pixels_change_their_type_where_they_are_read() -> None:
    func = ScheduleChains()(Normalize()(sharpened.ir))
    assert [stmt.buffer.name for stmt in walk(func) if isinstance(stmt, Allocate)] == ["rows"]
    with patch.object(chains, "_MOST_READS", 3):
        func = ScheduleChains()(Normalize()(sharpened.ir))
        assert [stmt.buffer.name for stmt in walk(func) if isinstance(stmt, Allocate)] == ["grey", "rows"]
    for shape in (1, 1), (5, 3), (9, 40):
        x = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
        np.testing.assert_array_equal(sharpened(x), sharpened.interpret(x))


def test_few_columns_of_whole_rows_go_on_from_row_to_row() -> None:
    @tl.kernel
    def thrice(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
        squares = tl.alloc(tl.f32[n, m])
        for i in range(n):
            for j in range(m):
                squares[i, j] = x[i, j] * x[i, j] + 1
        for i in range(n):
            for j in range(m):
                y[i, j] = 0
        for i in range(1, n - 1):
            for j in range(m):
                y[i, j] = squares[i - 1, j] + squares[i, j] + squares[i + 1, j]

    with patch.object(chains, "join_rows", JOIN_ROWS):
        kernel = tl.compile(thrice.ir, target=tl.Target("x86-64-v4", workers=1))
        assert "s.specialize(s.loop('i', 1), {'j': 32})" in str(kernel.schedule)
        kernel = tl.compile(thrice.ir)
        for shape in (1, 1), (3, 1), (9, 7), (9, 70):
            x = np.random.default_rng(0).random(shape, np.float32)
            np.testing.assert_array_equal(kernel(x), thrice.interpret(x))
