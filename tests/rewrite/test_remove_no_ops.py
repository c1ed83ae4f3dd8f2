"""RemoveNoOps, before and after: what nobody sees the effect of goes."""

from rewrite.before_after import BeforeAfter

import tirlite as tl
from tirlite.rewrite import RemoveNoOps

PASS = BeforeAfter((RemoveNoOps(),))


def test_a_temporary_that_nothing_reads_goes_with_its_loop() -> None:
    PASS.expect(
        """
        t = tl.alloc(tl.f32[n, m])
        for i in range(n):
            for j in range(m):
                t[i, j] = x[i, j]
        for i in range(n):
            y[i, 0] = x[i, 0]
        """,
        """
        for i in range(n):
            y[i, 0] = x[i, 0]
        """,
    )


def test_what_only_fed_it_goes_too() -> None:
    PASS.expect(
        """
        a = tl.alloc(tl.f32[n])
        b = tl.alloc(tl.f32[n])
        flat = tl.view(b, tl.f32[n])
        for i in range(n):
            if i > 2:
                twice = 2 * x[i, 0]
                a[i] = twice
        for i in range(n):
            flat[i] = a[i]
        """,
        "pass",
    )


def test_a_sum_that_nobody_asks_for_goes_with_the_bounds_of_its_loop() -> None:
    PASS.expect(
        """
        total = tl.alloc(tl.f32[1])
        total[0] = 0
        if m > 1:
            last = n * 2
            for i in range(last // 2):
                total[0] += x[i, 0]
        """,
        "pass",
    )


def test_chains_of_any_length_go_in_one_walk() -> None:
    b = tl.ir.Builder("f")
    x, y = b.param("x", tl.f32[1]), b.param("y", tl.f32[1])
    before, value = x, x[0]
    for number in range(3000):
        value = b.let(f"v{number}", value + 1)
        made = b.alloc(f"t{number}", tl.f32[4])
        b.store(made, 0, before[0] + 1)
        before = made
    b.store(y, 0, x[0])
    after = RemoveNoOps()(b.build())
    assert len(after.body.stmts) == 1


def test_a_store_beside_one_that_is_read_goes_alone() -> None:
    PASS.expect(
        """
        t = tl.alloc(tl.f32[n])
        for i in range(n):
            t[i] = x[i, 0]
            y[i, 0] = 2 * x[i, 0]
        """,
        """
        for i in range(n):
            y[i, 0] = 2 * x[i, 0]
        """,
    )


def test_what_is_read_through_a_view_or_written_for_the_caller_stays() -> None:
    PASS.expect_unchanged(
        """
        t = tl.alloc(tl.f32[n, m])
        flat = tl.view(t, tl.f32[n * m])
        for i in range(n):
            t[i, 0] = x[i, 0]
        for i in range(n):
            y[i, 0] = flat[i * m]
        """
    )


def test_a_while_stays_and_so_does_what_it_counts() -> None:
    PASS.expect_unchanged(
        """
        count = tl.alloc(tl.i32[1])
        count[0] = 0
        while count[0] < 3:
            count[0] += 1
        """
    )


def test_foreign_code_is_called() -> None:
    PASS.expect_unchanged(
        """
        t = tl.alloc(tl.f32[1])
        t[0] = tl.call_extern("f32", "sinf", tl.f32(1))
        """
    )
