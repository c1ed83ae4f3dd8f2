"""ParallelizeLoops, before and after: the outermost independent loops go to workers."""

from __future__ import annotations

from textwrap import indent

import numpy as np
import pytest
from rewrite.before_after import BeforeAfter

import tirlite as tl
from tirlite.rewrite import Normalize, ParallelizeLoops

n, m = tl.dims("n m")
PASS = BeforeAfter((ParallelizeLoops(),))


def test_the_outermost_independent_loops() -> None:
    PASS.expect(
        """
        for t in range(3):
            for i in range(n):
                for j in range(m):
                    y[i, j] = y[i, j] * x[i, j]
        """,
        """
        for t in range(3):
            for i in tl.parallel(n):
                for j in range(m):
                    y[i, j] = y[i, j] * x[i, j]
        """,
    )


def test_columns_of_rows_that_depend_on_each_other_are_shared_in_strips() -> None:
    PASS.expect(
        """
        for i in range(1, n):
            for j in range(m):
                y[i, j] = y[i - 1, j] + x[i, j]
        """,
        """
        wide = tl.select(
            m >= max(4096, 524288 // max(max(max(n, 1) - 1, 0), 1)),
            min(max((m + 127) // 128 * 64, 256), 8192),
            max(m, 1),
        )
        for strip in tl.parallel((m + wide - 1) // wide):
            first = strip * wide
            for i in range(1, n):
                for j in range(first, min(first + wide, m)):
                    y[i, j] = y[i - 1, j] + x[i, j]
        """,
    )


@pytest.mark.parametrize(
    "body",
    [
        "y[i, j] = y[i - 1, m - j] + x[i, j]",  # another column of the row before
        "y[i, j] = y[i - 1, j] + y[i, j - 1]",  # columns that depend on each other
        "y[i, 0] = y[i - 1, 0] + x[i, j]",  # one element for all columns
        "y[i, j] = y[i - 1, 1] + x[i, j]",  # what another strip may write
    ],
)
def test_other_columns_are_not_shared(body: str) -> None:
    PASS.expect_unchanged(
        f"""
        for i in range(1, n):
            for j in range(1, m):
                {body}
        """
    )


ALONG_COLUMNS = tl.parse("""
    n, m = tl.dims("n m")

    @tl.kernel
    def f(x: tl.i32[n, m], y: tl.i32[n, m], total: tl.i32[m]):
        for i in tl.reduce(n):
            for j in range(m):
                total[j] += x[i, j]
        for i in range(1, n):
            for j in range(m):
                y[i, j] = y[i - 1, j] + x[i, j]
        for i in range(n):
            weight = x[i, 0]
            for j in range(m):
                if x[i, j] > 0:
                    total[j] = total[j] + weight * y[i, j]
    """)
BY_STRIPS = tl.compile(ALONG_COLUMNS, target=tl.Target.host(workers=3))
BY_ROWS = tl.compile(ALONG_COLUMNS, schedule=None)


def test_columns_whose_row_begins_with_a_load_of_one_of_them_are_not_shared() -> None:
    PASS.expect_unchanged(
        """
        for i in range(1, n):
            first = y[i, 0]
            for j in range(m):
                y[i, j] = y[i - 1, j] + first
        """
    )


@pytest.mark.parametrize("columns", [511, 512, 513, 4095, 4097, 8192 * 2 + 5])
def test_strips_of_columns_give_what_rows_give(columns: int) -> None:
    rows = (1 << 19) // columns + 3
    x = np.random.default_rng(0).integers(-9, 9, (rows, columns), np.int32)
    results = []
    for kernel in (BY_STRIPS, BY_ROWS):
        y, total = x.copy(), x[0].copy()
        kernel(x, y, total)
        results.append((y, total))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


ALONE = BeforeAfter((ParallelizeLoops(alone_from=100),))


def test_a_loop_that_is_all_that_a_function_does_is_shared_if_it_is_long() -> None:
    ALONE.expect(
        """
        for i in range(n):
            y[i, 0] = x[i, 0] + 1
        """,
        """
        if n >= 100:
            for i in tl.parallel(n):
                y[i, 0] = x[i, 0] + 1
        else:
            for i in range(n):
                y[i, 0] = x[i, 0] + 1
        """,
    )
    ALONE.expect_unchanged(
        """
        for i in range(n):
            y[i, 0] = x[i, 0] + 1
        for i in range(n):
            y[i, 1] = x[i, 1]
        """
    )
    ALONE.expect_unchanged(
        """
        for i in range(1, n):
            y[i, 0] = y[i - 1, 0] + x[i, 0]
        """
    )


