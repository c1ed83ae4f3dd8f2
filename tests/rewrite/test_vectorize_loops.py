"""VectorizeLoops, before and after: vectorized loops of constant length become statements on vectors."""

import pytest
from rewrite.before_after import BeforeAfter

from tirlite.rewrite import VectorizeLoops

PASS = BeforeAfter((VectorizeLoops(),))


def test_all_iterations_at_once() -> None:
    PASS.expect(
        """
        t = tl.alloc(tl.f32[16])
        for i in range(n):
            for k in tl.vectorized(4):
                t[k] = tl.f32(k)
            for k in tl.vectorized(4):
                twice = 2 * t[3 - k]
                t[4 + 2 * k] = max(twice, x[i, 0]) + tl.exp(t[k])
            y[i, 0] = t[10]
        """,
        """
        t = tl.alloc(tl.f32[16])
        for i in range(n):
            t[tl.ramp(0, 1, 4)] = tl.f32x4(tl.ramp(0, 1, 4))
            twice = tl.broadcast(tl.f32(2), 4) * t[tl.ramp(3, -1, 4)]
            t[tl.ramp(4, 2, 4)] = max(twice, tl.broadcast(x[i, 0], 4)) + tl.exp(t[tl.ramp(0, 1, 4)])
            y[i, 0] = t[10]
        """,
    )


def test_a_step_and_a_start() -> None:
    PASS.expect(
        """
        t = tl.alloc(tl.f32[16])
        for k in tl.vectorized(2, 14, 3):
            t[k + 1] = 1.0
        """,
        """
        t = tl.alloc(tl.f32[16])
        t[tl.ramp(3, 3, 4)] = tl.broadcast(tl.f32(1), 4)
        """,
    )


@pytest.mark.parametrize(
    "loop",
    [
        "for k in tl.vectorized(m):\n    t[k, 0] = 1.0",
        "for k in tl.vectorized(4):\n    t[k, 0] = 1.0",
        "for k in tl.vectorized(4):\n    t[0, k] = tl.if_then_else(k > 1, x[0, 0], y[0, 0])",
        "for k in tl.vectorized(4):\n    if k > 1:\n        t[0, k] = 1.0",
        "for k in tl.vectorized(1):\n    t[0, k] = 1.0",
        "for k in tl.vectorized(100):\n    t[0, k] = 1.0",
        "for k in tl.vectorized(4):\n    t[0, k] = t[k, 0]",
        "for k in tl.vectorized(4):\n    t[0, 0] = 1.0",
    ],
)
def test_what_has_no_vector_form_stays(loop: str) -> None:
    PASS.expect_unchanged("t = tl.alloc(tl.f32[100 + m, 100 + m])\n" + loop)
