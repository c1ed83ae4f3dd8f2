"""Shrink, before and after: temporaries of one element become scalars."""

from rewrite.before_after import BeforeAfter, ByFacts

from tirlite.analysis.allocations import temporaries
from tirlite.schedules.shrink import contracted

PASS = BeforeAfter((ByFacts(lambda facts: contracted(temporaries(facts), facts)),))


def test_a_value_stored_once_becomes_a_let() -> None:
    PASS.expect(
        """
        for i in range(n):
            t = tl.alloc(tl.f32[1, 1])
            t[0, 0] = 2 * x[i, 0]
            for j in range(m):
                y[i, j] = t[0, 0] * t[0, 0]
        """,
        """
        for i in range(n):
            t = 2 * x[i, 0]
            for j in range(m):
                y[i, j] = t * t
        """,
    )


def test_a_sum_becomes_a_register() -> None:
    PASS.expect(
        """
        for i in range(n):
            total = tl.alloc(tl.f32[1])
            total[0] = 0
            for j in range(m):
                total[0] += x[i, j]
            y[i, 0] = total[0]
        """,
        """
        for i in range(n):
            total = tl.alloc(tl.f32[1], scope="local")
            total[0] = 0
            for j in range(m):
                total[0] += x[i, j]
            y[i, 0] = total[0]
        """,
    )


def test_a_store_in_a_branch_is_no_let() -> None:
    PASS.expect(
        """
        for i in range(n):
            t = tl.alloc(tl.f32[1])
            if i < 1:
                t[0] = 1
            if i < 1:
                y[i, 0] = t[0]
        """,
        """
        for i in range(n):
            t = tl.alloc(tl.f32[1], scope="local")
            if i < 1:
                t[0] = 1
            if i < 1:
                y[i, 0] = t[0]
        """,
    )


def test_what_is_read_before_the_store_of_its_iteration_is_no_let() -> None:
    PASS.expect(
        """
        t = tl.alloc(tl.f32[1])
        for i in range(n):
            if i > 0:
                y[i, 0] = t[0]
            t[0] = x[i, 0]
        """,
        """
        t = tl.alloc(tl.f32[1], scope="local")
        for i in range(n):
            if i > 0:
                y[i, 0] = t[0]
            t[0] = x[i, 0]
        """,
    )


def test_buffers_of_several_elements_stay() -> None:
    PASS.expect_unchanged(
        """
        for i in range(n):
            t = tl.alloc(tl.f32[2])
            t[0] = x[i, 0]
            t[1] = x[i, 0]
            y[i, 0] = t[0] + t[1]
        """
    )
