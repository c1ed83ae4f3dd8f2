"""Convolutions with bent windows, beside the standard's reference, also where places lie outside, or are no numbers."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl

onnx = pytest.importorskip("onnx")
reference = pytest.importorskip("onnx.reference")
helper, FLOAT = onnx.helper, onnx.TensorProto.FLOAT


def test_windows_are_bent() -> None:
    rng = np.random.default_rng(0)
    groups, bends, channels, outputs, window = 2, 2, 4, 6, (3, 2)
    how = {"strides": [2, 1], "pads": [1, 0, 1, 0], "dilations": [1, 2], "group": groups, "offset_group": bends}
    node = helper.make_node("DeformConv", ["x", "w", "o", "b", "m"], ["y"], kernel_shape=window, **how)
    weights = {"w": rng.standard_normal((outputs, channels // groups, *window)), "b": rng.standard_normal(outputs)}
    count = bends * window[0] * window[1]
    shapes = {"x": ["n", channels, "h", "v"], "o": ["n", 2 * count, "p", "q"], "m": ["n", count, "p", "q"]}
    given = [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in shapes.items()]
    made = helper.make_tensor_value_info("y", FLOAT, ["n", outputs, "p", "q"])
    stored = [onnx.numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()]
    graph = helper.make_graph([node], "net", given, [made], stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    oracle = reference.ReferenceEvaluator(model)
    f = tl.from_onnx(model)
    for rows, columns in ((6, 5), (3, 3)):
        places = ((rows + 2 - 3) // 2 + 1, columns - 3 + 1)
        feed = {
            "x": rng.standard_normal((2, channels, rows, columns)).astype(np.float32),
            "o": 2 * rng.standard_normal((2, 2 * count, *places)).astype(np.float32),
            "m": rng.random((2, count, *places)).astype(np.float32),
        }
        wanted = oracle.run(None, feed)[0]
        np.testing.assert_allclose(tl.graph.evaluate(f, *feed.values()), wanted, rtol=1e-4, atol=1e-5)
        feed["o"][0, 0, 0, 0], feed["o"][1, 1, 0, 0] = np.inf, -1e30
        assert np.isfinite(np.asarray(tl.graph.evaluate(f, *feed.values()))[:, :, 1:]).all()
