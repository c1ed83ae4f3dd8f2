"""The networks that come with the onnx package, with seeded random weights in the place of their constant ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

NAMES = (
    *("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50"),
    *("shufflenet", "squeezenet", "vgg19", "zfnet512"),
)


def folder() -> Path:
    """The package's own cases."""
    import onnx

    assert onnx.__file__ is not None
    return Path(onnx.__file__).parent / "backend" / "test" / "data"


def network(name: str, seed: int = 0) -> Any:
    """The model, its weights drawn so that values stay near 1 in all layers."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load(folder() / "light" / f"light_{name}.onnx")
    shapes = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    rng = np.random.default_rng(seed)
    roles = {name: (node.op_type, place) for node in model.graph.node for place, name in enumerate(node.input)}
    kept, made = [], []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape" or node.input[0] not in shapes:
            kept.append(node)
            continue
        shape = tuple(int(each) for each in shapes[node.input[0]])
        values = _weights(rng, shape, *roles.get(node.output[0], ("", 0)))
        made.append(numpy_helper.from_array(values, node.output[0]))
    del model.graph.node[:]
    model.graph.node.extend(kept)
    model.graph.initializer.extend(made)
    return model


def batched(name: str, dim: str = "batch", seed: int = 0) -> Any:
    """The same network for images of any number: its exporter wrote a batch of 1 into the shapes."""
    from onnx import numpy_helper

    model = network(name, seed)
    weights = {each.name: each for each in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Reshape" and node.input[0] not in weights:
            shape = numpy_helper.to_array(weights[node.input[1]]).copy()
            assert shape[0] == 1
            shape[0] = 0  # as many as before
            weights[node.input[1]].CopyFrom(numpy_helper.from_array(shape, node.input[1]))
    (given,) = (each for each in model.graph.input if each.name not in weights)
    given.type.tensor_type.shape.dim[0].dim_param = dim
    del model.graph.value_info[:]
    for each in model.graph.output:
        each.type.tensor_type.ClearField("shape")
    return model


def _weights(rng: np.random.Generator, shape: tuple[int, ...], op: str, place: int) -> np.ndarray:
    if op in ("Conv", "Gemm") and place == 1:
        spread = np.sqrt(2 / max(1, np.prod(shape[1:])))
        return rng.standard_normal(shape, np.float32) * np.float32(spread)
    if op == "BatchNormalization" and place == 4:
        return rng.uniform(0.5, 1.5, shape).astype(np.float32)
    if len(shape) == 1 and op == "BatchNormalization" and place == 1:
        return rng.uniform(0.5, 1.5, shape).astype(np.float32)
    return rng.uniform(-0.5, 0.5, shape).astype(np.float32) + np.float32(op in ("Unsqueeze", "Mul"))
