"""PartitionLoops, before and after: where an iteration stands is asked at the ends of a loop alone."""

import numpy as np
import pytest
from fuzz.guard import guarded
from rewrite.before_after import BeforeAfter

import tirlite as tl
from tirlite.rewrite import Normalize, PartitionLoops

n, m = tl.dims("n m")

PASS = BeforeAfter((PartitionLoops(),))


def test_indices_that_are_kept_in_range() -> None:
    PASS.expect(
        """
        for i in range(n):
            for j in range(m):
                y[i, j] = x[i, max(j - 1, 0)] + x[max(i - 1, 0), min(j + 2, m - 1)]
        """,
        """
        for i in range(n):
            y[i, 0] = x[i, 0] + x[max(i - 1, 0), min(2, m - 1)]
            for j in range(1, m - 2):
                y[i, j] = x[i, j - 1] + x[max(i - 1, 0), j + 2]
            for j in range(max(1, m - 2), m):
                y[i, j] = x[i, j - 1] + x[max(i - 1, 0), m - 1]
        """,
    )


def test_tests_for_edges() -> None:
    PASS.expect(
        """
        for i in range(n):
            for j in range(m):
                if j == 0 or j >= m - 1:
                    y[i, j] = 0
                else:
                    y[i, j] = x[i, j - 1] * x[i, j + 1]
        """,
        """
        for i in range(n):
            y[i, 0] = tl.f32(0.0)
            for j in range(1, m - 1):
                y[i, j] = x[i, j - 1] * x[i, j + 1]
            for j in range(max(1, m - 1), m):
                y[i, j] = tl.f32(0.0)
        """,
    )


@tl.kernel
def named(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in range(n):
        before = i - 1
        behind = i + 1
        y[i] = x[max(0, before)]
        if 0 <= before and n > behind:
            y[i] += x[behind]


def test_names_of_places_on_either_side() -> None:
    lines = [line.strip() for line in str(PartitionLoops()(Normalize()(named.ir))).splitlines()]
    start = lines.index("for i in range(1, n - 1):")
    assert lines[start + 3 : start + 5] == ["y[i] = x[before_1]", "y[i] = y[i] + x[behind_1]"]
    for length in (1, 2, 3, 40):
        x = np.arange(length, dtype=np.float32)
        np.testing.assert_array_equal(named(x), named.interpret(x))


def test_nothing_is_left_of_an_end_where_nothing_is_done() -> None:
    PASS.expect(
        """
        for i in range(n):
            if i > 2:
                y[i, 0] = x[i - 3, 0]
        """,
        """
        for i in range(3, n):
            y[i, 0] = x[i - 3, 0]
        """,
    )


def test_what_short_loops_inside_add_counts() -> None:
    PASS.expect(
        """
        for i in range(n):
            for j in range(m):
                y[i, j] = 0
                for k in range(3):
                    at = j + 2 * k - 2
                    y[i, j] += x[i, min(max(at, 0), m - 1)]
        """,
        """
        for i in range(n):
            for j in range(min(2, m)):
                y[i, j] = tl.f32(0.0)
                for k in range(3):
                    at = j + 2 * k - 2
                    y[i, j] = y[i, j] + x[i, min(max(at, 0), m - 1)]
            for j in range(2, m - 2):
                y[i, j] = tl.f32(0.0)
                for k in range(3):
                    at = j + 2 * k - 2
                    y[i, j] = y[i, j] + x[i, at]
            for j in range(max(2, m - 2), m):
                y[i, j] = tl.f32(0.0)
                for k in range(3):
                    at = j + 2 * k - 2
                    y[i, j] = y[i, j] + x[i, min(at, m - 1)]
        """,
    )


def test_indices_that_go_around() -> None:
    PASS.expect(
        """
        for i in range(n):
            for j in range(m):
                y[i, j] = x[i, (j + 1) % m] - x[i, (j - 1 + m) % m]
        """,
        """
        for i in range(n):
            y[i, 0] = x[i, 1 % m] - x[i, m - 1]
            for j in range(1, m - 1):
                y[i, j] = x[i, j + 1] - x[i, j - 1]
            for j in range(max(1, m - 1), m):
                y[i, j] = x[i, (j + 1) % m] - x[i, j - 1]
        """,
    )


def test_windows_that_go_around_both_ends() -> None:
    PASS.expect(
        """
        for i in range(n):
            for j in range(m):
                for b in range(3):
                    y[i, j] += x[i, (j + b - 1 + m) % m]
        """,
        """
        for i in range(n):
            for b in range(3):
                y[i, 0] = y[i, 0] + x[i, (b - 1) % m]
            for j in range(1, m - 1):
                for b in range(3):
                    y[i, j] = y[i, j] + x[i, j + b - 1]
            for j in range(max(1, m - 1), m):
                for b in range(3):
                    y[i, j] = y[i, j] + x[i, (j + b - 1) % m]
        """,
    )


@pytest.mark.parametrize(
    "loop",
    [
        "for j in range(m):\n    y[0, j] = x[0, max(j, n // 2)]",  # far from both ends
        "for j in range(m):\n    y[0, j] = x[0, max(j, 0)]",  # true of all
        "for j in range(m):\n    y[0, j] = x[0, j % 4 * (m // 4)]",  # all along
        "for j in range(16):\n    y[0, j] = x[0, max(j - 1, 0)]",  # short
        'for j in range(m):\n    assert j < m - 1, "too far"\n    y[0, j] = x[0, max(j - 1, 0)]',
        "for j in range(1, m):\n    y[0, j] = y[0, max(j - 2, 0)]",  # in order
        "for j in range(m):\n    for k in range(j):\n        y[j, k] = x[max(j - 1, 0), k]",
    ],
)
def test_other_loops_stay(loop: str) -> None:
    PASS.expect_unchanged(loop)


@tl.kernel
def windows(x: tl.u8[n, m], side: tl.i64, y: tl.out[tl.u8[n, m]], z: tl.out[tl.i32[m]]):
    for i in range(n):
        for j in range(m):
            least = tl.u8(255)
            for a in range(3):
                for b in range(5):
                    least = min(least, x[min(max(i + a - 1, 0), n - 1), min(max(j + b - 2, 0), m - 1)])
            y[i, j] = least
    for j in range(m):
        z[j] = tl.i32(x[0, j - 1]) if j > 0 else -1
        if j + 3 < m and not j < 2:
            z[j] += tl.i32(max(j, side))


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5, 7, 66, 131])
def test_all_widths_do_what_is_written(columns: int) -> None:
    """With forbidden pages behind the arrays; a number that is given may be anything, and cuts nothing."""
    assert "n - 1), tl.ramp(j - 2, 1, 64)]" in str(windows.lowered)
    x = np.random.default_rng(columns).integers(0, 256, (3, columns)).astype(np.uint8)
    for side in (-(2**63), 0, 2**63 - 1):
        results = []
        for run in (windows, windows.interpret, tl.compile(windows.lowered).interpret):
            y, z = np.zeros_like(x), np.zeros(columns, np.int32)
            y, z = guarded(y, at_end=True), guarded(z, at_end=True)
            run(guarded(x, at_end=True), side, y, z)
            results.append((y, z))
        for ours, *others in zip(*results, strict=True):
            for other in others:
                np.testing.assert_array_equal(ours, other)


