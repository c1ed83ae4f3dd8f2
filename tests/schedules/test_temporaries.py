"""`schedule="compact"`, before and after: loops that fill temporaries and loops that read them become one."""

from every import every
from rewrite.before_after import BeforeAfter, ByFacts, kernel

import tirlite as tl
from tirlite.analysis.facts import Facts
from tirlite.ir import For, statements
from tirlite.schedules.auto import ScheduleTemporaries
from tirlite.schedules.auto.temporaries import join_loops
from tirlite.schedules.auto.trace import Trace


def joined(facts: Facts) -> tl.PrimFunc:
    trace = Trace(facts)
    join_loops(trace)
    return trace.facts.func


PASS = BeforeAfter((ByFacts(joined),))
ALL = BeforeAfter((ScheduleTemporaries(),))


def test_a_chain_becomes_one_loop_without_memory() -> None:
    ALL.expect(
        """
        a = tl.alloc(tl.f32[n, m])
        b = tl.alloc(tl.f32[n, m])
        for i in tl.parallel(n):
            for j in range(m):
                a[i, j] = 2 * x[i, j]
        for k in tl.parallel(n):
            for l in range(m):
                b[k, l] = a[k, l] + 1
        for i in tl.parallel(n):
            for j in range(m):
                y[i, j] = a[i, j] * b[i, j]
        """,
        """
        for i in tl.parallel(n):
            for j in range(m):
                a = 2 * x[i, j]
                b = a + 1
                y[i, j] = a * b
        """,
    )


def test_a_serial_loop_runs_behind_the_rows_that_it_needs() -> None:
    ALL.expect(
        """
        t = tl.alloc(tl.f32[n, m])
        for i in range(n):
            for j in range(m):
                t[i, j] = 2 * x[i, j]
        for i in range(1, n - 1):
            for j in range(m):
                y[i, j] = t[i - 1, j] + t[i, j] + t[i + 1, j]
        """,
        """
        t = tl.alloc(tl.f32[3, m])
        for i in range(n):
            for j in range(m):
                t[i % 3, j] = 2 * x[i, j]
            if 2 <= i:
                for j in range(m):
                    y[i - 1, j] = t[(i - 2) % 3, j] + t[(i - 1) % 3, j] + t[i % 3, j]
        """,
    )


def test_rows_that_are_clamped_at_the_ends() -> None:
    ALL.expect(
        """
        t = tl.alloc(tl.f32[n, m])
        for i in range(n):
            for j in range(m):
                t[i, j] = 2 * x[i, j]
        for i in range(n):
            for j in range(m):
                y[i, j] = t[min(max(i - 1, 0), n - 1), j] + t[min(i + 1, n - 1), j]
        """,
        """
        t = tl.alloc(tl.f32[3, m])
        for i in range(n + 1):
            if i < n:
                for j in range(m):
                    t[i % 3, j] = 2 * x[i, j]
            if 1 <= i:
                for j in range(m):
                    y[i - 1, j] = t[min(max(i - 2, 0), n - 1) % 3, j] + t[min(i, n - 1) % 3, j]
        """,
    )


def test_loops_inside_of_what_runs_behind_are_fused_too() -> None:
    ALL.expect(
        """
        t = tl.alloc(tl.f32[n, m])
        u = tl.alloc(tl.f32[n, m])
        for i in range(n):
            for j in range(m):
                t[i, j] = 2 * x[i, j]
        for i in range(n - 1):
            for j in range(m):
                u[i, j] = t[i, j] + t[i + 1, j]
        for i in range(n - 1):
            for j in range(m):
                y[i, j] = u[i, j] * u[i, j]
        """,
        """
        t = tl.alloc(tl.f32[2, m])
        for i in range(n):
            for j in range(m):
                t[i % 2, j] = 2 * x[i, j]
            if 1 <= i:
                for j in range(m):
                    u = t[(i - 1) % 2, j] + t[i % 2, j]
                    y[i - 1, j] = u * u
        """,
    )


