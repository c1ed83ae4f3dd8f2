"""Networks that nobody here wrote, with random weights: every tensor in them is what onnxruntime computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tirlite as tl
from tirlite.sizes import Dim

onnx = pytest.importorskip("onnx")

from graph.onnx.networks import network  # noqa: E402


def image(batch: int = 1) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((batch, 3, 224, 224), np.float32)


def tensors(model: Any) -> list[str]:
    """The first result of each node; those of Dropout and LRN are masks, or nothing that has a meaning."""
    return [node.output[0] for node in model.graph.node]


@pytest.mark.parametrize("name", ["squeezenet", "shufflenet"])
def test_every_tensor_is_that_of_onnxruntime(name: str) -> None:
    runtime = pytest.importorskip("onnxruntime")
    model = network(name)
    names = tensors(model)
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=each) for each in names)
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    wanted = session.run(None, {session.get_inputs()[0].name: image()})
    found = tl.graph.evaluate(tl.from_onnx(model), image())
    for each, mine, theirs in zip(names, found, wanted, strict=True):
        assert np.abs(mine - theirs).max() <= 1e-5 * np.abs(theirs).max(), each


def test_native_code_takes_no_more_than_the_bound() -> None:
    function = tl.from_onnx(network("squeezenet"))
    graph = tl.graph.compile(function)
    assert graph.plan.total == graph.plan.lower_bound
    meant = tl.graph.evaluate(function, image())
    np.testing.assert_allclose(graph(image()), meant, 1e-4, 1e-7)


def test_a_batch_may_be_a_dim() -> None:
    model = network("squeezenet")
    weights = {each.name for each in model.graph.initializer}
    (name,) = (each.name for each in model.graph.input if each.name not in weights)
    function = tl.from_onnx(model, shapes={name: (Dim("batch"), 3, 224, 224)})
    assert str(function.result) == "f32[batch, 1000, 1, 1]"
