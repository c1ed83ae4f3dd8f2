"""Functions with more parameters than a call through ctypes takes: one pointer to a record stands for all of them."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.ir import Cast, bool_, f64
from tirlite.ir.builder import Builder
from tirlite.target.convention import MOST_PARAMETERS

KINDS = (tl.f32, tl.f64, tl.i8, tl.u64, bool_, tl.f16, tl.i16, tl.bf16)
VALUES = (-1.5, 1e300, -7, 2**64 - 1, True, 0.25, -300, 2.0**100)


def test_scalars_of_all_types_come_through_the_record() -> None:
    b = Builder("many")
    n = tl.dim("n")
    x, y = b.param("x", f64[n]), b.param("y", f64[n, MOST_PARAMETERS], out=True)
    scalars = [b.param(f"s{k}", KINDS[k % 8]) for k in range(MOST_PARAMETERS)]
    scratch = b.alloc("scratch", f64[n])
    with b.for_("i", 0, n) as i:
        b.store(scratch, i, x[i])
    with b.for_("i", 0, n) as i:
        for k, scalar in enumerate(scalars):
            b.store(y, (i, k), Cast(f64, scalar) * scratch[n - 1 - i])
    kernel = tl.compile(b.build())
    values = [VALUES[k % 8] for k in range(MOST_PARAMETERS)]
    for count in (1, 3):
        given = np.arange(1.0, count + 1)
        wanted = given[::-1, None] * np.array([float(value) for value in values])
        np.testing.assert_array_equal(kernel(given, *values), wanted)


def test_a_graph_may_have_very_many_constants() -> None:
    g = tl.graph.Builder("net")
    x = g.input("x", tl.f32[2])
    rows = [g.constant(np.full(2, k, np.float32)) for k in range(300)]
    net = tl.graph.compile(g.function([x, *rows]))
    results = net(np.array([7, 8], np.float32))
    assert results[0].tolist() == [7, 8]
    assert [row[0] for row in results[1:]] == list(range(300))
