"""Large tensors of a model's file are taken from where they lie: the constants are those that its bytes say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph.onnx.test_import import model

import tirlite as tl

onnx = pytest.importorskip("onnx")
from_array, make_node = onnx.numpy_helper.from_array, onnx.helper.make_node


def large_model() -> Any:
    """A model of more than a megabyte, with tensors of several types, of odd lengths, and without elements."""
    rng = np.random.default_rng(0)
    arrays = {
        "w": rng.standard_normal((600, 601)).astype(np.float32),
        "flags": rng.integers(0, 2, 5001).astype(bool),
        "bytes": rng.integers(-128, 128, (71, 73)).astype(np.int8),
        "numbers": rng.integers(-(1 << 60), 1 << 60, (3, 700)),
        "doubles": rng.standard_normal((2, 1, 900)),
        "halves": rng.standard_normal((1000, 7)).astype(np.float16),
        "few": rng.standard_normal(3).astype(np.float32),
        "none": np.zeros((0, 5), np.float32),
    }
    nodes = [make_node("MatMul", ["x", "w"], ["y"])]
    nodes += [make_node("Shape", [name], [f"of_{name}"]) for name in arrays if name != "w"]
    tensors = [from_array(array, name) for name, array in arrays.items()]
    tensors.append(onnx.helper.make_tensor("spelled", onnx.TensorProto.FLOAT, [2000], np.arange(2000.0)))
    outputs = ["y", *(name for name in arrays if name != "w"), "spelled"]
    return model(nodes, {"x": ["n", 600]}, outputs, *tensors)


def constants(function: tl.graph.Function) -> dict[str, np.ndarray[Any, Any]]:
    made = tl.graph.program(function)
    found = [each for part in made.parts for each in (part, *part.operands) if isinstance(each, tl.graph.Constant)]
    return {each.name: each.value for each in found}


def test_constants_from_a_file_are_those_from_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "large.onnx"
    path.write_bytes(large_model().SerializeToString())
    assert path.stat().st_size > 1 << 20
    one, other = constants(tl.from_onnx(path)), constants(tl.from_onnx(path.read_bytes()))
    assert {"w", "flags", "bytes", "numbers", "doubles", "halves", "few", "none", "spelled"} == {*one} == {*other}
    for name, array in one.items():
        assert array.dtype == other[name].dtype
        assert array.tobytes() == other[name].tobytes()
        assert array.flags.aligned
        assert not array.flags.writeable


def test_factors_of_known_statistics_are_constants_with_the_same_results() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 3, 5), np.float32)
    own = {name: rng.uniform(0.5, 2, 3).astype(np.float32) for name in ("scale", "bias", "mean", "variance")}
    nodes = [make_node("BatchNormalization", ["x", *own], ["y"])]
    known = tl.from_onnx(model(nodes, {"x": [2, 3, 5]}, ["y"], *map(from_array, own.values(), own)))
    given = tl.from_onnx(model(nodes, {"x": [2, 3, 5]} | dict.fromkeys(own, [3]), ["y"]))
    np.testing.assert_array_equal(tl.graph.compile(known)(x), tl.graph.compile(given)(x, *own.values()))
    assert not {"scale", "variance"} & {*constants(known)}


def test_data_of_another_length_are_told(tmp_path: Path) -> None:
    made = large_model()
    made.graph.initializer[2].dims[0] += 1
    path = tmp_path / "wrong.onnx"
    path.write_bytes(made.SerializeToString())
    with pytest.raises(tl.GraphError, match="5183 bytes of data for 5256 elements of i8"):
        tl.from_onnx(path)


@pytest.mark.parametrize("end", [1 << 10, -1])
def test_a_large_file_that_ends_too_soon_is_no_model(tmp_path: Path, end: int) -> None:
    path = tmp_path / "short.onnx"
    data = large_model().SerializeToString()[:end]
    path.write_bytes(data + bytes([255]) * (1 << 20) if end > 0 else data)
    with pytest.raises(tl.GraphError, match="it is not an ONNX model"):
        tl.from_onnx(path)