@tl.kernel(allow="reassociate")
def padded(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
    for i in range(n):
        for j in range(m):
            total = tl.f32(0)
            for p in range(3):
                for q in range(5):
                    if 0 <= i + p - 1 < n and 0 <= j + q - 2 < m:
                        total += x[i + p - 1, j + q - 2]
            y[i, j] = total


PADDED_AS_WRITTEN = tl.compile(padded, schedule=None)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 3), (3, 5), (1, 66), (3, 131)])
def test_few_terms_that_are_left_out_at_edges_go_by_vectors_between_them(rows: int, columns: int) -> None:
    """What is at an edge goes one by one, as it fills no vector."""
    lines = str(padded.lowered).splitlines()
    assert any("x[i + p - 1, tl.ramp(j + q - 2, 1, " in line for line in lines)
    assert sum("for j in range(max(2, m - 2), m):" in line for line in lines) == 1
    x = np.random.default_rng(columns).integers(0, 9, (rows, columns)).astype(np.float32)
    wide = np.pad(x, ((1, 1), (2, 2)))
    sums = np.lib.stride_tricks.sliding_window_view(wide, (3, 5)).sum((2, 3))
    for run in (padded, padded.interpret, PADDED_AS_WRITTEN):
        np.testing.assert_array_equal(run(x), sums)


def test_the_first_loop_of_a_chain_in_tiles_has_a_middle_without_edges() -> None:
    """It writes a temporary and reads none whose place that could take. The middle begins at `max(tile, 2)`."""
    func = tl.parse("""
n = tl.dim("n")

@tl.kernel
def f(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for tile in range(0, n, 4096):
        t = tl.alloc(tl.f32[4096])
        for i in range(tile, min(tile + 4096, n)):
            t[i - tile] = x[max(i - 2, 0)] + x[min(i + 2, n - 1)]
        for i in range(tile, min(tile + 4096, n)):
            y[i] = t[i - tile] * t[i - tile]
""")
    assert "t[i - tile] = x[i - 2] + x[i + 2]" in str(PartitionLoops()(Normalize()(func)))


def test_what_takes_the_place_of_a_temporary_goes_on_to_do_so() -> None:
    """A loop that writes one and reads another stays whole, so that the planner sees what is done in place."""

    @tl.kernel
    def smoothed(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        once = tl.alloc(tl.f32[n])
        twice = tl.alloc(tl.f32[n])
        for i in range(n):
            once[i] = x[i] * x[max(i - 1, 0)]
        for i in range(n):
            twice[i] = once[i] + x[min(i + 1, n - 1)]
        for i in range(n):
            y[i] = twice[i] - twice[n - 1 - i]

    assert smoothed.plan.total == 4 * n


def test_edges_of_tiles_go_apart_where_one_temporary_is_made_of_another() -> None:
    @tl.kernel
    def blurred(x: tl.u8[n, m], y: tl.out[tl.u8[n, m]]):
        wide = tl.alloc(tl.u16[n, m])
        rows = tl.alloc(tl.u16[n, m])
        for i in range(n):
            for j in range(m):
                wide[i, j] = x[i, j]
        for i in range(n):
            for j in range(m):
                rows[i, j] = wide[i, max(j - 1, 0)] + wide[i, j] + wide[i, min(j + 1, m - 1)]
        for i in range(n):
            for j in range(m):
                y[i, j] = (rows[max(i - 1, 0), j] + rows[i, j] + rows[min(i + 1, n - 1), j]) // 9

    compiled = tl.compile(blurred, target=tl.Target("x86-64-v4"))
    assert str(compiled.lowered).count("for rows_j in range(") == 3
    kernel, plain = tl.compile(blurred), tl.compile(blurred, schedule=None)
    for shape in ((1, 1), (1, 7), (5, 1), (40, 70), (3, 9000)):
        x = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
        np.testing.assert_array_equal(kernel(x), plain(x))