def test_loops_that_feed_one_after_them_are_fused() -> None:
    ALL.expect(
        """
        a = tl.alloc(tl.f32[n])
        b = tl.alloc(tl.f32[n])
        for i in range(n):
            a[i] = 2 * x[i, 0]
        for i in range(n):
            b[i] = x[i, 0] + 1
        for i in range(n):
            y[i, 0] = a[i] * b[i]
        """,
        """
        for i in range(n):
            a = 2 * x[i, 0]
            b = x[i, 0] + 1
            y[i, 0] = a * b
        """,
    )


def test_what_each_iteration_fills_anew_is_folded_though_it_was_allocated_outside() -> None:
    ALL.expect(
        """
        back = tl.alloc(tl.f32[m])
        for i in range(n):
            for j in range(m):
                back[j] = x[i, m - 1 - j]
            for j in range(m):
                y[i, j] = back[max(j - 1, 0)] + back[j]
        """,
        """
        for i in range(n):
            back = tl.alloc(tl.f32[2])
            for j in range(m):
                back[j % 2] = x[i, m - 1 - j]
                y[i, j] = back[max(j - 1, 0) % 2] + back[j % 2]
        """,
    )


def test_allocations_and_lets_in_between_go_before() -> None:
    PASS.expect(
        """
        a = tl.alloc(tl.f32[n])
        for i in range(n):
            a[i] = 2 * x[i, 0]
        half = n // 2
        b = tl.alloc(tl.f32[n + 1])
        for i in range(n):
            b[i - half + half] = a[i]
        """,
        """
        a = tl.alloc(tl.f32[n])
        half = n // 2
        b = tl.alloc(tl.f32[n + 1])
        for i in range(n):
            a[i] = 2 * x[i, 0]
            b[i - half + half] = a[i]
        """,
    )


FIRST = """
t = tl.alloc(tl.f32[n + 1, m])
for i in range(n):
    for j in range(m):
        t[i, j] = x[i, j]
"""


@every(
    "second",
    [
        # reads what is written farther ahead than any shift
        "for i in range(n):\n    for j in range(m):\n        y[i, j] = t[n - 1 - i, j]",
        "for i in range(n):\n    for j in range(m):\n        y[i, j] = t[(i * i) % n, j]",
        "for i in range(n - 5):\n    for j in range(m):\n        y[i, j] = t[i + 5, j]",
        "for i in range(n):\n    for j in range(m):\n        y[i, j] = t[min(i + 5, n - 1), j]",
        "for i in range(n):\n    for j in range(m):\n        y[i, j] = t[max(i - 1, n - 1), j]",
        # another kind, another step, another direction
        "for i in tl.parallel(n):\n    for j in range(m):\n        y[i, j] = t[i, j]",
        "for i in range(0, n, 2):\n    for j in range(m):\n        y[i, j] = t[i, j]",
        "for i in range(n - 1, -1, -1):\n    for j in range(m):\n        y[i, j] = t[i, j]",
        # overwrites what the first has yet to read
        "for i in range(n):\n    for j in range(m):\n        x[n - 1 - i, j] = t[i, j]",
        # may stop the kernel before the first is done
        "for i in range(n):\n    for j in range(m):\n        assert t[i, j] == x[i, j]",
        # has nothing to do with the temporary
        "for i in range(n):\n    for j in range(m):\n        y[i, j] = 2 * x[i, j]",
        # sees what the first leaves behind at its end
        "for i in range(n):\n    for j in range(m):\n        y[i, j] = t[0, 0] + t[n - 1, 0]",
        # a statement that reads stands in between
        "y_0 = t[n - 1, 0]\nfor i in range(n):\n    y[i, 0] = t[i, 0] + y_0",
        # a size that the first loop computes
        "for i in range(n):\n    for j in range(m):\n        v = tl.view(x, tl.f32[1, tl.i64(t[n - 1, 0])])\n"
        "        y[i, j] = t[i, j] + v[0, 0]",
        # a bound that the first loop computes
        "for i in range(tl.i64(tl.u8(t[0, 0]))):\n    for j in range(m):\n        y[0, j] = t[0, j]",
    ],
)
def test_what_would_change_the_order_stays(second: str) -> None:
    before = kernel(FIRST + second)
    after = joined(Facts(before))
    outer = [stmt for stmt in after.body.stmts if isinstance(stmt, For)]
    assert len(outer) == 2


