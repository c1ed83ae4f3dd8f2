"""What tirlite does with sums of products by itself: any order of operands and axes, with exact sums to the bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from effort import effort
from small_tiles import SMALL, small_tiles

import tirlite as tl
from tirlite.codegen import Effort
from tirlite.diag import KernelError
from tirlite.rewrite.pipelines import LOOPS
from tirlite.schedules import CacheWrite, Pack, Specialize, Split, UnrollJam, Vectorize
from tirlite.schedules.auto.tiling import Tiling

n, m, k, h = tl.dims("n m k h")


@pytest.fixture(autouse=True)
def _small_tiles() -> Iterator[None]:
    with small_tiles(), effort(Effort.NONE):
        yield


@tl.kernel
def transposed(a: tl.f32[k, n], b: tl.f32[m, k], y: tl.out[tl.f32[n, m]]):
    for i in range(n):
        for j in range(m):
            y[i, j] = 0
            for p in tl.reduce(k):
                y[i, j] += a[p, i] * b[j, p]


@tl.kernel
def turned(a: tl.f32[n, k], b: tl.f32[k, m], y: tl.out[tl.f32[m, n]]):
    for i in range(n):
        for j in range(m):
            y[j, i] = 0
            for p in tl.reduce(k):
                y[j, i] += a[i, p] * b[p, j]


@tl.kernel
def batched(a: tl.f32[h, n, k], b: tl.f32[h, k, m], y: tl.out[tl.f32[h, n, m]]):
    for g in range(h):
        for i in range(n):
            for j in range(m):
                y[g, i, j] = 0
                for p in tl.reduce(k):
                    y[g, i, j] += a[g, i, p] * b[g, p, j]


@tl.kernel
def distances(a: tl.f32[n, k], b: tl.f32[m, k], y: tl.out[tl.f32[n, m]]):
    for i in range(n):
        for j in range(m):
            y[i, j] = 0
            for p in tl.reduce(k):
                y[i, j] += (a[i, p] - b[j, p]) * (a[i, p] - b[j, p])


@tl.kernel
def with_a_scalar(a: tl.f32[n, k], b: tl.f32[k, m], c: tl.f32[m], y: tl.out[tl.f32[n, m]]):
    for i in range(n):
        for j in range(m):
            total = tl.f32(0)
            for p in tl.reduce(k):
                total += a[i, p] * b[p, j]
            y[i, j] = max(total + c[j], 0)


@tl.kernel
def over_two_axes(a: tl.f32[n, h, k], b: tl.f32[k, h, m], y: tl.out[tl.f32[n, m]]):
    for i in range(n):
        for j in range(m):
            y[i, j] = 0
            for g in tl.reduce(h):
                for p in tl.reduce(k):
                    y[i, j] += a[i, g, p] * b[p, g, j]


@tl.kernel
def convolution(x: tl.f32[h, n + 2, m + 2], f: tl.f32[k, h, 3, 3], y: tl.out[tl.f32[k, n, m]]):
    for q in range(k):
        for i in range(n):
            for j in range(m):
                y[q, i, j] = 0
                for p in tl.reduce(h):
                    for u in tl.reduce(3):
                        for v in tl.reduce(3):
                            y[q, i, j] += f[q, p, u, v] * x[p, i + u, j + v]


@tl.kernel
def by_terms_within(a: tl.f32[n, k], b: tl.f32[k, m], y: tl.out[tl.f32[n, m]]):
    for i in range(n):
        for j in range(m):
            y[i, j] = 0
        for p in tl.reduce(k):
            for j in range(m):
                y[i, j] += a[i, p] * b[p, j]


@tl.kernel
def terms_outermost(a: tl.f32[n, k], b: tl.f32[k, m], y: tl.out[tl.f32[n, m]]):
    for i in range(n):
        for j in range(m):
            y[i, j] = 1
    for p in range(k):
        for i in range(n):
            for j in range(m):
                y[i, j] += a[i, p] * b[p, j]


@tl.kernel
def gram(a: tl.f32[n, k], y: tl.out[tl.f32[n, n]]):
    for i in range(n):
        for j in range(n):
            y[i, j] = 0
            for p in tl.reduce(k):
                d = a[i, p] - a[j, p]
                y[i, j] += d * d


@tl.kernel
def in_order(a: tl.f32[n, k], b: tl.f32[k, m], y: tl.out[tl.f32[n, m]]):
    for i in range(n):
        for j in range(m):
            total = tl.f32(0)
            for p in range(k):
                total += a[i, p] * b[p, j]
            y[i, j] = total


@tl.kernel
def one_factor_for_all(a: tl.f32[h, n, k], b: tl.f32[k, m], y: tl.out[tl.f32[h, n, m]]):
    for g in range(h):
        for i in range(n):
            for j in range(m):
                y[g, i, j] = 0
                for p in tl.reduce(k):
                    y[g, i, j] += a[g, i, p] * b[p, j]


@tl.kernel
def bytes_into_words(a: tl.i8[n, k], b: tl.i8[k, m], y: tl.out[tl.i32[n, m]]):
    for i in range(n):
        for j in range(m):
            y[i, j] = 0
            for p in tl.reduce(k):
                y[i, j] += tl.i32(a[i, p]) * tl.i32(b[p, j])


@tl.kernel
def halves_into_words(a: tl.f16[n, k], b: tl.f16[k, m], y: tl.out[tl.f32[n, m]]):
    """What is converted in each iteration as it is written is converted once, as it is copied."""
    for i in range(n):
        for j in range(m):
            y[i, j] = 0
            for p in tl.reduce(k):
                y[i, j] += tl.f32(a[i, p]) * tl.f32(b[p, j])


@tl.kernel
def along_no_axis(f: tl.f32[k, h, 2], x: tl.f32[h, n + 1, 3], y: tl.out[tl.f32[k, n, 3]]):
    """Of few columns: vectors go along the other operand, and are stored one by one."""
    for q in range(k):
        for i in range(n):
            for j in range(3):
                y[q, i, j] = 0
                for p in tl.reduce(h):
                    for u in tl.reduce(2):
                        y[q, i, j] += f[q, p, u] * x[p, i + u, j]


@tl.kernel
def with_a_rest(a: tl.f32[n, k], b: tl.f32[k, m], c: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
    """What is added to a sum has a name, and differs from column to column."""
    for i in range(n):
        for j in range(m):
            total = tl.f32(0)
            for p in tl.reduce(k):
                total += a[i, p] * b[p, j]
            rest = c[i, j]
            y[i, j] = max(total + rest, 0)


@tl.kernel
def of_named_factors(a: tl.f32[n, k], scale: tl.f32[n], b: tl.f32[k, m], y: tl.out[tl.f32[n, m]]):
    """What all columns have in common is read once for them."""
    for i in range(n):
        for j in range(m):
            y[i, j] = 0
    for i in range(n):
        weight = scale[i]
        for p in range(k):
            factor = weight * a[i, p]
            for j in range(m):
                y[i, j] += factor * b[p, j]


@tl.kernel
def of_what_is_written(b: tl.f32[n, m], y: tl.f32[n, m]):
    for i in range(n):
        for p in range(n):
            factor = y[i, 0]
            for j in range(m):
                y[i, j] += factor * b[p, j]


ALL = (
    transposed,
    turned,
    batched,
    distances,
    with_a_scalar,
    over_two_axes,
    convolution,
    by_terms_within,
    terms_outermost,
    gram,
    in_order,
    one_factor_for_all,
    bytes_into_words,
    halves_into_words,
    along_no_axis,
    with_a_rest,
    of_named_factors,
)


@pytest.mark.parametrize("kernel", ALL, ids=lambda kernel: kernel.name)
def test_it_is_packed_and_means_what_is_written(kernel: tl.Kernel) -> None:
    tiled = tl.compile(kernel.ir, target=tl.Target.host(workers=2))
    assert any(isinstance(step, Pack) for step in tiled.schedule.steps)
    is_as_written(kernel, tiled, (7, 13, 9, 3), (5, 5, 1, 2), (66, 5, 2, 1))


def test_a_factor_of_what_is_written_keeps_its_name() -> None:
    assert not any(isinstance(step, Pack) for step in of_what_is_written.schedule.steps)
    s = tl.schedule(of_what_is_written)
    s.inline_lets("p")
    assert tl.structural_equal(s.func, tl.schedule(of_what_is_written).func)


def test_masks_leave_out_what_lies_beyond_the_last_column() -> None:
    with patch.object(Tiling, "of", lambda target: replace(SMALL, row_bytes=64, vector_bytes=32)):
        for kernel in (transposed, batched, with_a_scalar, convolution, terms_outermost, distances, with_a_rest):
            tiled = tl.compile(kernel.ir)
            assert any(isinstance(step, Pack) for step in tiled.schedule.steps), kernel.name
            assert "tl.masked(" in str(tiled.lowered), kernel.name
            assert "- j_outer <= 8:" in str(tiled.lowered) or kernel is convolution, "one vector holds what is left"
            is_as_written(kernel, tiled, (7, 19, 9, 3), (5, 16, 3, 2))


def test_columns_of_all_rows_go_by_one_tile_where_sums_lie_so_in_memory() -> None:
    """Rows that fill no tile, or whose length is not known, leave none of its lanes empty."""
    with patch.object(Tiling, "of", lambda target: replace(SMALL, row_bytes=64, vector_bytes=32, masks_bytes=True)):
        for kernel, is_flat in ((convolution, True), (batched, False)):
            tiled = tl.compile(kernel.ir)
            assert ("flat=True" in str(tiled.schedule)) is is_flat, kernel.name
            is_as_written(kernel, tiled, (7, 3, 9, 1), (5, 16, 3, 2), (9, 1, 4, 2))
            is_as_written(kernel, tl.compile(tiled.lowered, schedule=None).interpret, (5, 3, 4, 2))


def test_short_rows_are_packed_where_nothing_else_fills_vectors() -> None:
    """Columns of all rows, and those that lie apart, ask for few columns, and for rows that repay a copy of windows."""

    @tl.kernel
    def halved(f: tl.f32[h, k, 3], x: tl.f32[k, 2 * m + 1], y: tl.out[tl.f32[h, m]]):
        for q in range(h):
            for j in range(m):
                y[q, j] = 0
                for p in tl.reduce(k):
                    for v in tl.reduce(3):
                        y[q, j] += f[q, p, v] * x[p, 2 * j + v]

    wide = replace(SMALL, row_bytes=256, vector_bytes=64, least_bytes=1 << 16, strided_rows=8, masks_bytes=True)
    with patch.object(Tiling, "of", lambda target: wide):
        for kernel, least in ((convolution, (("q", 8), ("i * j", 16))), (halved, (("q", 8), ("j", 4)))):
            tiled = tl.compile(kernel.ir)
            sizes = [step.least for step in tiled.schedule.steps if isinstance(step, Specialize)]
            if kernel is convolution:  # after those for windows in place
                least = tuple(
                    (product.replace("q", "q.else").replace("i * j", "i.else * j.else"), number)
                    for product, number in least
                )
            assert sizes[-1] == least
            is_as_written(kernel, tiled, (4, 4, 2, 8), (5, 17, 3, 9), (3, 2, 1, 7))


def is_as_written(kernel: tl.Kernel, tiled: Callable[..., object], *sizes_of: tuple[int, ...]) -> None:
    """Whether a scheduled kernel gives what the interpreter does for it as it is written, for n, m, k, h.

    Sums of such integers are exact in any grouping.
    """
    for numbers in sizes_of:
        sizes = dict(zip("nmkh", numbers, strict=True))
        inputs = [param for param in kernel.ir.params if param.name != "y"]
        shapes = [[int(np.asarray(extent_at(extent, sizes))) for extent in param.shape] for param in inputs]
        numbers_of = np.random.default_rng(7)
        given = [
            np.round(100 * numbers_of.normal(size=shape)).astype(param.dtype.numpy)
            for param, shape in zip(inputs, shapes, strict=True)
        ]
        wanted = kernel.interpret(*given)
        np.testing.assert_array_equal(tiled(*given), wanted)


def extent_at(extent: tl.ir.Expr, sizes: dict[str, int]) -> int:
    if isinstance(extent, tl.ir.Var):
        return sizes[extent.name]
    if isinstance(extent, tl.ir.IntImm):
        return extent.value
    a, b = (extent_at(each, sizes) for each in extent.children())
    return a * b if isinstance(extent, tl.ir.Mul) else a + b


def sized(rows: int, terms: int, columns: int) -> tl.Kernel:
    """A product of matrices of these sizes."""

    @tl.kernel
    def product(a: tl.f32[rows, terms], b: tl.f32[terms, columns], y: tl.out[tl.f32[rows, columns]]):
        for i in range(rows):
            for j in range(columns):
                y[i, j] = 0
                for p in tl.reduce(terms):
                    y[i, j] += a[i, p] * b[p, j]

    return product


def test_windows_pay_from_one_vector_of_columns_on() -> None:
    """Without a panel, several loops go over each vector, in the place of one loop over terms."""
    with patch.object(Tiling, "of", lambda target: replace(SMALL, row_bytes=64, vector_bytes=16)):
        least = [str(tl.compile(kernel.ir).schedule) for kernel in (in_order, convolution)]
    assert [text.count(f"'j': {columns}") for text, columns in zip(least, (8, 4), strict=True)] == [1, 1], least


def test_constant_sizes_decide_while_compiling() -> None:
    assert not any(isinstance(step, Pack) for step in sized(1, 64, 64).schedule.steps)
    assert not any(isinstance(step, Pack) for step in sized(64, 64, 1).schedule.steps)
    assert not any(isinstance(step, UnrollJam) for step in sized(4, 4, 4).schedule.steps), "LLVM writes it out"
    assert any(isinstance(step, UnrollJam) for step in sized(5, 4, 4).schedule.steps)
    kinds = [type(step) for step in sized(8, 64, 64).schedule.steps]
    assert Pack in kinds
    assert CacheWrite in kinds
    assert Specialize not in kinds


def test_columns_that_are_few_take_fewer_vectors_and_more_rows() -> None:
    few, many = sized(30, 9, 2), sized(30, 9, 9)
    assert [step for step in few.schedule.steps if isinstance(step, UnrollJam)][0].by > SMALL.rows
    assert [step for step in many.schedule.steps if isinstance(step, UnrollJam)][0].by == SMALL.rows
    for kernel in (few, many):
        shapes = [[extent.value for extent in param.shape] for param in kernel.ir.params[:2]]
        given = [np.random.default_rng(3).integers(-9, 10, shape).astype("f") for shape in shapes]
        np.testing.assert_array_equal(kernel(*given), kernel.interpret(*given))


@pytest.mark.parametrize(("columns", "lanes"), [(8, 8), (24, 8), (32, 32)])
def test_columns_that_fill_no_vectors_take_shorter_ones(columns: int, lanes: int) -> None:
    @tl.kernel
    def laid(w: tl.f32[6, 48, 12], x: tl.f32[6, 48, columns], y: tl.out[tl.f32[6, 12, columns]]):
        for t in range(6):
            near = tl.alloc(tl.f32[48, columns])
            for c in range(48):
                for q in range(columns):
                    near[c, q] = x[t, c, q]
            for o in range(12):
                for q in range(columns):
                    total = tl.f32(0)
                    for c in range(48):
                        total += w[t, c, o] * near[c, q]
                    y[t, o, q] = total

    wide = replace(SMALL, row_bytes=256, vector_bytes=64, rows=6)
    with patch.object(Tiling, "of", lambda target: wide):
        kernel = tl.compile(laid.ir)
        steps = kernel.schedule.steps
    assert [step.lanes for step in steps if isinstance(step, Vectorize)][-1] == (lanes,)
    rng = np.random.default_rng(3)
    w, x = rng.standard_normal((6, 48, 12), np.float32), rng.standard_normal((6, 48, columns), np.float32)
    np.testing.assert_array_equal(kernel(w, x), kernel.interpret(w, x))


def test_columns_that_fill_no_vector_are_packed_however_large_the_cache_is() -> None:
    wide = replace(SMALL, row_bytes=128, vector_bytes=64, least_bytes=1 << 20, least_strided=1 << 20)
    with patch.object(Tiling, "of", lambda target: wide):
        for terms, columns in ((9, 8), (8, 3), (40, 12)):
            kernel = sized(30, terms, columns)
            steps = kernel.schedule.steps
            assert any(isinstance(step, Vectorize) for step in steps), columns
            # Eight columns are what one vector takes, and lie as a copy of them would.
            assert any(isinstance(step, Pack) for step in steps) == (columns != 8), columns
            a, b = (
                np.random.default_rng(3).integers(-9, 10, size).astype("f") for size in ((30, terms), (terms, columns))
            )
            np.testing.assert_array_equal(kernel(a, b), kernel.interpret(a, b))
        assert not any(isinstance(step, Pack) for step in sized(30, 9, 16).schedule.steps)


def test_what_the_kernel_lays_together_itself_is_not_copied_once_more() -> None:
    @tl.kernel
    def by_parts(a: tl.f32[n, 6, k], b: tl.f32[k, m], y: tl.out[tl.f32[n, 6, 32]]):
        for part in range(n):
            near = tl.alloc(tl.f32[k, 32])
            for p in range(k):
                for j in range(32):
                    near[p, j] = b[p, j] if j < m else 0
            for i in range(6):
                for j in range(32):
                    total = tl.f32(0)
                    for p in range(k):
                        total += a[part, i, p] * near[p, j]
                    y[part, i, j] = total

    steps = by_parts.schedule.steps
    assert any(isinstance(step, UnrollJam) for step in steps)
    assert not any(isinstance(step, Pack) for step in steps)
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((2, 6, 5), np.float32), rng.standard_normal((5, 9), np.float32)
    np.testing.assert_array_equal(by_parts(a, b), by_parts.interpret(a, b))


def test_the_last_vector_of_columns_has_no_more_lanes_than_hold_what_is_left() -> None:
    wide = replace(SMALL, row_bytes=64, vector_bytes=16)
    for tiling, columns, widths in (
        (SMALL, 9, (4, 2)),
        (SMALL, 11, (4,)),
        (SMALL, 12, (4,)),
        (SMALL, 801, (4,)),
        (wide, 20, (16, 4)),
        (wide, 23, (16, 8)),
        (wide, 25, (16,)),
        (wide, 100, (16, 4)),
        (wide, 772, (16,)),
    ):
        with patch.object(Tiling, "of", lambda target, tiling=tiling: tiling):
            kernel = sized(30, 9, columns)
            steps = kernel.schedule.steps
        assert [step.lanes for step in steps if isinstance(step, Vectorize)][-1] == widths, columns
        a, b = (np.random.default_rng(3).integers(-9, 10, shape).astype("f") for shape in ((30, 9), (9, columns)))
        np.testing.assert_array_equal(kernel(a, b), kernel.interpret(a, b))


def test_rows_are_shared_out_where_panels_alone_are_too_few_for_the_workers() -> None:
    a, b = (np.random.default_rng(3).integers(-9, 10, shape).astype("f") for shape in ((32, 9), (9, 8)))
    for workers, columns, by in ((1, 8, None), (2, 4, 16), (2, 8, None), (4, 8, 16), (2, 3, 16)):
        with patch.object(Tiling, "of", lambda target, count=workers: replace(SMALL, workers=count)):
            kernel = sized(32, 9, columns)
            splits = {str(step.loop): step.by for step in kernel.schedule.steps if isinstance(step, Split)}
        assert splits.get("i") == by, (workers, columns)
        np.testing.assert_array_equal(kernel(a, b[:, :columns].copy()), kernel.interpret(a, b[:, :columns].copy()))


def test_rows_of_what_one_worker_lays_together_are_not_shared_out() -> None:
    @tl.kernel
    def by_parts(a: tl.f32[n, 16, 9], b: tl.f32[n, 9, 8], y: tl.out[tl.f32[n, 16, 8]]):
        for part in tl.parallel(n):
            near = tl.alloc(tl.f32[9, 8])
            for p in range(9):
                for j in range(8):
                    near[p, j] = b[part, p, j]
            for i in range(16):
                for j in range(8):
                    total = tl.f32(0)
                    for p in range(9):
                        total += a[part, i, p] * near[p, j]
                    y[part, i, j] = total

    with patch.object(Tiling, "of", lambda target: replace(SMALL, workers=4)):
        steps = tl.compile(by_parts.ir).schedule.steps
    assert any(isinstance(step, UnrollJam) for step in steps)
    assert [str(step.loop) for step in steps if isinstance(step, Split)] == ["s.loop('j', 1)"]


@pytest.mark.parametrize(("parts", "is_whole"), [(2, True), (1, False)])
def test_rows_are_not_shared_out_inside_of_what_is(parts: int, is_whole: bool) -> None:
    @tl.kernel
    def by_parts(a: tl.f32[parts, 16, 9], b: tl.f32[9, 4], y: tl.out[tl.f32[parts, 16, 4]]):
        for part in tl.parallel(parts):
            tl.address_of(y[part, 0, 0])
            for i in range(16):
                for j in range(4):
                    y[part, i, j] = 0
                    for p in tl.reduce(9):
                        y[part, i, j] += a[part, i, p] * b[p, j]

    with patch.object(Tiling, "of", lambda target: replace(SMALL, workers=4)):
        kernel = tl.compile(by_parts.ir)
        steps = kernel.schedule.steps
    assert any(isinstance(step, UnrollJam) for step in steps)
    assert ("i" in [str(step.loop) for step in steps if isinstance(step, Split)]) != is_whole


def test_a_schedule_adds_a_panel_for_each_worker_and_none_where_loops_run_as_written() -> None:
    assert tl.compile(batched.ir, target=tl.Target.host(workers=2)).plan.total == 2 * 4 * 4 * k
    assert tl.compile(batched.ir, schedule=None).plan.total == 0


def test_a_sum_that_another_loop_reads_is_left_alone() -> None:
    @tl.kernel
    def feeding(a: tl.f32[n, k], b: tl.f32[k, m], y: tl.out[tl.f32[n, m]]):
        for i in range(1, n):
            for j in range(m):
                for p in tl.reduce(k):
                    y[i, j] += a[i, p] * b[p, j] * y[i - 1, j]

    assert feeding.schedule.steps == LOOPS


def test_copies_are_converted_where_nothing_else_is_done_with_what_they_copy() -> None:
    casts = [step.cast for step in halves_into_words.schedule.steps if isinstance(step, Pack)]
    assert casts == ["f32", "f32"]

    @tl.kernel
    def beside_itself(a: tl.f32[n, k], b: tl.f16[k, m], y: tl.out[tl.f32[n, m]]):
        for i in range(n):
            for j in range(m):
                for p in tl.reduce(k):
                    y[i, j] += tl.f32(b[p, j] * b[p, j]) * a[i, p]

    assert [step.cast for step in beside_itself.schedule.steps if isinstance(step, Pack)] == [""]
    s = tl.schedule(beside_itself)
    with pytest.raises(KernelError, match="read otherwise than to be converted to f32"):
        s.pack("b", at="i", axes=["p", "j"], cast="f32")


@pytest.mark.parametrize(
    ("rows", "panels", "block"),
    [(128, 5, 64), (16, 5, 16), (131, 1, 66), (128, 100, 128)],
    ids=["even", "too few to copy twice", "whole tiles", "panels enough"],
)
def test_rows_go_to_workers_by_blocks_that_take_least_time(rows: int, panels: int, block: int) -> None:
    tiling = replace(SMALL, rows=6, row_bytes=256, vector_bytes=64, workers=2)
    assert tiling.rows_of_block(rows, [64] * panels, 128, 6) == block
