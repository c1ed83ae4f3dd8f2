"""Convolutions of integers of 8 bits are summed up in floats, in as many parts as keep that exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tirlite as tl
from tirlite.graph.onnx.importers.exact_sums import in_floats

onnx = pytest.importorskip("onnx")
helper, TYPES = onnx.helper, onnx.TensorProto
Array = np.ndarray[Any, Any]


def convolution_of(weights: Array, shape: tuple[int, ...], groups: int = 1) -> tl.graph.FunctionNode:
    """ConvInteger of an image of u8, whose zero point is 3, with windows that reach over its edges by one."""
    node = helper.make_node("ConvInteger", ["x", "w", "z"], ["y"], pads=[1, 1, 1, 1], group=groups)
    places = [None] * 4
    graph = helper.make_graph(
        [node],
        "net",
        [helper.make_tensor_value_info("x", TYPES.UINT8, shape)],
        [helper.make_tensor_value_info("y", TYPES.INT32, places)],
        [onnx.numpy_helper.from_array(weights, "w"), onnx.numpy_helper.from_array(np.uint8(3), "z")],
    )
    return tl.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))


def summed(x: Array, weights: Array, groups: int) -> Array:
    """The sums in 64 bits, term by term."""
    outputs, taken, *size = weights.shape
    distance = np.pad(x.astype(np.int64) - 3, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(distance, size, (2, 3))
    parts = [
        np.einsum("nchwij,ocij->nohw", windows[:, g * taken : (g + 1) * taken], each)
        for g, each in enumerate(np.split(weights.astype(np.int64), groups))
    ]
    return np.concatenate(parts, 1).astype(np.int32)


@pytest.mark.parametrize(
    ("shape", "outputs", "groups", "parts"),
    [((1, 5, 6, 7), 4, 1, 1), ((2, 200, 4, 5), 3, 1, 4), ((1, 6, 5, 5), 6, 3, 1), ((1, 400, 3, 3), 2, 2, 0)],
)
def test_the_greatest_sums_are_exact(shape: tuple[int, ...], outputs: int, groups: int, parts: int) -> None:
    weights = np.full((outputs, shape[1] // groups, 3, 3), -128, np.int8)
    weights[1:] = np.random.default_rng(1).integers(-128, 128, weights[1:].shape)
    function = convolution_of(weights, shape, groups)
    x = np.full(shape, 255, np.uint8)
    x[..., 1:] = np.random.default_rng(2).integers(0, 256, x[..., 1:].shape)
    np.testing.assert_array_equal(tl.graph.compile(function)(x), summed(x, weights, groups))
    b = tl.graph.Builder("operands")
    made = in_floats(
        (function.params[0], b.constant(weights)), (b.constant(np.uint8(3)), b.constant(np.int8(0))), groups
    )
    assert len(made or ()) == parts


def test_a_part_ends_where_one_more_channel_would_be_too_much() -> None:
    b = tl.graph.Builder("operands")
    weights, image = np.full((1, 515, 1, 1), 128, np.uint8), np.zeros((1, 515, 2, 2), np.uint8)
    point = b.constant(np.uint8(0))
    made = in_floats((b.constant(image), b.constant(weights)), (point, point), 1)
    assert [(first, end) for first, end, _ in made or ()] == [(0, 514), (514, 515)]
    assert 514 * 128 * 255 < 2**24 < 515 * 128 * 255
