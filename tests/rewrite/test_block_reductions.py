"""BlockReductions, before and after: long reductions by blocks, with the same bits on any number of workers."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest

import tirlite as tl
from tirlite.interp import interpret
from tirlite.rewrite import BlockReductions, CheckReductions, Normalize

n, m = tl.dims("n m")


def blocked(source: str) -> tl.PrimFunc:
    return BlockReductions()(CheckReductions()(Normalize()(tl.parse(source))))


def source(body: str, dim: str = 'tl.dim("n")') -> str:
    return f"""
n = {dim}
m = tl.dim("m")

@tl.kernel
def f(x: tl.f32[n, m], k: tl.u8[n], y: tl.f32[8], row: tl.f32[m]):
    {body}
"""


def expect(before: str, after: str) -> None:
    found, wanted = blocked(source(before)), Normalize()(tl.parse(source(after)))
    assert tl.structural_equal(found, wanted), f"{found}\nis not\n{wanted}"


def test_a_sum_has_at_most_64_blocks() -> None:
    expect(
        """
    for i in tl.reduce(n):
        y[0] += x[i, 0]
        """,
        """
    length = (n // 262144 + 1) * 4096
    number = max(n - 1, 0) // length + 1
    blocks = tl.alloc(tl.f32[64], scope="local")
    for block in tl.parallel(number):
        first = block * length
        own = tl.alloc(tl.f32[()], scope="local")
        own[()] = tl.f32(-0.0)
        for i in tl.reduce(first, first + min(length, n - first)):
            own[()] = own[()] + x[i, 0]
        blocks[block] = own[()]
    for block in range(number):
        y[0] = y[0] + blocks[block]
        """,
    )


def test_in_a_loop_a_sum_of_one_block_stays_whole() -> None:
    expect(
        """
    for t in range(m):
        for i in tl.reduce(n):
            y[0] += x[i, t]
        """,
        """
    for t in range(m):
        if n <= 4096:
            for i in tl.reduce(n):
                y[0] += x[i, t]
        else:
            length = (n // 262144 + 1) * 4096
            number = max(n - 1, 0) // length + 1
            blocks = tl.alloc(tl.f32[64], scope="local")
            for block in tl.parallel(number):
                first = block * length
                own = tl.alloc(tl.f32[()], scope="local")
                own[()] = tl.f32(-0.0)
                for i in tl.reduce(first, first + min(length, n - first)):
                    own[()] = own[()] + x[i, t]
                blocks[block] = own[()]
            for block in range(number):
                y[0] = y[0] + blocks[block]
        """,
    )


def test_of_a_small_array_each_block_has_a_copy() -> None:
    expect(
        """
    for i in tl.reduce(n):
        y[k[i] % 8] += x[i, 0]
        """,
        """
    length = (n // 32768 + 1) * 4096
    number = max(n - 1, 0) // length + 1
    copies = tl.alloc(tl.f32[8, 8])
    for block in tl.parallel(number):
        first = block * length
        for place in range(8):
            copies[block, place] = tl.f32(-0.0)
        for i in tl.reduce(first, first + min(length, n - first)):
            copies[block, k[i] % 8] = copies[block, k[i] % 8] + x[i, 0]
    for block in range(number):
        for place in range(8):
            y[place] = y[place] + copies[block, place]
        """,
    )


def test_of_a_short_row_that_inner_loops_update_each_block_has_a_copy() -> None:
    expect(
        """
    for i in tl.reduce(n):
        e = x[i, 0] + 1
        for j in range(m):
            row[j] += x[i, j] * e
        """,
        """
    if n <= 128 or m > 8192:
        for i in tl.reduce(n):
            e = x[i, 0] + 1
            for j in range(m):
                row[j] = row[j] + x[i, j] * e
    else:
        length = (n // 1024 + 1) * 128
        number = max(n - 1, 0) // length + 1
        copies = tl.alloc(tl.f32[8, min(m, 8192)])
        for block in tl.parallel(number):
            first = block * length
            for place in range(m):
                copies[block, place] = tl.f32(-0.0)
            for i in tl.reduce(first, first + min(length, n - first)):
                e = x[i, 0] + 1
                for j in range(m):
                    copies[block, j] = copies[block, j] + x[i, j] * e
        for block in range(number):
            for place in range(m):
                row[place] = row[place] + copies[block, place]
        """,
    )


def test_a_kernel_with_a_capacity_has_no_copies_of_rows() -> None:
    kernel = tl.compile(gradients, capacity=1)
    assert kernel(np.ones((300, 7), np.float32), np.ones(7, np.float32))[1].tolist() == [2100] * 7


@tl.kernel
def gradients(x: tl.f32[n, m], w: tl.f32[m], y: tl.out[tl.f32[n]], g: tl.out[tl.f32[m]], of: tl.out[tl.f32[3, m]]):
    for j in range(m):
        g[j] = 0
        for c in range(3):
            of[c, j] = 0
    for i in tl.reduce(n):
        y[i] = 0
        for j in tl.reduce(m):
            y[i] += x[i, j] * w[j]
        for j in range(m):
            g[j] += y[i] * x[i, j]
            of[i % 3, j] += x[i, j]


@pytest.mark.parametrize("shape", [(0, 5), (128, 5), (129, 0), (300, 7), (1100, 130), (260, 8193)])
def test_gradients_of_rows_are_the_same_bits_on_any_number_of_workers(shape: tuple[int, int]) -> None:
    draw = np.random.default_rng(shape[1])
    x, w = draw.standard_normal(shape, np.float32), draw.standard_normal(shape[1], np.float32)
    runs = [tl.compile(gradients, target=tl.Target.host(workers=workers))(x, w) for workers in (1, 2, 8)]
    assert len({tuple(each.tobytes() for each in run) for run in runs}) == 1
    y, g, of = runs[0]
    wide = x.astype(np.float64)
    np.testing.assert_allclose(y, wide @ w, atol=1e-3)
    np.testing.assert_allclose(g, y @ wide, rtol=1e-3, atol=1e-3 * shape[1])
    np.testing.assert_allclose(of, [wide[c::3].sum(0) for c in range(3)], atol=1e-3)
    checked = tl.compile(gradients, debug=True)(x, w)
    np.testing.assert_allclose(checked[2], of, atol=1e-3)


COUNTED = """
n = tl.dim("n")
@tl.kernel
def counted(k: tl.u8[n], y: tl.i32[256]):
    for i in tl.reduce(n):
        y[k[i]] += 1
"""


def test_counts_take_turns_so_that_like_elements_in_a_row_do_not_wait_for_each_other() -> None:
    func = BlockReductions()(Normalize()(tl.parse(COUNTED)))
    text = str(func)
    assert "copies = tl.alloc(tl.i32[8, 4, 256])" in text
    assert "copies[i_block, 3, k[i + 3]] = copies[i_block, 3, k[i + 3]] + tl.i32(1)" in text
    kernel = tl.compile(tl.parse(COUNTED))
    for size in (0, 1, 3, 4097, 32768, 40003):
        k = np.random.default_rng(size).integers(0, 3, size, dtype=np.uint8)
        y = np.full(256, 7, np.int32)
        kernel(k, y)
        np.testing.assert_array_equal(y, 7 + np.bincount(k, minlength=256))


def test_counts_of_what_a_test_lets_be_loaded_go_by_partial_results() -> None:
    @tl.kernel
    def either(k: tl.u8[n], v: tl.u8[n], y: tl.i64[1]):
        total = tl.i64(0)
        for i in tl.reduce(n):
            if k[i] == 3 or v[i] == 7:
                total += 1
        y[0] = total

    assert "for i in tl.reduce(first, " in str(BlockReductions()(Normalize()(either.ir)))
    for size in (1, 7, 100, 9000):
        k, v = np.random.default_rng(size).integers(0, 9, (2, size), dtype=np.uint8)
        y = np.zeros(1, np.int64)
        either(k, v, y)
        assert y[0] == np.count_nonzero((k == 3) | (v == 7))


def test_few_elements_are_counted_where_they_are() -> None:
    kernel = tl.compile(tl.parse(COUNTED))
    assert "if n <= 1024:" in str(kernel.lowered)
    for size in (1, 1024, 1025):
        k = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
        y = np.zeros(256, np.int32)
        kernel(k, y)
        np.testing.assert_array_equal(y, np.bincount(k, minlength=256))


@pytest.mark.parametrize(
    ("body", "dim"),
    [
        pytest.param("for i in tl.reduce(n):\n        y[0] += x[i, 0]", 'tl.dim("n", max=8000)', id="few iterations"),
        pytest.param("for i in tl.reduce(8000):\n        y[0] += x[0, 0]", 'tl.dim("n")', id="a constant number"),
        pytest.param("for i in tl.reduce(0, n, 2):\n        y[0] += x[i, 0]", 'tl.dim("n")', id="a step"),
        pytest.param(
            "for j in tl.parallel(8):\n        for i in tl.reduce(n):\n            y[j] += x[i, 0]",
            'tl.dim("n")',
            id="a parallel loop around",
        ),
        pytest.param(
            "for i in tl.reduce(n):\n        if k[i] > 9:\n            y[8 - m] += x[i, 0]",
            'tl.dim("n")',
            id="an element that may not be there",
        ),
        pytest.param(
            "z = tl.view(y, tl.f32[4])\n    for i in tl.reduce(n):\n        y[0] += 1\n        z[1] += 1",
            'tl.dim("n")',
            id="two names for one buffer",
        ),
    ],
)
def test_others_stay_as_they_are(body: str, dim: str) -> None:
    func = Normalize()(tl.parse(source(body, dim)))
    assert BlockReductions()(func) is func


@tl.kernel
def all_kinds(x: tl.f32[n], k: tl.u8[n], sums: tl.f32[4], counts: tl.i32[16, 16], places: tl.out[tl.i64[3]]):
    least = tl.f32(99)
    at = tl.i64(-1)
    low = tl.f32(99)
    low_at = tl.i64(-1)
    high = tl.f32(-99)
    high_at = tl.i64(-1)
    for i in tl.reduce(n):
        sums[0] += x[i]
        sums[0] -= x[i] * x[i]
        sums[1] = max(sums[1], x[i])
        if x[i] > 0:
            sums[2] += 1
            counts[k[i] // 16, k[i] % 16] += 1
        low, low_at = tl.argmin((low, low_at), (x[i], i))
    for i in tl.reduce(n):
        twice = x[i] * 2
        least, at = tl.argmin((least, at), (twice, i))
    for i in tl.reduce(n):
        high, high_at = tl.argmax((high, high_at), (x[i], i))
    places[0] = at
    places[1] = low_at
    places[2] = high_at


@pytest.mark.parametrize("size", [1, 4096, 4097, 20_000])
def test_the_same_bits_on_any_number_of_workers(size: int) -> None:
    draw = np.random.default_rng(size)
    x = draw.standard_normal(size, np.float32)
    x[size // 2 :] = x[: size - size // 2]
    k = draw.integers(0, 256, size).astype(np.uint8)
    results = []
    for workers in (1, 2, 8):
        kernel = tl.compile(all_kinds, target=tl.Target.host(workers=workers))
        for _ in range(3):
            sums, counts = np.zeros(4, np.float32), np.zeros((16, 16), np.int32)
            places = kernel(x, k, sums, counts)
            results.append((sums.tobytes(), counts.tobytes(), tuple(places)))
    assert len(set(results)) == 1
    wide = x.astype(np.float64)
    assert abs(sums[0] - (wide - wide**2).sum()) < 1e-6 * size * (abs(wide) + wide**2).sum()
    assert (sums[1], sums[2]) == (max(0, x.max()), (x > 0).sum())
    np.testing.assert_array_equal(counts.ravel(), np.bincount(k[x > 0], minlength=256))
    assert results[0][2] == (x.argmin(), x.argmin(), x.argmax())


def test_the_lowered_function_is_what_runs() -> None:
    x, k = np.linspace(-1, 3, 8200, dtype=np.float32), np.arange(8200).astype(np.uint8)
    kernel, found = tl.compile(all_kinds, target=tl.Target.host(workers=2)), []
    for run in (kernel, tl.compile(kernel.lowered).interpret):
        sums, counts = np.zeros(4, np.float32), np.zeros((16, 16), np.int32)
        places = run(x, k, sums, counts)
        found.append((sums.tobytes(), counts.tobytes(), tuple(places)))
    assert found[0] == found[1]


@pytest.mark.parametrize("places", [(), (5,), (9000,), (5, 9000), (8191, 8192)])
def test_nan_comes_first_in_any_block(places: tuple[int, ...]) -> None:
    @tl.kernel
    def first(x: tl.f64[n], y: tl.out[tl.i64[1]]):
        top = tl.f64(-9)
        at = tl.i64(-1)
        for i in tl.reduce(n):
            top, at = tl.argmax((top, at), (x[i], i))
        y[0] = at

    x = np.zeros(20_000)
    x[[400, 19_000]] = 1
    x[[*places]] = nan
    assert first(x)[0] == x.argmax()


def test_nothing_is_touched_where_there_is_no_iteration() -> None:
    func = source("for i in tl.reduce(n):\n        y[k[0] + 0] += x[i, 0]", 'tl.dim("n", min=0)')
    after = blocked(func.replace("k[0] + 0", "8 - m"))
    assert "if n > 0:" in str(after)
    x, k, y = np.zeros((0, 20), np.float32), np.zeros(0, np.uint8), np.ones(8, np.float32)
    row = np.zeros(20, np.float32)
    interpret(after, dict(zip((*after.params, *after.dims), (x, k, y, row, 0, 20), strict=True)))
    assert y.tolist() == [1] * 8


def test_rows_that_are_summed_together() -> None:
    @tl.kernel
    def norm(x: tl.f64[n, m], y: tl.out[tl.f64[1]]):
        y[0] = 0
        for i in tl.reduce(n):
            for j in tl.reduce(m):
                y[0] += x[i, j] * x[i, j]

    x = np.random.default_rng(0).integers(-9, 9, (300, 70)).astype(float)
    assert norm(x)[0] == (x * x).sum()
    assert "tl.parallel" in str(norm.lowered)


def test_where_a_condition_says_that_there_are_few_they_stay_together() -> None:
    few = """
    if n >= 64 and n >= 6:
        y[0] = 0
    else:
        for i in tl.reduce(n):
            y[0] += x[i, 0]
        """
    assert str(blocked(source(few))) == str(Normalize()(tl.parse(source(few))))
    for many in ("n >= 10000", "m >= 64", "n >= 64 and m >= 64"):
        assert "tl.parallel" in str(blocked(source(few.replace("n >= 64 and n >= 6", many))))


@pytest.mark.parametrize(
    ("body", "is_cut"),
    [
        ("for t in range(8):\n        for i in tl.reduce(n):\n            y[t] += x[i, t]", True),
        ("for t in range(8):\n        for i in tl.reduce(t, n):\n            y[t] += x[i, t]", False),
        ("for t in range(8):\n        for i in tl.reduce(tl.i64(k[t])):\n            y[t] += x[i, t]", False),
        ("for t in range(8):\n        for _ in range(9):\n            for i in tl.reduce(n):\n"
         "                y[t] += x[i, t]", False),
    ],
)  # fmt: skip
def test_what_is_entered_often_stays_together(body: str, *, is_cut: bool) -> None:
    assert ("tl.parallel" in str(blocked(source(body)))) is is_cut


@tl.kernel(debug=True)
def looked_up(x: tl.i32[n], at: tl.i32[m], y: tl.i32[1]):
    for i in tl.reduce(m):
        y[0] += x[at[i]]


def test_a_fault_in_a_block_tells_the_authors_loops() -> None:
    arrays = np.zeros(4, np.int32), np.int32([1, 2, 7]), np.zeros(1, np.int32)
    for call in (looked_up, looked_up.interpret):
        with pytest.raises(tl.KernelIndexError, match="with extent 4, at i = 2\n"):
            call(*arrays)


@tl.kernel(debug=True)
def counted(at: tl.i8[n], y: tl.i64[8]):
    for i in tl.reduce(n):
        y[tl.i64(at[i])] += 1


def test_a_fault_in_a_copy_of_an_array_tells_the_array() -> None:
    at = np.zeros(3000, np.int8)
    at[[2001, 2500]] = 127, -128
    found = []
    for call in (counted, counted.interpret):
        with pytest.raises(tl.KernelIndexError) as error:
            call(at, np.zeros(8, np.int64))
        found.append(str(error.value))
    assert found[0] == found[1]
    assert "index 127 is out of bounds for axis 0 of `y` with extent 8, at i = 2001\n" in found[0]


def test_a_fault_where_blocks_are_combined_tells_of_no_block() -> None:
    func = tl.parse("""
        n = tl.dim("n")
        @tl.kernel
        def summed(x: tl.f32[n], y: tl.f32[8], s: tl.i64):
            for i in tl.reduce(n):
                y[s] += x[i]
    """)
    with pytest.raises(tl.KernelIndexError, match="axis 0 of `y` with extent 8\n"):
        tl.compile(func, debug=True)(np.ones(9, np.float32), np.zeros(8, np.float32), 9)
