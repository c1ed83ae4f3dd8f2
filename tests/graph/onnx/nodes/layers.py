"""Random nodes on quantised numbers, recurrent layers, and others that are made of many steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from graph.onnx.nodes.sample import Draw, Sample

Maker = Callable[[Draw], Sample]


def _scales(d: Draw, shape: tuple[int, ...]) -> np.ndarray:
    return np.asarray(d.rng.random(shape) * 0.2 + 0.05, np.float32)


def _along(d: Draw, shape: tuple[int, ...], kind: str) -> tuple[np.ndarray, np.ndarray | None, dict[str, Any]]:
    """A scale and a zero point: one, one for each index of an axis, or one for each block."""
    attrs: dict[str, Any] = {}
    extents: tuple[int, ...] = ()
    if shape and d.opset >= 13 and d.chance():
        axis = d.axis(len(shape))
        extents, attrs = (shape[axis],), {"axis": axis}
        if d.opset >= 21 and d.chance(0.5) and all(shape):
            size = d.between(1, shape[axis])
            place = axis % len(shape)
            blocks = -(-shape[axis] // size)
            extents = (*shape[:place], blocks, *shape[place + 1 :])
            attrs["block_size"] = size
    zero = d.array(extents, kind) if d.chance(0.7) else None
    return _scales(d, extents), zero, attrs


def _quantize(d: Draw) -> Sample:
    d.opset = max(d.opset, 10)
    shape = d.shape(0, 4)
    kind = d.of(["uint8", "int8"] + (["uint16", "int16"] if d.opset >= 21 else []))
    scale, zero, attrs = _along(d, shape, kind)
    return d.sample("QuantizeLinear", [d.array(shape), scale, zero], **attrs)


def _dequantize(d: Draw) -> Sample:
    d.opset = max(d.opset, 10)
    shape = d.shape(0, 4)
    kind = d.of(["uint8", "int8", "int32"] + (["uint16", "int16"] if d.opset >= 21 else []))
    scale, zero, attrs = _along(d, shape, kind)
    zero = None if kind == "int32" else zero
    return d.sample("DequantizeLinear", [d.array(shape, kind), scale, zero], **attrs)


def _dynamic(d: Draw) -> Sample:
    d.opset = max(d.opset, 11)
    return d.sample("DynamicQuantizeLinear", [d.array(d.shape(1, 3, empty=0))], outputs=3)


def _matmul_integer(d: Draw) -> Sample:
    d.opset = max(d.opset, 10)
    n, k, m = (d.between(1, 20) for _ in range(3))
    batch = d.shape(0, 1, empty=0)
    kinds = [d.of(["uint8", "int8"]) for _ in range(2)]
    a, b = d.array((*batch, n, k), kinds[0]), d.array((k, m), kinds[1])
    zero_a = d.array((), kinds[0]) if d.chance() else None
    zero_b = d.array((m,) if d.chance(0.4) else (), kinds[1]) if d.chance() else None
    return d.sample("MatMulInteger", [a, b, zero_a, zero_b])


def _qlinear_matmul(d: Draw) -> Sample:
    d.opset = max(d.opset, 10)
    n, k, m = (d.between(1, 10) for _ in range(3))
    kinds = ["uint8", d.of(["uint8", "int8"]), "uint8"]
    columns = (m,) if d.chance(0.3) else ()
    a, b = d.array((n, k), kinds[0]), d.array((k, m), kinds[1])
    operands = [a, _scales(d, ()), d.array((), kinds[0]), b, _scales(d, columns), d.array(columns, kinds[1])]
    return d.sample("QLinearMatMul", [*operands, _scales(d, ()), d.array((), kinds[2])], fixed=[1, 2, 4, 5, 6, 7])


def _conv_operands(d: Draw, kind: str) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    groups = d.of([1, 2])
    window = [1, 1] if d.chance(0.3) else [d.between(1, 3), d.between(1, 3)]
    x = d.array((d.between(1, 2), 2 * groups, *(size + d.between(1, 4) for size in window)), "uint8")
    w = d.array((3 * groups, 2, *window), kind)
    attrs: dict[str, Any] = {"group": groups}
    if d.chance():
        attrs["pads"] = [d.between(0, size - 1) for size in (*window, *window)]
    elif d.chance(0.4):
        attrs["auto_pad"] = d.of(["SAME_UPPER", "SAME_LOWER", "VALID"])
    if d.chance():
        attrs["strides"] = [d.between(1, 2), d.between(1, 2)]
    return x, w, attrs


def _conv_integer(d: Draw) -> Sample:
    d.opset = max(d.opset, 10)
    x, w, attrs = _conv_operands(d, "uint8")
    zero = d.array((), "uint8") if d.chance() else None
    return d.sample("ConvInteger", [x, w, zero], **attrs)


def _qlinear_conv(d: Draw) -> Sample:
    d.opset = max(d.opset, 10)
    kind = d.of(["uint8", "int8"])
    x, w, attrs = _conv_operands(d, kind)
    each = (w.shape[0],) if d.chance(0.4) and kind == "int8" else ()
    zero_w = np.zeros(each, kind) if each else d.array((), kind)
    bias = d.array((w.shape[0],), "int32") if d.chance() else None
    operands = [
        x,
        _scales(d, ()),
        d.array((), "uint8"),
        w,
        _scales(d, each),
        zero_w,
        _scales(d, ()),
        d.array((), "uint8"),
    ]
    return d.sample("QLinearConv", [*operands, bias], fixed=range(1, 9) if bias is not None else range(1, 8), **attrs)


_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_ACTIVATIONS = ("Sigmoid", "Tanh", "Relu", "HardSigmoid", "Softsign")
_COUNT = {"LSTM": 3, "GRU": 2, "RNN": 1}


def _recurrent(op: str, d: Draw) -> Sample:
    time, batch, inputs, hidden = d.between(1, 4), d.between(1, 3), d.between(1, 4), d.between(1, 4)
    direction = d.of([None, "forward", "reverse", "bidirectional"])
    ways, gates = (2 if direction == "bidirectional" else 1), _GATES[op]
    layout = d.of([None, None, 0, 1]) if d.opset >= 14 else None
    x = d.array((batch, time, inputs) if layout else (time, batch, inputs))
    states = (batch, ways, hidden) if layout else (ways, batch, hidden)
    operands: list[np.ndarray | None] = [
        x,
        d.array((ways, gates * hidden, inputs), scale=0.5),
        d.array((ways, gates * hidden, hidden), scale=0.5),
        d.array((ways, 2 * gates * hidden)) if d.chance(0.6) else None,
        np.asarray(d.rng.integers(1, time + 1, batch), np.int32) if d.chance(0.3) else None,
        d.array(states) if d.chance(0.4) else None,
    ]
    attrs: dict[str, Any] = {"hidden_size": hidden, "direction": direction, "layout": layout}
    if op == "LSTM":
        operands.append(d.array(states) if d.chance(0.4) else None)
        operands.append(d.array((ways, 3 * hidden), scale=0.5) if d.chance(0.25) else None)
        attrs["input_forget"] = 1 if d.chance(0.05) else None
    if op == "GRU":
        attrs["linear_before_reset"] = d.of([None, 0, 1])
    if d.chance(0.2):
        attrs["activations"] = [d.of(_ACTIVATIONS) for _ in range(_COUNT[op] * ways)]
    if d.chance(0.08):
        attrs["clip"] = 0.5
    return d.sample(op, operands, fixed=[1, 2, 3] if d.chance(0.7) else [], outputs=3 if op == "LSTM" else 2, **attrs)


def _attention(d: Draw) -> Sample:
    d.opset = max(d.opset, 23)
    batch, heads, size, queries, keys = (
        d.between(1, 2),
        d.between(1, 3),
        d.between(1, 4),
        d.between(1, 4),
        d.between(1, 4),
    )
    shapes = [(batch, heads, count, size) for count in (queries, keys, keys)]
    mask = d.array((queries, keys), d.of(["float32", "bool"])) if d.chance(0.4) else None
    if mask is not None and mask.dtype == bool:
        mask[:, 0] = True
    attrs: dict[str, Any] = {
        "is_causal": d.of([None, None, 1]),
        "scale": d.of([None, 0.3]),
        "softcap": d.of([None, None, 2.0]),
    }
    return d.sample("Attention", [*(d.array(shape) for shape in shapes), mask], **attrs)


def _rotary(d: Draw) -> Sample:
    d.opset = max(d.opset, 23)
    batch, heads, length, half = d.between(1, 2), d.between(1, 3), d.between(1, 4), d.between(1, 3)
    x = d.array((batch, heads, length, 2 * half))
    caches = [d.array((8, half)) for _ in range(2)]
    positions = np.asarray(d.rng.integers(0, 8, (batch, length)), np.int64)
    return d.sample("RotaryEmbedding", [x, *caches, positions], interleaved=d.of([None, 0, 1]))


def _dft(d: Draw) -> Sample:
    d.opset = max(d.opset, 17)
    inverse = d.of([None, 0, 1])
    x = d.array((d.between(1, 2), d.between(1, 6), d.between(1, 4), 2 if inverse else d.of([1, 2])))
    one_sided = 1 if d.chance(0.3) and (inverse or x.shape[-1] == 1) else None
    axis = d.of([None, 1, 2])
    length = np.asarray(d.between(1, 7), np.int64) if d.chance(0.3) else None
    if d.opset < 20:
        return d.sample("DFT", [x, length], fixed=[1], inverse=inverse, onesided=one_sided, axis=axis)
    place = None if axis is None else np.asarray(axis, np.int64)
    return d.sample("DFT", [x, length, place], fixed=[1, 2], inverse=inverse, onesided=one_sided)


def _stft(d: Draw) -> Sample:
    d.opset = max(d.opset, 17)
    length = d.of([4, 6, 8])
    signal = d.array((d.between(1, 2), length + d.between(0, 9), 1))
    step = np.asarray(d.between(1, 3), np.int64)
    window = d.array((length,)) if d.chance(0.7) else None
    operands = [signal, step, window, np.asarray(length, np.int64)]
    return d.sample("STFT", operands, fixed=[1, 2, 3], onesided=d.of([None, 0, 1]))


LAYERS: dict[str, Maker] = {
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic,
    "MatMulInteger": _matmul_integer,
    "QLinearMatMul": _qlinear_matmul,
    "ConvInteger": _conv_integer,
    "QLinearConv": _qlinear_conv,
    **{op: partial(_recurrent, op) for op in _GATES},
    "Attention": _attention,
    "RotaryEmbedding": _rotary,
    "DFT": _dft,
    "STFT": _stft,
}
