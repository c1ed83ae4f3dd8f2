"""CheckBounds, before and after: what is not proved to be in bounds is marked."""

from textwrap import dedent

from rewrite.before_after import BeforeAfter

import tirlite as tl
from tirlite.rewrite import CheckBounds

PASS = BeforeAfter((CheckBounds(),))


def test_what_a_loop_bounds_stays_as_it_is() -> None:
    PASS.expect_unchanged(
        """
        t = tl.alloc(tl.f32[n, m])
        for i in range(n):
            for j in range(m):
                t[i, j] = x[n - 1 - i, j]
        for i in range(1, n):
            for j in range(m):
                y[i, j] = t[i - 1, min(j + 1, m - 1)]
        """
    )


def test_a_test_around_an_access_does_not_count() -> None:
    PASS.expect(
        """
        for i in range(n):
            if i < m:
                y[i, i] = x[i, i - i // 2]
        """,
        """
        for i in range(n):
            if i < m:
                y[i, tl.checked(i)] = x[i, tl.checked(i - i // 2)]
        """,
    )


def test_callees_are_checked_too_and_marks_stay_single() -> None:
    source = """
    n = tl.dim("n")

    @tl.kernel
    def first(x: tl.f32[n], k: tl.i64, y: tl.f32[1]):
        y[0] = x[k]

    @tl.kernel
    def f(x: tl.f32[n], y: tl.f32[1]):
        tl.call(first, x, 0, y)
        tl.call(first, x, n - 1, y)
    """
    once = CheckBounds()(tl.parse(dedent(source)))
    assert str(once).count("x[tl.checked(k)]") == 1
    assert CheckBounds()(once) is once
