"""The passes of CONTRACTION together: what one prepares another one uses."""

from rewrite.before_after import BeforeAfter

from tirlite.rewrite import CONTRACTION

PASS = BeforeAfter(CONTRACTION)


def test_what_each_iteration_fills_anew_is_folded_though_it_was_allocated_outside() -> None:
    PASS.expect(
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
