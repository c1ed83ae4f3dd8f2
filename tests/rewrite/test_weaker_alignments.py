"""Buffers that are handed to kernels give up lines of 64 bytes where that saves bytes; those of loops keep them."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.graph import Builder, CompiledGraph, Function, compile  # noqa: A004

n = tl.dim("n")
WIDE = (56, 24, 24, 56)


def layers(rows: object, widths: tuple[int, ...]) -> Function:
    """A chain of products: two neighbours live together, and no slot fits all."""
    g = Builder("layers")
    y = g.input("x", tl.f32[rows, 3])
    for width in (*widths, 1):
        y = g.matmul(y, np.ones((y.shape[1], width), np.float32))
    return g.function(y)


def aligns(compiled: CompiledGraph) -> set[int]:
    return {request.align for request in compiled.plan.problem.requests}


def test_no_byte_is_lost_to_lines_at_any_shape() -> None:
    compiled = compile(layers(n, WIDE))
    for rows in (1, 2, 3, 7, 16, 33):
        assert compiled.plan_at(n=rows).total == 4 * rows * (56 + 24)
    for rows in (1, 3, 4):
        x = np.arange(3 * rows, dtype=np.float32).reshape(rows, 3)
        np.testing.assert_array_equal(compiled(x), x.sum(1, keepdims=True) * np.prod(np.float32(WIDE)))


def test_nor_where_sizes_are_constant() -> None:
    compiled = compile(layers(3, WIDE))
    assert compiled.plan.total == compiled.plan.open_bound == 4 * 3 * (56 + 24)


def test_each_shape_has_the_alignment_that_costs_it_nothing() -> None:
    compiled = compile(layers(n, WIDE), strategy="per_shape")
    for rows, align in ((1, 32), (2, 64), (3, 32), (16, 64)):
        plan = compiled.plan_at(n=rows)
        assert plan.total == plan.lower_bound
        assert all(place.offset % align == 0 for place in plan.placements.values())


def test_the_largest_alignment_is_kept_that_costs_nothing() -> None:
    assert aligns(compile(layers(n, WIDE))) == {32}
    assert aligns(compile(layers(n, (57, 17, 17, 57)))) == {4}


def test_loops_of_the_functions_own_keep_lines() -> None:
    @tl.kernel
    def apart(x: tl.f32[n, 24], y: tl.f32[n, 24]) -> None:
        a = tl.alloc(tl.f32[n, 24])
        b = tl.alloc(tl.f32[n, 24])
        for i in range(n):
            for j in range(24):
                a[i, j] = x[i, j]
                b[i, j] = x[i, j] * 2
        for i in range(n):
            for j in range(24):
                y[i, j] = a[n - 1 - i, j] + b[n - 1 - i, 23 - j]

    plan = tl.compile(apart, strategy="pack").plan
    assert {request.align for request in plan.problem.requests} == {64}