def test_a_longer_loop_has_a_variable_with_another_range() -> None:
    # Beside the second outer loop alone, j goes up to 7: what holds up to 3 is no reason to fuse the loops inside.
    PASS.rewritten(
        kernel(
            """
            t = tl.alloc(tl.f32[16])
            u = tl.alloc(tl.f32[16])
            for i in range(16):
                t[i] = tl.f32(i)
                u[i] = 0
            for i in range(4):
                for j in range(1):
                    t[i] = t[i] + 1
            for i in range(8):
                for j in range(i):
                    u[j] = t[i] * 2
                for j in range(3):
                    t[i] = u[j] + t[i]
            for i in range(min(n, 8)):
                y[i, 0] = t[i] + u[i]
            """
        )
    )


def test_a_range_that_holds_for_the_first_loop_alone_drops_no_condition() -> None:
    # i goes up to 3 in the first loop, and up to 7 in both. Below 4, the loops inside would both end by 3.
    PASS.rewritten(
        kernel(
            """
            s = tl.alloc(tl.f32[4])
            t = tl.alloc(tl.f32[8, 2])
            u = tl.alloc(tl.f32[8, 2])
            for i in range(4):
                for j in range(2):
                    s[i] = tl.f32(i)
            for i in range(8):
                for j in range(i):
                    for k in range(2):
                        t[j, k] = tl.f32(i + j)
                for j in range(3):
                    for k in range(2):
                        u[j, k] = s[0] if i <= j else t[j, k]
            for i in range(min(n, 7)):
                y[i, 0] = t[i, 0]
            """
        )
    )


def test_a_view_that_was_declared_anew_is_not_taken_for_another_buffer() -> None:
    PASS.rewritten(
        kernel(
            """
            t = tl.alloc(tl.f32[16])
            for i in range(8):
                for j in range(1):
                    t[i] = tl.f32(i)
                    t[i + 8] = 1
            for k in range(8):
                front = tl.view(t, tl.f32[k + 1])
                for j in range(k + 1):
                    t[j] = t[j] * 2
                for j in range(k + 1):
                    t[j + 8] = front[k - j]
            for i in range(min(n, 8)):
                y[i, 0] = t[i] + t[i + 8]
            """
        )
    )


def test_rows_from_other_iterations_of_a_parallel_loop_keep_two_loops() -> None:
    PASS.expect_unchanged(
        """
        t = tl.alloc(tl.f32[n])
        for i in tl.parallel(n):
            t[i] = x[i, 0]
        for i in tl.parallel(1, n):
            y[i, 0] = t[i - 1]
        """
    )


def test_a_sum_does_not_hold_up_what_can_be_vectorized() -> None:
    PASS.expect_unchanged(
        """
        total = tl.alloc(tl.f32[1])
        t = tl.alloc(tl.f32[m])
        total[0] = 0
        for j in range(m):
            t[j] = tl.exp(tl.f32(j))
        for j in range(m):
            total[0] += t[j]
        """
    )


def test_long_rows_of_loops_end() -> None:
    loops = "t = tl.alloc(tl.f32[n])\n" + "for i in range(n):\n    t[i] = t[i] + x[i, 0]\n" * 150
    after = joined(Facts(kernel(loops)))
    assert 1 <= sum(isinstance(stmt, For) for stmt in statements(after.body)) < 150
