"""StoreAt, where the rule asks for it, before and after: the lines that a loop sees at a time are used in turn."""

import pytest
from rewrite.before_after import BeforeAfter, ByFacts

import tirlite as tl
from tirlite.analysis.facts import Facts
from tirlite.schedules.auto.temporaries import keep_lines
from tirlite.schedules.auto.trace import Trace


def kept(facts: Facts) -> tl.PrimFunc:
    trace = Trace(facts)
    keep_lines(trace)
    return trace.facts.func


PASS = BeforeAfter((ByFacts(kept),))


def test_three_rows_in_turn() -> None:
    PASS.expect(
        """
        t = tl.alloc(tl.f32[n, m])
        for i in range(n):
            for j in range(m):
                t[i, j] = 2 * x[i, j]
            if i >= 2:
                for j in range(m):
                    y[i - 1, j] = t[i - 2, j] + t[i - 1, j] + t[i, j]
        """,
        """
        t = tl.alloc(tl.f32[3, m])
        for i in range(n):
            for j in range(m):
                t[i % 3, j] = 2 * x[i, j]
            if i >= 2:
                for j in range(m):
                    y[i - 1, j] = t[(i - 2) % 3, j] + t[(i - 1) % 3, j] + t[i % 3, j]
        """,
    )


def test_rows_that_stop_at_the_edge() -> None:
    PASS.expect(
        """
        t = tl.alloc(tl.f32[n])
        for i in range(n):
            t[i] = x[i, 0]
            y[i, 0] = t[max(i - 1, 0)] + t[i]
        """,
        """
        t = tl.alloc(tl.f32[2])
        for i in range(n):
            t[i % 2] = x[i, 0]
            y[i, 0] = t[max(i - 1, 0) % 2] + t[i % 2]
        """,
    )


def test_lines_that_go_on_by_two() -> None:
    PASS.expect(
        """
        t = tl.alloc(tl.f32[2 * n])
        for i in range(n):
            t[2 * i] = x[i, 0]
            t[2 * i + 1] = 2 * x[i, 0]
            y[i, 0] = t[max(2 * i - 1, 0)] + t[2 * i + 1]
        """,
        """
        t = tl.alloc(tl.f32[3])
        for i in range(n):
            t[2 * i % 3] = x[i, 0]
            t[(2 * i + 1) % 3] = 2 * x[i, 0]
            y[i, 0] = t[max(2 * i - 1, 0) % 3] + t[(2 * i + 1) % 3]
        """,
    )


def test_a_window_of_any_size_is_none() -> None:
    PASS.expect_unchanged(
        """
        t = tl.alloc(tl.f32[n + 1])
        for i in range(n):
            t[i] = x[i, 0]
            y[i, 0] = t[min(tl.i64(x[i, 0]), i)]
        """
    )


@pytest.mark.parametrize(
    "body",
    [
        # a line that stands still
        """
        for i in range(n):
            t[i] = x[i, 0]
            y[i, 0] = t[0] + t[i]
        """,
        # lines at twice the pace
        """
        for i in range(n):
            t[i] = x[i, 0]
            y[i, 0] = t[i] + t[i // 2]
        """,
        # read by a second loop
        """
        for i in range(n):
            t[i] = x[i, 0]
        for i in range(n):
            y[i, 0] = t[i]
        """,
        # read again in each iteration of a loop around
        """
        for k in range(2):
            for i in range(n):
                if k == 0:
                    t[i] = x[i, 0]
                y[i, 0] = t[i]
        """,
        # iterations without order
        """
        for i in tl.parallel(n):
            t[i] = x[i, 0]
            y[i, 0] = t[i]
        """,
        # a loop that goes down
        """
        for i in range(n - 1, -1, -1):
            t[i] = x[i, 0]
            y[i, 0] = t[i]
        """,
    ],
)
def test_what_is_seen_again_stays(body: str) -> None:
    PASS.expect_unchanged("t = tl.alloc(tl.f32[n])\n" + body.replace("\n        ", "\n"))
