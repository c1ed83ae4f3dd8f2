"""Networks that nobody here wrote, with random weights: every tensor in them is what onnxruntime computes.

Two of the nine are run by default; all of them, with minutes of time, where TIRLITE_ALL_NETWORKS is set.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import tirlite as tl

onnx = pytest.importorskip("onnx")

from graph.onnx.beside import session  # noqa: E402
from graph.onnx.networks import NAMES, batched, network  # noqa: E402

ALL = bool(os.environ.get("TIRLITE_ALL_NETWORKS"))


def image(batch: int = 1) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((batch, 3, 224, 224), np.float32)


def tensors(model: Any) -> list[str]:
    """The first result of each node; those of Dropout and LRN are masks, or nothing that has a meaning."""
    return [node.output[0] for node in model.graph.node]


def run(model: Any, given: np.ndarray) -> list[np.ndarray]:
    made = session(model)
    results: list[np.ndarray] = made.run(None, {made.get_inputs()[0].name: given})
    return results


def magnitudes(model: Any, wanted: list[np.ndarray]) -> list[float]:
    """What errors are measured by: the greatest magnitude of each tensor, times that of its operand for Softmax.

    What its operand is wrong by, the exponential makes a relative error of the result.
    """
    sizes = {node.output[0]: float(np.abs(each).max()) for node, each in zip(model.graph.node, wanted, strict=True)}
    for node in model.graph.node:
        if node.op_type == "Softmax":
            sizes[node.output[0]] *= max(sizes[node.input[0]], 1.0)
    return list(sizes.values())


def assert_close(names: list[str], found: Any, wanted: list[np.ndarray], allowed: list[float]) -> None:
    for each, mine, theirs, most in zip(names, found, wanted, allowed, strict=True):
        assert mine.shape == theirs.shape, each
        assert np.abs(mine - theirs).max() <= most, each


@pytest.mark.parametrize("name", NAMES if ALL else ["squeezenet", "shufflenet"])
def test_every_tensor_is_that_of_onnxruntime(name: str) -> None:
    model = network(name)
    names = tensors(model)
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=each) for each in names)
    wanted = run(model, image())
    function = tl.from_onnx(model)
    allowed = [1e-5 * size for size in magnitudes(model, wanted)]
    assert_close(names, tl.graph.evaluate(function, image()), wanted, allowed)
    if ALL:
        assert_close(names, tl.graph.compile(function)(image()), wanted, allowed)


@pytest.mark.parametrize("name", NAMES if ALL else ["squeezenet"])
def test_one_code_for_all_batches_takes_no_more_than_the_bound(name: str) -> None:
    model = batched(name)
    graph = tl.graph.compile(tl.from_onnx(model))
    shapes = tl.graph.compile(tl.from_onnx(model), strategy="per_shape")
    for batch in (1, 2, 8):
        for plan in (graph.plan_at(batch=batch), shapes.plan_at(batch=batch)):
            assert plan.total == plan.lower_bound
    for batch in (1, 2) if ALL else (1,):
        found = graph(image(batch))
        assert isinstance(found, np.ndarray)
        wanted = run(model, image(batch))
        assert_close([name], [found], wanted, [1e-4 * np.abs(wanted[0]).max()])
