"""Convolutions and pools against loops that do what their definition says."""

from __future__ import annotations

from itertools import product
from math import ceil

import numpy as np
import pytest

import tirlite as tl


def naive_conv(x, w, stride, pads, dilation, groups):
    x = np.pad(x, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
    outputs, inputs, height, width = w.shape
    rows = (x.shape[2] - dilation[0] * (height - 1) - 1) // stride[0] + 1
    columns = (x.shape[3] - dilation[1] * (width - 1) - 1) // stride[1] + 1
    y = np.zeros((x.shape[0], outputs, rows, columns))
    for b, o, i, j, c, p, q in product(*map(range, (*y.shape, inputs, height, width))):
        channel = o // (outputs // groups) * inputs + c
        y[b, o, i, j] += w[o, c, p, q] * x[b, channel, i * stride[0] + p * dilation[0], j * stride[1] + q * dilation[1]]
    return y


@pytest.mark.parametrize(
    ("stride", "pads", "dilation", "groups"),
    [
        ((1, 1), (0, 0, 0, 0), (1, 1), 1),
        ((2, 1), (1, 0, 0, 2), (1, 2), 1),
        ((1, 2), (1, 1, 1, 1), (2, 1), 2),
        ((1, 1), (0, 1, 1, 0), (1, 1), 4),
    ],
)
def test_conv2d(stride, pads, dilation, groups) -> None:
    rng = np.random.default_rng(1)
    x, w, bias = rng.random((2, 4, 6, 7)), rng.random((8, 4 // groups, 3, 2)), rng.random(8)
    g = tl.graph.Builder("conv")
    y = g.conv2d(g.input("x", tl.f64[x.shape]), w, bias, stride=stride, pad=pads, dilation=dilation, groups=groups)
    result = tl.graph.evaluate(g.function(y), x)
    np.testing.assert_allclose(result, naive_conv(x, w, stride, pads, dilation, groups) + bias[:, None, None])
    assert y.shape == np.shape(result)


@pytest.mark.parametrize("shape", [(1, 4, 6), (1, 4, 6, 6, 6), (4,)], ids=len)
def test_conv2d_has_two_spatial_axes(shape) -> None:
    g = tl.graph.Builder("conv")
    x, w = g.input("x", tl.f32[shape]), np.ones((2, 4, *(1 for _ in shape[2:])), np.float32)
    with pytest.raises(
        tl.GraphError, match=r"conv2d\(f32\[.*\]\)`: operand 0 must be \[batch, channels, height, width\]"
    ):
        g.conv2d(x, w)


@pytest.mark.parametrize("groups", [1, 2])
def test_conv_transpose_is_the_transpose_of_conv(groups) -> None:
    rng = np.random.default_rng(2)
    geometry = {"stride": (2, 3), "pad": (1, 0, 0, 1), "dilation": (1, 2), "groups": groups}
    x, w, y = rng.random((1, 4, 7, 10)), rng.random((6, 4 // groups, 3, 2)), None
    g = tl.graph.Builder("forth")
    forth = g.conv(g.input("x", tl.f64[x.shape]), w, **geometry)
    y = rng.random(forth.shape)
    forth_x = tl.graph.evaluate(g.function(forth), x)
    h = tl.graph.Builder("back")
    padding = [(7 + 1 - 3) % 2, (10 + 1 - 3) % 3]
    back = h.conv_transpose(h.input("y", tl.f64[y.shape]), w, **geometry, output_padding=padding)
    back_y = tl.graph.evaluate(h.function(back), y)
    assert back.shape == x.shape
    np.testing.assert_allclose(np.sum(forth_x * y), np.sum(x * back_y))


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("count_include_pad", [False, True])
@pytest.mark.parametrize(("window", "stride", "pad"), [(3, 2, 1), (2, 3, 0), (2, 2, 1), (3, 3, 1)])
def test_pools(window, stride, pad, ceil_mode, count_include_pad) -> None:
    x = np.random.default_rng(3).standard_normal((1, 2, 6, 7))
    g = tl.graph.Builder("pools")
    image = g.input("x", tl.f64[x.shape])
    options = {"stride": stride, "pad": pad, "ceil_mode": ceil_mode}
    most = g.max_pool(image, window, **options)
    mean = g.average_pool(image, window, count_include_pad=count_include_pad, **options)
    tops, means = tl.graph.evaluate(g.function([most, mean]), x)
    for axis, extent in ((2, 6), (3, 7)):
        room = (extent + 2 * pad - window) / stride
        places = (ceil(room) if ceil_mode else int(room)) + 1
        assert tops.shape[axis] == most.shape[axis] == places - ((places - 1) * stride >= extent + pad)
    for c, i, j in product(range(2), *map(range, tops.shape[2:])):
        top, left = i * stride - pad, j * stride - pad
        seen = x[0, c, max(top, 0) : top + window, max(left, 0) : left + window]
        padded = (min(top + window, 6 + pad) - top) * (min(left + window, 7 + pad) - left)
        assert tops[0, c, i, j] == seen.max()
        np.testing.assert_allclose(means[0, c, i, j], seen.sum() / (padded if count_include_pad else seen.size))


def test_symbolic_extents_go_through() -> None:
    n, h = tl.dim("n"), tl.dim("h", min=8, multiple_of=8)
    g = tl.graph.Builder("image")
    x = g.input("x", tl.f32[n, 3, h, 4 * h])
    y = g.conv2d(x, np.zeros((5, 3, 3, 3), np.float32), stride=2, pad=1)
    assert str(y.type) == "f32[n, 5, h//2, 2*h]"
    assert str(g.max_pool(y, 2).type) == "f32[n, 5, h//4, h]"
    assert str(g.max_pool(y, 3, stride=2, pad=1, ceil_mode=True).type) == "f32[n, 5, h//4 + 1, h + 1]"
    assert str(g.global_average_pool(y).type) == "f32[n, 5, 1, 1]"


@pytest.mark.parametrize(("groups", "stride"), [(1, 1), (1, 2), (2, 1), (4, 1), (4, 2)])
def test_no_size_at_run_time_makes_a_convolution_run_in_order(groups: int, stride: int) -> None:
    rng = np.random.default_rng(3)
    height, width = tl.dims("height width")
    weights = rng.random((8, 4 // groups, 3, 3)).astype(np.float32)
    g = tl.graph.Builder("conv")
    x = g.input("x", tl.f32[1, 4, height, width])
    net = tl.graph.compile(g.function(g.conv2d(x, weights, stride=stride, pad=1, groups=groups)))
    for rows, columns in ((5, 7), (6, 19)):
        image = rng.random((1, 4, rows, columns)).astype(np.float32)
        expected = naive_conv(image, weights, (stride,) * 2, (1, 1, 1, 1), (1, 1), groups)
        np.testing.assert_allclose(net(image), expected, rtol=1e-5)
    assert not net.kernel._others
