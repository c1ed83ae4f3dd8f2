"""Sinking, before and after: an allocation moves into the innermost body that holds all of its uses."""

import pytest
from rewrite.before_after import BeforeAfter, ByFacts

from tirlite.analysis.allocations import temporaries
from tirlite.schedules.shrink import sunk

PASS = BeforeAfter((ByFacts(lambda facts: sunk(temporaries(facts), facts)),))


def test_a_buffer_of_one_iteration_is_allocated_in_it() -> None:
    PASS.expect(
        """
        t = tl.alloc(tl.f32[n, m])
        for i in range(n):
            for j in range(m):
                t[i, j] = 2 * x[i, j]
            for j in range(m):
                y[i, j] = t[i, m - 1 - j]
        """,
        """
        for i in range(n):
            t = tl.alloc(tl.f32[n, m])
            for j in range(m):
                t[i, j] = 2 * x[i, j]
            for j in range(m):
                y[i, j] = t[i, m - 1 - j]
        """,
    )


def test_a_buffer_that_each_iteration_overwrites_goes_inside() -> None:
    PASS.expect(
        """
        t = tl.alloc(tl.f32[m])
        for i in range(n):
            for j in range(m):
                t[j] = x[i, j]
            for j in range(m):
                y[i, j] = t[m - 1 - j]
        """,
        """
        for i in range(n):
            t = tl.alloc(tl.f32[m])
            for j in range(m):
                t[j] = x[i, j]
            for j in range(m):
                y[i, j] = t[m - 1 - j]
        """,
    )


def test_parallel_iterations_with_rows_of_their_own_get_a_buffer_each() -> None:
    PASS.expect(
        """
        t = tl.alloc(tl.f32[n, m])
        for i in tl.parallel(n):
            for j in range(m):
                t[i, j] = x[i, j]
                y[i, j] = 2 * t[i, j]
        """,
        """
        for i in tl.parallel(n):
            for j in range(m):
                t = tl.alloc(tl.f32[n, m])
                t[i, j] = x[i, j]
                y[i, j] = 2 * t[i, j]
        """,
    )


def test_the_branch_that_uses_a_buffer_gets_it() -> None:
    PASS.expect(
        """
        t = tl.alloc(tl.f32[1])
        for i in range(n):
            if i % 2 == 0:
                y[i, 0] = 1
            else:
                t[0] = x[i, 0]
                y[i, 0] = t[0] * t[0]
        """,
        """
        for i in range(n):
            if i % 2 == 0:
                y[i, 0] = 1
            else:
                t = tl.alloc(tl.f32[1])
                t[0] = x[i, 0]
                y[i, 0] = t[0] * t[0]
        """,
    )


@pytest.mark.parametrize(
    "uses",
    [
        # read in the next iteration
        """
        t[i, 0] = x[i, 0]
        if i > 0:
            y[i, 0] = t[i - 1, 0]
        """,
        # the row of an earlier iteration, by a remainder
        """
        t[i, 0] = x[i, 0]
        y[i, 0] = t[i // 2, 0]
        """,
        # written in the first iteration alone
        """
        if i == 0:
            t[0, 0] = x[0, 0]
        y[i, 0] = t[0, 0]
        """,
        # a sum over all iterations
        """
        if i == 0:
            t[0, 0] = 0
        t[0, 0] += x[i, 0]
        y[i, 0] = t[0, 0]
        """,
        # only half of it is overwritten before it is read
        """
        for j in range(0, m, 2):
            t[0, j] = x[i, j]
        if i > n:
            y[i, 0] = t[0, m - 1]
        """,
    ],
)
def test_what_a_later_iteration_reads_stays_outside(uses: str) -> None:
    loop = "t = tl.alloc(tl.f32[n, m])\nfor i in range(n):\n"
    PASS.expect_unchanged(loop + uses.replace("\n        ", "\n    "))


def test_what_a_second_loop_reads_stays_outside() -> None:
    PASS.expect_unchanged(
        """
        t = tl.alloc(tl.f32[n, m])
        for i in range(n):
            t[i, 0] = x[i, 0]
        for i in range(n):
            y[i, 0] = t[i, 0]
        """
    )


def test_a_value_that_a_while_carries_stays_outside() -> None:
    PASS.expect_unchanged(
        """
        count = tl.alloc(tl.i32[1])
        count[0] = 0
        while count[0] < 3:
            count[0] += 1
        """
    )


def test_a_buffer_whose_size_is_read_from_memory_stays() -> None:
    PASS.expect_unchanged(
        """
        size = tl.alloc(tl.i64[1])
        size[0] = n
        t = tl.alloc(tl.f32[size[0]])
        size[0] = 0
        for i in range(n):
            t[i] = x[i, 0]
            y[i, 0] = t[i]
        """
    )


def test_a_buffer_with_a_view_stays() -> None:
    PASS.expect_unchanged(
        """
        t = tl.alloc(tl.f32[n, m])
        flat = tl.view(t, tl.f32[n * m])
        for i in range(n):
            t[i, 0] = x[i, 0]
            y[i, 0] = flat[i * m]
        """
    )
