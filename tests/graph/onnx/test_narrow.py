"""Floats of 8 bits and fewer, integers of 2 and 4: a byte each, read, moved, cast; no operator computes with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graph.onnx.beside import session

import tirlite as tl

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
ml_dtypes = pytest.importorskip("ml_dtypes")
helper, TYPES = onnx.helper, onnx.TensorProto

FLOATS = {
    TYPES.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
    TYPES.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    TYPES.FLOAT8E5M2: ml_dtypes.float8_e5m2,
    TYPES.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    TYPES.FLOAT4E2M1: ml_dtypes.float4_e2m1fn,
}


def model(nodes: list[Any], given: dict[str, tuple[int, list[Any]]], wanted: dict[str, int], *weights: Any) -> Any:
    inputs = [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in given.items()]
    outputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in wanted.items()]
    graph = helper.make_graph(nodes, "net", inputs, outputs, [*weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=12)


def there_and_back(kind: int, *, saturate: bool) -> tl.graph.Function:
    nodes = [
        helper.make_node("Cast", ["x"], ["narrow"], to=kind, **({} if saturate else {"saturate": 0})),
        helper.make_node("Cast", ["narrow"], ["y"], to=TYPES.FLOAT),
    ]
    given = {"x": (TYPES.FLOAT, ["n"])}
    return tl.from_onnx(model(nodes, given, {"narrow": kind, "y": TYPES.FLOAT}), outputs=["narrow", "y"])


def numbers(dtype: Any, count: int) -> Any:
    """All numbers of the type, those in the middle of two and beside these, and random ones of all sizes."""
    rng = np.random.default_rng(0)
    exact = np.arange(count, dtype=np.uint8).view(dtype).astype(np.float32)
    order = np.sort(exact[np.isfinite(exact)]).astype(np.float64)
    middles = ((order[1:] + order[:-1]) / 2).astype(np.float32)
    beside = [np.nextafter(middles, np.float32(limit)) for limit in (np.inf, -np.inf)]
    free = rng.standard_normal(300) * 10.0 ** rng.integers(-12, 8, 300)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3e38, -3e38]
    return np.concatenate([exact, middles, *beside, free, special]).astype(np.float32)


@pytest.mark.parametrize("saturate", [True, False])
@pytest.mark.parametrize("kind", FLOATS)
def test_a_float_is_rounded_to_the_nearest(kind: int, saturate: bool) -> None:
    dtype = FLOATS[kind]
    x = numbers(dtype, 16 if kind == TYPES.FLOAT4E2M1 else 256)
    top = float(ml_dtypes.finfo(dtype).max)
    rounded = (np.clip(x, -top, top) if saturate else x).astype(dtype)
    f = there_and_back(kind, saturate=saturate)
    bits, back = tl.graph.evaluate(f, x)
    wanted = rounded.astype(np.float32)
    if kind == TYPES.FLOAT4E2M1:  # which has no nan: it becomes a zero
        wanted[np.isnan(x)] = 0
    np.testing.assert_array_equal(back, wanted)
    is_number = ~np.isnan(wanted)
    np.testing.assert_array_equal(
        np.signbit(back[is_number & ~np.isnan(x)]), np.signbit(wanted[is_number & ~np.isnan(x)])
    )
    assert bits.dtype == np.uint8
    if kind == TYPES.FLOAT8E5M2:
        for made, evaluated in zip(tl.graph.compile(f)(x), (bits, back), strict=True):
            np.testing.assert_array_equal(made, evaluated)


def test_integers_of_4_bits_are_packed_in_the_model_alone() -> None:
    given = np.array([[-8, 7, 0], [1, -1, 3]], np.int8)
    weights = onnx.numpy_helper.from_array(given.astype(ml_dtypes.int4), "w")
    nodes = [helper.make_node("Transpose", ["w"], ["t"]), helper.make_node("Cast", ["t"], ["y"], to=TYPES.FLOAT)]
    f = tl.from_onnx(model(nodes, {}, {"t": TYPES.INT4, "y": TYPES.FLOAT}, weights), outputs=["t", "y"])
    stored, y = tl.graph.evaluate(f)
    assert stored.dtype == np.int8
    np.testing.assert_array_equal(stored, given.T)
    np.testing.assert_array_equal(y, given.T)


@pytest.mark.parametrize(("kind", "narrow"), [(TYPES.INT4, ml_dtypes.int4), (TYPES.UINT4, ml_dtypes.uint4)])
def test_weights_of_4_bits_in_blocks_are_those_of_onnxruntime(kind: int, narrow: Any) -> None:
    rng = np.random.default_rng(1)
    info = ml_dtypes.iinfo(narrow)
    weights = rng.integers(info.min, info.max + 1, (32, 5)).astype(narrow)
    zeros = rng.integers(info.min, info.max + 1, (2, 5)).astype(narrow)
    scales = rng.uniform(0.1, 1, (2, 5)).astype(np.float32)
    stored = [
        onnx.numpy_helper.from_array(array, name)
        for name, array in (("w", weights), ("zero", zeros), ("scale", scales))
    ]
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "scale", "zero"], ["wide"], axis=0, block_size=16),
        helper.make_node("MatMul", ["x", "wide"], ["y"]),
    ]
    made = model(nodes, {"x": (TYPES.FLOAT, ["n", 32])}, {"y": TYPES.FLOAT}, *stored)
    x = rng.standard_normal((3, 32)).astype(np.float32)
    (wanted,) = session(made).run(None, {"x": x})  # not plain, it would quantize the other operand too
    np.testing.assert_allclose(tl.graph.evaluate(tl.from_onnx(made), x), wanted, atol=1e-5)


def test_an_operator_that_computes_with_them_is_refused() -> None:
    made = model([helper.make_node("Add", ["x", "x"], ["y"])], {"x": (TYPES.INT4, ["n"])}, {"y": TYPES.INT4})
    with pytest.raises(tl.GraphError, match="elements of int4 are moved and cast here, and no operator computes with"):
        tl.from_onnx(made)


def test_data_that_contradict_a_shape_are_refused() -> None:
    weights = onnx.TensorProto(name="w", data_type=TYPES.INT4, dims=[5], raw_data=b"12")
    made = model([helper.make_node("Cast", ["w"], ["y"], to=TYPES.FLOAT)], {}, {"y": TYPES.FLOAT}, weights)
    with pytest.raises(tl.GraphError, match="2 bytes of data for 5 elements of int4"):
        tl.from_onnx(made)


def test_the_bits_of_elements_are_those_of_another_type() -> None:
    g = tl.graph.Builder("bits")
    n = tl.dim("n")
    f = g.function([g.bitcast(g.input("x", tl.f32[n, 2]), tl.i32), g.bitcast(g.input("s", tl.bool_[()]), tl.u8)])
    for rows in (3, 0):
        x = np.array([[0.0, -0.0], [np.inf, np.nan], [1.5, -2e-40]], np.float32)[:rows]
        for bits, one in (tl.graph.evaluate(f, x, np.array(True)), tl.graph.compile(f)(x, np.array(True))):
            np.testing.assert_array_equal(bits, x.view(np.int32))
            assert (one.dtype, one.item()) == (np.uint8, 1)
    with pytest.raises(tl.GraphError, match="the bits of f16 are not looked at"):
        g.bitcast(g.input("h", tl.f16[4]), tl.i16)