@pytest.mark.parametrize(("least", "loop"), [(1001, "range"), (1000, "tl.parallel")])
def test_a_loop_of_a_known_length_has_no_branch(least: int, loop: str) -> None:
    source = """
@tl.kernel
def f(x: tl.f32[1000], y: tl.f32[1000]):
    for i in {}(1000):
        y[i] = x[i] + 1
"""
    found = ParallelizeLoops(alone_from=least)(Normalize()(tl.parse(source.format("range"))))
    assert tl.structural_equal(found, Normalize()(tl.parse(source.format(loop)))), str(found)


@pytest.mark.parametrize(
    "store",
    [
        pytest.param("y[n - 1 - i, 0] = tl.exp(x[i, 0])", id="backwards"),
        pytest.param("y[2 * i + 1, 0] = tl.exp(y[2 * i, 0])", id="odd rows are written, even ones read"),
    ],
)
def test_what_dependences_show_to_be_independent(store: str) -> None:
    PASS.expect(*(f"for i in {kind}(n // 2):\n    {store}" for kind in ("range", "tl.parallel")))


def test_searches_beside_each_other() -> None:
    search = """
        for i in {}(n):
            at = tl.alloc(tl.i64[()])
            at[()] = 0
            while at[()] < m:
                at[()] = tl.select(x[i, 0] < 0, m, at[()] + 1)
            y[i, 0] = tl.f32(at[()])
        """
    PASS.expect(search.format("range"), search.format("tl.parallel"))


@pytest.mark.parametrize(
    "loop",
    [
        pytest.param("for j in range(m):\n    y[i, j] = x[i, j] + 1", id="little to do"),
        pytest.param("for j in range(1, m):\n    y[i, j] = tl.exp(y[i, j - 1])", id="the iteration before is read"),
        pytest.param("for j in range(m):\n    y[i, 0] = tl.exp(x[i, j])", id="one element for all"),
        pytest.param("for j in tl.reduce(m):\n    y[i, 0] += tl.exp(x[i, j])", id="a reduction"),
        pytest.param("t = tl.alloc(tl.f32[m])\nfor j in range(m):\n    t[j] = tl.exp(x[i, j])", id="a temporary"),
        pytest.param(
            "for j in range(m):\n    assert x[i, j] < 9\n    y[i, j] = tl.exp(x[i, j])", id="the first fault is told"
        ),
        *(
            pytest.param(
                f"for j in range(m):\n    t = tl.alloc({kind})\n    t[{at}] = x[i, j]\n    y[i, j] = tl.exp(t[{at}])",
                id=f"{kind} for each worker",
            )
            for kind, at in (("tl.f32[n, m]", "0, 0"), ("tl.f32[8193]", "0"), ('tl.f32[n], scope="shared"', "0"))
        ),
    ],
)
def test_others_stay_as_they_are(loop: str) -> None:
    PASS.expect_unchanged("for i in tl.unroll(n):\n" + indent(loop, "    "))


def test_each_worker_has_a_row_or_a_small_table_of_its_own() -> None:
    def written(kind: str, shape: str) -> str:
        return f"""
        for i in {kind}(n):
            t = tl.alloc(tl.f32[{shape}])
            for j in range(m):
                t[j, 0] = tl.exp(x[i, j])
            for j in range(m):
                y[i, j] = t[m - 1 - j, 0]
        """

    for shape in ("m, 2", "64, 64"):
        PASS.expect(written("range", shape), written("tl.parallel", shape))


def test_with_a_capacity_workers_share_what_they_need() -> None:
    @tl.kernel
    def rows(x: tl.f32[n, 64], y: tl.out[tl.f32[n, 64]]):
        for i in range(n):
            t = tl.alloc(tl.f32[64])
            for j in range(64):
                t[j] = tl.exp(x[i, j])
            for j in range(64):
                y[i, j] = t[63 - j]

    two = tl.Target.host(workers=2)
    assert tl.compile(rows, target=two).plan.total == 512
    assert tl.compile(rows, target=two, capacity=256).plan.total == 256


def test_workers_do_not_change_a_bit() -> None:
    @tl.kernel
    def rows(x: tl.f32[n, m], y: tl.out[tl.f32[n]], z: tl.out[tl.f32[n, m]]):
        for i in range(n):
            total = tl.f32(0)
            for j in tl.reduce(m):
                total += x[i, j]
            y[i] = total
            for j in range(m):
                z[i, j] = tl.exp(x[i, j]) / total

    x = np.random.default_rng(0).random((501, 130), np.float32)
    one, four = (tl.compile(rows, target=tl.Target.host(workers=workers))(x) for workers in (1, 4))
    for alone, together in zip(one, four, strict=True):
        np.testing.assert_array_equal(alone, together)
    assert "tl.parallel" in str(rows.lowered)
