"""Compacting, before and after: a buffer shrinks to what is touched under its allocation."""

import pytest
from rewrite.before_after import BeforeAfter, ByFacts

from tirlite.analysis.allocations import temporaries
from tirlite.schedules.shrink import compacted, sunk

COMPACT = ByFacts(lambda facts: compacted(temporaries(facts), facts).apply(facts.func))
PASS = BeforeAfter((COMPACT,))
BOTH = BeforeAfter((ByFacts(lambda facts: sunk(temporaries(facts), facts)), COMPACT))


def test_an_image_of_which_an_iteration_sees_a_row_becomes_a_row() -> None:
    BOTH.expect(
        """
        t = tl.alloc(tl.f32[n, m])
        for i in range(n):
            for j in range(m):
                t[i, j] = x[i, j]
            for j in range(m):
                y[i, j] = t[i, m - 1 - j]
        """,
        """
        for i in range(n):
            t = tl.alloc(tl.f32[1, m])
            for j in range(m):
                t[0, j] = x[i, j]
            for j in range(m):
                y[i, j] = t[0, m - 1 - j]
        """,
    )


def test_an_image_of_which_an_iteration_sees_a_tile_becomes_a_tile() -> None:
    BOTH.expect(
        """
        t = tl.alloc(tl.f32[4 * n, 4 * n])
        for i in range(n):
            for j in range(n):
                for k in range(4):
                    for l in range(4):
                        t[4 * i + k, 4 * j + l] = 1.0
                for k in range(4):
                    y[i, 0] += t[4 * i + k, 4 * j + k]
        """,
        """
        for i in range(n):
            for j in range(n):
                t = tl.alloc(tl.f32[4, 4])
                for k in range(4):
                    for l in range(4):
                        t[k, l] = 1.0
                for k in range(4):
                    y[i, 0] += t[k, k]
        """,
    )


def test_the_last_tile_may_be_smaller() -> None:
    BOTH.expect(
        """
        t = tl.alloc(tl.f32[n])
        for i in range((n + 3) // 4):
            for k in range(min(4, n - 4 * i)):
                t[4 * i + k] = x[4 * i + k, 0]
            for k in range(min(4, n - 4 * i)):
                y[4 * i + k, 0] = t[4 * i + k]
        """,
        """
        for i in range((n + 3) // 4):
            t = tl.alloc(tl.f32[min(3, n - 1) + 1])
            for k in range(min(4, n - 4 * i)):
                t[k] = x[4 * i + k, 0]
            for k in range(min(4, n - 4 * i)):
                y[4 * i + k, 0] = t[k]
        """,
    )


def test_half_of_what_may_be_nothing() -> None:
    PASS.expect(
        """
        t = tl.alloc(tl.f32[n])
        for i in range(n // 2):
            t[i] = x[i, 0]
            y[i, 0] = t[i]
        """,
        """
        t = tl.alloc(tl.f32[n // 2])
        for i in range(n // 2):
            t[i] = x[i, 0]
            y[i, 0] = t[i]
        """,
    )


def test_the_least_index_becomes_0() -> None:
    PASS.expect(
        """
        t = tl.alloc(tl.f32[100])
        for i in range(4):
            t[90 + 2 * i] = tl.f32(i)
        for i in range(n):
            y[i, 0] = t[90]
        """,
        """
        t = tl.alloc(tl.f32[7])
        for i in range(4):
            t[2 * i] = tl.f32(i)
        for i in range(n):
            y[i, 0] = t[0]
        """,
    )


def test_rows_that_move_with_an_outer_loop_keep_their_distances() -> None:
    PASS.expect(
        """
        for i in range(1, n):
            t = tl.alloc(tl.f32[n, m])
            t[i - 1, 0] = x[i, 0]
            t[i, 0] = 1
            y[i, 0] = t[i - 1, 0] + t[i, 0]
        """,
        """
        for i in range(1, n):
            t = tl.alloc(tl.f32[2, 1])
            t[0, 0] = x[i, 0]
            t[1, 0] = 1
            y[i, 0] = t[0, 0] + t[1, 0]
        """,
    )


@pytest.mark.parametrize(
    "body",
    [
        # less by a constant alone
        """
        t = tl.alloc(tl.f32[m])
        for j in range(m - 2):
            t[j] = 1.0
        """,
        # an index that nothing bounds
        """
        t = tl.alloc(tl.f32[1000])
        for i in range(1000):
            t[i] = 1.0
        for i in range(n):
            y[i, 0] = t[tl.i64(min(max(x[i, 0], 0), 9))]
        """,
        # an index, and an extent, that their type bounds alone
        """
        t = tl.alloc(tl.f32[n])
        for i in range(n):
            t[i] = 1.0
        for i in range(n):
            y[i, 0] = t[tl.i64(tl.i32(x[i, 0]))]
        """,
        """
        for i in range(n):
            t = tl.alloc(tl.f32[tl.i64(tl.i32(x[i, 0]))])
            for j in range(tl.i64(tl.i32(x[i, 0]))):
                t[j] = 1.0
        """,
        # a row that moves, and one that stands still
        """
        for i in range(n):
            t = tl.alloc(tl.f32[n])
            t[0] = x[i, 0]
            t[i] = x[i, 0]
            y[i, 0] = t[0] + t[i]
        """,
        # rows that move against each other
        """
        for i in range(n):
            t = tl.alloc(tl.f32[n])
            t[i] = x[i, 0]
            t[n - 1 - i] = x[i, 0]
            y[i, 0] = t[i]
        """,
    ],
)
def test_what_is_not_known_to_be_less_stays(body: str) -> None:
    PASS.expect_unchanged(body)
