"""Operators whose extents are made of dims: each dim that a kernel needs is told by an extent of its own."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.graph.aot.plain_dims import PlainDims
from tirlite.sizes import Dim, Size, dims_of, evaluate

n, m = Dim("n"), Dim("m")


def test_a_dim_that_stands_alone_stays() -> None:
    own = PlainDims([n + 0, n + 1])
    assert own(n + 1) == n + 1


@pytest.mark.parametrize("extents", [[n + 1], [3 * n], [3 * n + m, m + 0], [n * m, 4 * n * m], [n * m + n]], ids=str)
def test_all_dims_are_told_by_extents(extents: list[Size]) -> None:
    own = PlainDims(extents)
    made = [own(each) for each in extents]
    alone = {dims_of(each)[0] for each in made if len(dims_of(each)) == 1 and each == dims_of(each)[0] + 0}
    assert all(set(dims_of(each)) <= alone for each in made)


def test_what_follows_keeps_its_value() -> None:
    own = PlainDims([3 * n + m, m + 0])
    (whole,) = dims_of(own(3 * n + m))
    assert evaluate(own(n + 5), {whole: 3 * 7 + 2, m: 2}) == 7 + 5


def test_graphs_of_compound_extents_run() -> None:
    g = tl.graph.Builder("compound")
    x, w = g.input("x", tl.f32[n, m, 8]), g.input("w", tl.f32[8, 5])
    product = g.reshape(g.gemm(g.reshape(x, (n * m, 8)), w), (n, m, 5))
    twice = g.concat([product, product], 1)
    part = g.slice(twice, [0, m - 1], [n, 2 * m], [0, 1])
    f = g.function([part, g.sizes([n, 2 * m, n * m + 1]), g.pad(twice, [0, 1, 0], [0, 2, 0])])
    rng = np.random.default_rng(0)
    arrays = rng.random((3, 4, 8), np.float32), rng.random((8, 5), np.float32)
    for mine, meant in zip(tl.graph.compile(f)(*arrays), tl.graph.evaluate(f, *arrays), strict=True):
        np.testing.assert_allclose(mine, meant, 1e-5)


def test_what_is_appended_to_nothing_may_be_turned() -> None:
    g = tl.graph.Builder("cache")
    past, now = g.input("past", tl.f32[n, 2]), g.input("now", tl.f32[1, 2])
    net = tl.graph.compile(g.function(g.transpose(g.concat([past, now], 0))))
    for count in (3, 0):
        x, y = np.ones((count, 2), np.float32), np.zeros((1, 2), np.float32)
        np.testing.assert_array_equal(net(x, y), np.concatenate([x, y]).T)


def test_what_is_left_between_extents_is_told_by_them() -> None:
    """Padding at the end of one extent up to another, as exporters write it of models that keep sizes whole."""
    small, large = 4 * ((n + 31) // 32), 3 * ((n + 95) // 96) + 3
    own = PlainDims([small, large + 2])
    found = own.told(large - small - 1)
    assert found is not None
    dims = [own(each) for each in (small, large + 2)]
    for size in (1, 64, 200):
        at = {dims_of(made)[0]: evaluate(each, {n: size}) for made, each in zip(dims, (small, large + 2), strict=True)}
        assert evaluate(found, at) == evaluate(large - small - 1, {n: size})
    assert own.told(n + 0) is None
    g = tl.graph.Builder("padded")
    x = g.input("x", tl.f32[n])
    rows = g.slice(g.concat([x] * 4), [0], [(n + 31) // 32])
    f = g.function(g.pad(rows, [2], [3 * ((n + 95) // 96) - (n + 31) // 32 + 1]))
    value = np.arange(40, dtype=np.float32)
    np.testing.assert_array_equal(tl.graph.compile(f)(value), tl.graph.evaluate(f, value))
