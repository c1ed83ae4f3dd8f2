"""UnrollLoops, before and after: iterations are written out."""

from rewrite.before_after import BeforeAfter

from tirlite.rewrite import UnrollLoops

PASS = BeforeAfter((UnrollLoops(),))


def test_each_iteration_has_a_copy_with_names_of_its_own() -> None:
    PASS.expect(
        """
        for i in range(n):
            for k in tl.unroll(2):
                t = tl.alloc(tl.f32[1])
                t[0] = x[i, 0]
                for j in range(m):
                    twice = t[0] * 2
                    y[i, j] = twice + tl.f32(k)
        """,
        """
        for i in range(n):
            t = tl.alloc(tl.f32[1])
            t[0] = x[i, 0]
            for j in range(m):
                twice = t[0] * 2
                y[i, j] = twice + tl.f32(tl.i64(0))
            t_1 = tl.alloc(tl.f32[1])
            t_1[0] = x[i, 0]
            for j_1 in range(m):
                twice_1 = t_1[0] * 2
                y[i, j_1] = twice_1 + tl.f32(tl.i64(1))
        """,
    )


def test_loops_inside_of_each_other_are_written_out_with_their_steps() -> None:
    PASS.expect(
        """
        for i in range(n):
            for k in tl.unroll(5, 0, -3):
                for l in tl.unroll(k, k + 1):
                    y[i, 0] = y[i, 0] + tl.f32(k)
        """,
        """
        for i in range(n):
            y[i, 0] = y[i, 0] + tl.f32(tl.i64(5))
            y[i, 0] = y[i, 0] + tl.f32(tl.i64(2))
        """,
    )


def test_an_empty_loop_goes() -> None:
    PASS.expect(
        """
        for i in range(n):
            y[i, 0] = 1
            for k in tl.unroll(3, 3):
                y[i, 0] = 2
        """,
        """
        for i in range(n):
            y[i, 0] = 1
        """,
    )


def test_long_loops_symbolic_ones_and_those_of_other_kinds_stay() -> None:
    PASS.expect_unchanged(
        """
        for i in range(n):
            for k in tl.unroll(1000):
                y[i, 0] = tl.f32(k)
            for j in tl.unroll(m):
                y[i, j] = 1
            for k in range(2):
                y[i, 0] = y[i, 0] + tl.f32(k)
        """
    )


def test_loops_in_copies_of_copies_are_told_apart_before_anything_is_proved_of_them() -> None:
    PASS.expect(
        """
        for i in range(n):
            for k in tl.unroll(2):
                for l in tl.unroll(2):
                    half = l * (k + 1)
                    for j in range(half):
                        y[i, 0] = y[i, 0] + tl.f32(j)
        """,
        """
        for i in range(n):
            half = tl.i64(0)
            half_1 = tl.i64(1)
            y[i, 0] = y[i, 0] + tl.f32(tl.i64(0))
            half_2 = tl.i64(0)
            half_3 = tl.i64(2)
            for j in range(half_3):
                y[i, 0] = y[i, 0] + tl.f32(j)
        """,
    )
