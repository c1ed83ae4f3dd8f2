"""Sums of products of dequantized tensors are computed in integers: exactly, and quantized in one step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from effort import effort
from random_cases import IS_THOROUGH

import tirlite as tl
from tirlite.codegen import Effort
from tirlite.graph import Builder, Function, compile  # noqa: A004
from tirlite.target.processor import HOST, processor_called

Array = np.ndarray[Any, Any]


def extremes(rng: np.random.Generator, dtype: tl.ir.DType, shape: tuple[int, ...]) -> Array:
    """Bytes of all sizes, and many of the least and of the largest."""
    made = rng.integers(dtype.min, dtype.max, shape, dtype.numpy, endpoint=True)
    return np.where(rng.random(shape) < 0.5, made, np.where(rng.random(shape) < 0.7, dtype.min, dtype.max)).astype(
        dtype.numpy
    )


def layer(
    kind: tl.ir.DType, weight: tl.ir.DType, shape: tuple[int, ...], of: tuple[int, ...], **attrs: Any
) -> Function:
    """A convolution between dequantized tensors, quantized: scales for each output, weights with zero points."""
    rng = np.random.default_rng(len(shape) + of[0])
    g = Builder("layer")
    x = g.input("x", kind[shape])
    scales = rng.uniform(0.001, 0.01, of[0]).astype(np.float32)
    zeros = np.full(of[0], 128 if weight == tl.u8 else 0, weight.numpy)
    zero = np.asarray(kind.max - 100, kind.numpy)
    wide = g.dequantize_linear(x, np.float32(0.02), zero)
    bias = g.dequantize_linear(rng.integers(-9999, 9999, of[0], np.int32), np.float32(0.02) * scales, axis=0)
    weights = g.dequantize_linear(extremes(rng, weight, of), scales, zeros, axis=0)
    made = g.conv(wide, weights, bias, **attrs)
    return g.function(g.quantize_linear(made, np.float32(0.7), zero, dtype=kind))


def by_definition(f: Function, x: Array) -> Array:
    """The sums in 64 bits, times one factor, as QLinearConv has it."""
    quantize = f.body
    conv = quantize.args[0]
    (x_of, w_of, b_of), attrs = conv.args, conv.attrs
    distance = x.astype(np.int64) - x_of.args[2].value
    weights = w_of.args[0].value.astype(np.int64) - w_of.args[2].value.reshape(-1, *(1,) * (x.ndim - 2), 1)
    (above, left, below, right), (down, across) = attrs.pads, attrs.strides
    padded = np.pad(distance, ((0, 0), (0, 0), (above, below), (left, right)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, weights.shape[2:], (2, 3))[:, :, ::down, ::across]
    taken = weights.shape[1]
    parts = [
        np.einsum("nchwij,ocij->nohw", seen[:, g * taken : (g + 1) * taken], each)
        for g, each in enumerate(np.split(weights, attrs.groups))
    ]
    total = np.concatenate(parts, 1) + b_of.args[0].value.reshape(-1, 1, 1)
    factor = (x_of.args[1].value * w_of.args[1].value).astype(np.float32) / quantize.args[1].value
    made = np.rint(total.astype(np.float32) * factor.reshape(-1, 1, 1)) + quantize.args[2].value.astype(np.float32)
    return np.clip(made, quantize.dtype.min, quantize.dtype.max).astype(quantize.dtype.numpy)


LAYERS = {
    "points": ((2, 8, 7, 7), (70, 8, 1, 1), {}),
    "windows": ((1, 16, 14, 14), (24, 16, 3, 3), {"pad": 1}),
    "steps": ((1, 3, 20, 20), (16, 3, 3, 3), {"pad": 1, "stride": 2}),
    "groups": ((1, 32, 9, 9), (32, 8, 3, 3), {"pad": 1, "groups": 4}),
    "channels": ((1, 24, 17, 17), (24, 1, 3, 3), {"pad": 1, "groups": 24}),
    "channels in steps": ((2, 5, 33, 30), (5, 1, 5, 5), {"pad": 2, "groups": 5, "stride": 2}),
    "every other point": ((1, 16, 14, 14), (32, 16, 1, 1), {"stride": 2}),
    "points of groups": ((2, 12, 13, 15), (20, 6, 1, 1), {"groups": 2, "stride": (2, 3)}),
}


# Elements, weights and workers.
KINDS = {
    "host": ((tl.u8, tl.i8, 1), (tl.u8, tl.i8, 2), (tl.i8, tl.i8, 1), (tl.u8, tl.u8, 2)),
    "x86-64-v3": ((tl.u8, tl.i8, 2), (tl.i8, tl.i8, 1)),
}


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("name", LAYERS)
def test_sums_are_exact(name: str, target: str) -> None:
    shape, of, attrs = LAYERS[name]
    # Every second layer is of every second kind.
    kinds = KINDS[target] if IS_THOROUGH else KINDS[target][[*LAYERS].index(name) % 2 :: 2]
    for kind, weight, threads in kinds:
        f = layer(kind, weight, shape, of, **attrs)
        x = extremes(np.random.default_rng(1), kind, shape)
        made = compile(f, threads=threads, target=tl.Target.host() if target == "host" else tl.Target(target))
        with effort(Effort.MOST if target == "host" else Effort.NONE):
            found = made(x)
        np.testing.assert_array_equal(found, by_definition(f, x))


@pytest.mark.parametrize("name", LAYERS)
def test_as_written_a_graph_rounds_sums_of_floats(name: str) -> None:
    shape, of, attrs = LAYERS[name]
    f = layer(tl.u8, tl.i8, shape, of, **attrs)
    x = extremes(np.random.default_rng(1), tl.u8, shape)
    plain = compile(f, integers=False)(x)
    assert np.abs(plain.astype(int) - by_definition(f, x).astype(int)).max() <= 1


def test_one_function_computes_a_layer() -> None:
    net = compile(layer(tl.u8, tl.i8, *LAYERS["windows"][:2], **LAYERS["windows"][2]))
    assert [[call.op.name for call in group.calls] for group in net.groups.groups.values()] == [
        ["conv_bytes", "requantize"]
    ]
    assert net.plan.total == 0


def test_the_order_of_least_memory_is_that_of_the_graph_as_it_is_written() -> None:
    g = Builder("orders")
    x, scale = g.input("x", tl.u8[1, 8, 9, 9]), np.float32(0.02)
    rng, made = np.random.default_rng(4), []
    for _ in range(3):
        weights = g.dequantize_linear(extremes(rng, tl.i8, (8, 8, 1, 1)), scale, np.int8(0))
        wide = g.dequantize_linear(x, scale, np.uint8(9))
        made.append(g.quantize_linear(g.conv(wide, weights), scale, np.uint8(7)))
    wide = [g.dequantize_linear(each, scale, np.uint8(7)) for each in made]
    f = g.function(g.quantize_linear(g.add(wide[0], g.add(wide[1], wide[2])), scale, np.uint8(3)))
    given = extremes(rng, tl.u8, (1, 8, 9, 9))
    first, second = compile(f), compile(f, order="memory")
    np.testing.assert_array_equal(first(given), second(given))
    assert second.plan.total <= first.plan.total


def test_products_of_matrices() -> None:
    rng = np.random.default_rng(5)
    g = Builder("dense")
    x = g.input("x", tl.u8[9, 33])
    wide = g.dequantize_linear(x, np.float32(0.03), np.uint8(131))
    scales = rng.uniform(0.001, 0.01, 40).astype(np.float32)
    weights, bias = extremes(rng, tl.i8, (40, 33)), rng.integers(-999, 999, 40, np.int32)
    of = g.dequantize_linear(weights, scales, np.zeros(40, np.int8), axis=0)
    made = g.dense(wide, of, g.dequantize_linear(bias, np.float32(0.03) * scales, axis=0))
    f = g.function(g.quantize_linear(g.relu(made), np.float32(0.2), np.uint8(3)))
    given = extremes(rng, tl.u8, (9, 33))
    total = (given.astype(np.int64) - 131) @ weights.T.astype(np.int64) + bias
    real = total.astype(np.float32) * (np.float32(0.03) * scales)
    wanted = np.clip(np.rint(np.maximum(real, 0) / np.float32(0.2)) + 3, 0, 255).astype(np.uint8)
    np.testing.assert_array_equal(compile(f)(given), wanted)
    assert "matmul_bytes" in str(compile(f).groups)


@pytest.mark.parametrize("weight", [tl.u8, tl.i8])
@pytest.mark.parametrize("kind", [tl.u8, tl.i8])
def test_weights_that_lie_far_from_their_zero_point_stay_bytes(kind: tl.ir.DType, weight: tl.ir.DType) -> None:
    rng = np.random.default_rng(14)
    g = Builder("apart")
    x, zero = g.input("x", kind[2, 3, 24]), g.input("zero", kind)
    weights, point = extremes(rng, weight, (24, 40)), np.asarray(weight.max - 100, weight.numpy)
    f = g.function(g.relu(g.matmul_integer(x, weights, zero, point)))
    net, given = compile(f), extremes(rng, kind, (2, 3, 24))
    names = [[call.op.name for call in group.calls] for group in net.groups.groups.values()]
    assert ["matmul_bytes", "add", "relu"] in names
    if "u8 s8" in processor_called(HOST).dots:  # others multiply words
        assert "i16" not in str(net.ir)
    for origin in (kind.min, 3, kind.max):
        total = (given.astype(np.int64) - origin) @ (weights.astype(np.int64) - int(point))
        np.testing.assert_array_equal(net(given, np.array(origin, kind.numpy)), np.maximum(total, 0))


@pytest.mark.skipif(tl.Target.host().processor.family != "x86-64", reason="no dot products of bytes or halves")
@pytest.mark.parametrize("target", [*["host"] * ("u8 s8" in tl.Target.host().processor.dots), "x86-64-v3"])
@pytest.mark.parametrize(
    ("shape", "of", "attrs", "is_cut"),
    [
        ((1, 20, 7, 7), (64, 20, 3, 3), {"pad": 1}, True),
        ((2, 18, 9, 8), (96, 18, 3, 3), {"stride": 2, "pad": (1, 0, 1, 1)}, True),
        ((1, 32, 5, 5), (512, 32, 1, 1), {}, True),
        ((1, 32, 5, 5), (96, 32, 1, 1), {}, False),
        ((1, 20, 40, 40), (64, 20, 3, 3), {"pad": 1}, False),
        ((1, 20, 7, 7), (70, 20, 3, 3), {"pad": 1}, False),
    ],
)
def test_convolutions_of_many_products_go_by_panels(
    shape: tuple[int, ...], of: tuple[int, ...], attrs: dict[str, Any], *, is_cut: bool, target: str
) -> None:
    f = layer(tl.u8, tl.i8, shape, of, **attrs)
    net, x = compile(f, target=tl.Target(target)), extremes(np.random.default_rng(7), tl.u8, shape)
    assert ("conv_bytes_panels" in str(net.ir)) is is_cut
    np.testing.assert_array_equal(net(x), by_definition(f, x))


@pytest.mark.parametrize("shape", [(1, 20, 7, 7), (1, 20, 40, 40)])
def test_sums_are_stored_in_any_order_where_an_operand_may_lie(shape: tuple[int, ...]) -> None:
    net = compile(layer(tl.u8, tl.i8, shape, (64, 20, 3, 3), pad=1))
    assert "llvm.loop.parallel_accesses" in net.kernel.llvm


@pytest.mark.parametrize("is_first", [True, False])
def test_a_sum_dequantizes_what_is_there_first(*, is_first: bool) -> None:
    rng = np.random.default_rng(3)
    g = Builder("residual")
    x, scale, zero = g.input("x", tl.u8[1, 8, 6, 7]), np.float32(0.05), np.uint8(9)
    wide = g.dequantize_linear(x, scale, zero)
    weights = g.dequantize_linear(extremes(rng, tl.i8, (8, 8, 1, 1)), np.float32(0.002), np.int8(0))
    made = g.dequantize_linear(g.quantize_linear(g.conv(wide, weights), scale, zero), scale, zero)
    total = g.add(wide, made) if is_first else g.add(made, wide)
    f = g.function(g.quantize_linear(total, np.float32(0.1), zero))
    net, image = compile(f), extremes(rng, tl.u8, (1, 8, 6, 7))
    assert [group.calls[0].op.name for group in net.groups.groups.values()] == ["conv_bytes"]
    assert str(net.ir).count("tl.call(") == 1
    off = net(image).astype(int) - compile(f, integers=False)(image)
    assert np.abs(off).max() <= 1
    np.testing.assert_array_equal(net.interpret(image), net(image))


def test_the_zero_point_of_a_run() -> None:
    rng = np.random.default_rng(6)
    g = Builder("dynamic")
    x, zero = g.input("x", tl.u8[1, 6, 9, 9]), g.input("zero", tl.u8)
    weights = extremes(rng, tl.i8, (8, 6, 3, 3))
    f = g.function(g.conv_integer(x, weights, zero, np.int8(0), pad=1))
    given = extremes(rng, tl.u8, (1, 6, 9, 9))
    net = compile(f)
    for point in (0, 7, 255):
        distance = np.pad(given.astype(np.int64) - point, ((0, 0), (0, 0), (1, 1), (1, 1)))
        seen = np.lib.stride_tricks.sliding_window_view(distance, (3, 3), (2, 3))
        wanted = np.einsum("nchwij,ocij->nohw", seen, weights.astype(np.int64))
        np.testing.assert_array_equal(net(given, np.array(point, np.uint8)), wanted)


def test_a_bias_is_one_with_the_zero_point() -> None:
    rng = np.random.default_rng(7)
    g = Builder("bias")
    x = g.input("x", tl.u8[1, 6, 9, 9])
    weights, bias = extremes(rng, tl.i8, (6, 1, 3, 3)), rng.integers(-9999, 9999, (6, 1, 1), np.int32)
    sums = g.conv_integer(x, weights, np.uint8(9), np.int8(0), pad=1, groups=6)
    f = g.function(g.requantize(g.add(sums, bias), np.float32(0.001), np.uint8(100)))
    net = compile(f)
    assert [[call.op.name for call in group.calls] for group in net.groups.groups.values()] == [
        ["conv_bytes", "requantize"]
    ]
    given = extremes(rng, tl.u8, (1, 6, 9, 9))
    np.testing.assert_array_equal(net(given), tl.graph.evaluate(f, given))


def test_sums_are_scaled_where_they_are_made() -> None:
    rng = np.random.default_rng(8)
    g = Builder("dynamic")
    x, zero, scale = g.input("x", tl.u8[5, 12]), g.input("zero", tl.u8), g.input("scale", tl.f32)
    sums = g.cast(g.matmul_integer(x, extremes(rng, tl.i8, (12, 20)), zero, np.int8(0)), tl.f32)
    # As onnxruntime's tool writes it: the scale of both stands behind the product.
    both = g.multiply(g.multiply(scale, 2.0), 0.5)
    f = g.function(g.add(g.multiply(sums, both), rng.standard_normal(20, np.float32)))
    net = compile(f)
    names = [[call.op.name for call in group.calls] for group in net.groups.groups.values()]
    assert ["matmul_bytes", "cast", "multiply", "add"] in names
    given = extremes(rng, tl.u8, (5, 12)), np.array(200, np.uint8), np.array(0.01, np.float32)
    np.testing.assert_allclose(net(*given), tl.graph.evaluate(f, *given), rtol=1e-6)


def test_what_moves_elements_moves_integers() -> None:
    g = Builder("pool")
    x, scale, zero = g.input("x", tl.i8[1, 3, 9, 9]), np.float32(0.1), np.int8(-5)
    pooled = g.max_pool(g.dequantize_linear(x, scale, zero), 3, stride=2, pad=1)
    moved = g.dequantize_linear(g.quantize_linear(pooled, scale, zero, dtype=tl.i8), scale, zero)
    f = g.function(g.quantize_linear(g.transpose(moved, (0, 2, 3, 1)), scale, zero, dtype=tl.i8))
    net = compile(f)
    given = extremes(np.random.default_rng(9), tl.i8, (1, 3, 9, 9))
    np.testing.assert_array_equal(net(given), compile(f, integers=False)(given))
    assert "f32" not in str(net.ir)


def test_what_does_not_fit_stays_as_it_is_written() -> None:
    g = Builder("floats")
    x, w = g.input("x", tl.u8[4, 8]), g.input("w", tl.f32[8, 3])
    wide = g.dequantize_linear(x, np.float32(0.5), np.uint8(3))
    f = g.function(g.matmul(wide, w))
    given = np.arange(32, dtype=np.uint8).reshape(4, 8), np.ones((8, 3), np.float32)
    np.testing.assert_array_equal(compile(f)(*given), compile(f, integers=False)(*given))


def test_what_is_kept_is_computed_as_it_is_written() -> None:
    shape, of, attrs = LAYERS["points"]
    f = layer(tl.u8, tl.i8, shape, of, **attrs)
    kept = f.body.args[0]
    net = compile(f, keep=[kept])
    x = extremes(np.random.default_rng(1), tl.u8, shape)
    np.testing.assert_allclose(net.trace(x)[kept], tl.graph.trace(f, x)[kept], rtol=1e-5, atol=1e-3)
