"""Where views lie: what is told apart may be reordered, so no offset that may wrap around counts."""

from __future__ import annotations

import numpy as np
from every import every

import tirlite as tl
from tirlite.analysis import are_disjoint, byte_ranges

n = tl.dim("n")


@tl.kernel(strategy="none")
def shifted(x: tl.f32[n], s: tl.i64, y: tl.out[tl.f32[n]]):
    t = tl.alloc(tl.u8[8 * n])
    low = tl.view(t, tl.f32[n])
    four = 4 * s
    high = tl.view(t, tl.f32[n], byte_offset=4 * n - (4 * n - 4) // 2 * ((four // 4 - s) % 3))
    for i in range(n):
        low[i] = x[i]
    for i in range(n):
        high[i] = low[i] + 1
    for i in range(n):
        y[i] = low[i]


def test_views_that_wrap_around_onto_each_other_are_read_in_order() -> None:
    """At the second `s` `high` begins 4 bytes behind `low`: each iteration reads what the last one wrote."""
    x = np.zeros(1001, np.float32)
    assert (shifted(x, 5) == 0).all()
    assert (shifted(x, (1 << 62) + 1) == np.arange(1001)).all()


@every(
    "extent, offset, are_apart",
    [
        ("m", "64", True),
        ("m", "64 + max(s, 0)", True),
        ("m", "64 + 4 * max(s, 0)", False),
        ("128 + 4 * max(s, 0)", "64 + 4 * max(s, 0)", True),
        ("m", "64 + 4 * min(max(s, 0), 1000)", True),
        ("m", "64 + m", True),
        ("m", "64 + 4 * s // 4 - s", False),
        ("m", "64 + (m * m + 63) // 64 * 64", False),
        ("m * m", "64 + (m * m + 63) // 64 * 64", True),
        ("m", "64 - m * m * m * 21 % 7 * 64", False),
        ("m", "64 + 16384 * m", True),
        ("m", "64 + 4611686018427387904 * m * 4", False),
        ("m", "64 + 4611686018427387904 * m * 4 // 64", False),
    ],
)
def test_views_lie_apart_where_their_offsets_are_exact(extent: str, offset: str, are_apart: bool) -> None:
    """An allocation is checked when it is made, so what is no more than its size has not wrapped around.

    The cube of m = 3,000,001 wraps around, and that view then lies on the other one.
    """
    func = tl.parse(
        'm = tl.dim("m")\n\n'
        "@tl.kernel\n"
        "def f(x: tl.u8[m], s: tl.i64):\n"
        f"    t = tl.alloc(tl.u8[{extent}])\n"
        "    low = tl.view(t, tl.u8[64])\n"
        f"    high = tl.view(t, tl.u8[64], byte_offset={offset})\n"
        "    low[0] = high[0]\n"
    )
    ranges = {buffer.name: each for buffer, each in byte_ranges(func).items()}
    assert are_disjoint(ranges["low"], ranges["high"]) == are_apart
