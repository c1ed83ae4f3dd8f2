"""Random nodes that look at one element at a time, after broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from graph.onnx.nodes.sample import FLOATS, INTEGERS, NUMBERS, SIGNED, UNSIGNED, Draw, Sample

Maker = Callable[[Draw], Sample]

# The operator, the version that brought it, its element types.
_UNARY = {
    **dict.fromkeys(
        "Ceil Cos Erf Exp Floor Log Reciprocal Sigmoid Sin Softplus Softsign Sqrt Tan Tanh".split(), FLOATS
    ),
    **dict.fromkeys("Acos Acosh Asin Asinh Atan Atanh Cosh Sinh Round".split(), FLOATS),
    **dict.fromkeys(["Abs", "Sign"], NUMBERS),
    **dict.fromkeys(["Neg", "Relu"], FLOATS + SIGNED),
    **dict.fromkeys(["HardSwish", "Mish", "IsNaN"], FLOATS),
    "Not": ("bool",),
    "BitwiseNot": INTEGERS,
    "Identity": (*NUMBERS, "bool"),
}
_SINCE = {
    **dict.fromkeys(["Acosh", "Asinh", "Atanh", "Cosh", "Sinh", "Sign", "Erf", "IsNaN"], 9),
    **{"Round": 11, "HardSwish": 14, "Mish": 18, "BitwiseNot": 18, "IsInf": 10, "Relu": 7, "Gelu": 20, "Celu": 12},
    **dict.fromkeys(["Shrink", "Where"], 9),
    **dict.fromkeys(["ThresholdedRelu", "Mod", "Swish"], 10),
    **dict.fromkeys(["BitwiseAnd", "BitwiseOr", "BitwiseXor"], 18),
    **{"BitShift": 11, "LessOrEqual": 12, "GreaterOrEqual": 12},
}
_BINARY = {
    **dict.fromkeys(["Add", "Sub", "Mul"], NUMBERS),
    "Div": NUMBERS,
    **dict.fromkeys(["And", "Or", "Xor"], ("bool",)),
    "Equal": (*NUMBERS, "bool"),
    **dict.fromkeys(["Less", "Greater", "LessOrEqual", "GreaterOrEqual"], NUMBERS),
    **dict.fromkeys(["BitwiseAnd", "BitwiseOr", "BitwiseXor"], INTEGERS),
}
# Which attributes there are, with values to draw from.
_ATTRIBUTES: dict[str, tuple[tuple[str, ...], dict[str, tuple[object, ...]]]] = {
    "LeakyRelu": (FLOATS, {"alpha": (None, 0.3, -0.5, 2.0)}),
    "Elu": (FLOATS, {"alpha": (None, 0.3, 2.0)}),
    "Celu": (("float32",), {"alpha": (None, 0.3, 2.0)}),
    "Selu": (FLOATS, {"alpha": (None, 2.0), "gamma": (None, 0.5)}),
    "Gelu": (FLOATS, {"approximate": (None, "none", "tanh")}),
    "HardSigmoid": (FLOATS, {"alpha": (None, 0.5), "beta": (None, 0.1)}),
    "ThresholdedRelu": (FLOATS, {"alpha": (None, 0.0, 0.7)}),
    "Shrink": (NUMBERS, {"bias": (None, 1.5), "lambd": (None, 1.0, 0.0)}),
    "IsInf": (("float32", "float64"), {"detect_negative": (None, 0, 1), "detect_positive": (None, 0, 1)}),
}


def _data(d: Draw, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    x = d.array(shape, dtype)
    if dtype in FLOATS and x.size and d.chance(0.3):
        x.reshape(-1)[d.between(0, x.size - 1)] = d.of([np.nan, np.inf, -np.inf, 0.0, -0.0])
    return x


def _unary(op: str, d: Draw) -> Sample:
    d.opset = max(d.opset, _SINCE.get(op, 7))
    dtype = d.dtype(_UNARY[op])
    return d.sample(op, [_data(d, d.shape(), dtype)])


def _attributed(op: str, d: Draw) -> Sample:
    d.opset = max(d.opset, _SINCE.get(op, 7))
    dtypes, attributes = _ATTRIBUTES[op]
    x = _data(d, d.shape(), d.dtype(dtypes))
    return d.sample(op, [x], **{name: d.of(values) for name, values in attributes.items()})


def _shapes(d: Draw, count: int = 2) -> list[tuple[int, ...]]:
    whole = d.shape()
    shapes = [d.broadcast(whole) for _ in range(count)]
    if d.chance(0.7):
        shapes[d.between(0, count - 1)] = whole
    return shapes


def _binary(op: str, d: Draw) -> Sample:
    d.opset = max(d.opset, _SINCE.get(op, 7))
    dtype = d.dtype(_BINARY[op])
    first, second = (_data(d, shape, dtype) for shape in _shapes(d))
    if op == "Div" and dtype not in FLOATS:
        second[second == 0] = 3
    return d.sample(op, [first, second], fixed=[1] if d.chance(0.2) else [])


def _mod(d: Draw) -> Sample:
    d.opset = max(d.opset, 10)
    dtype = d.dtype(NUMBERS)
    first, second = (d.array(shape, dtype) for shape in _shapes(d))
    second[second == 0] = 3
    return d.sample("Mod", [first, second], fmod=1 if dtype in FLOATS else d.of([None, 0, 1]))


def _pow(d: Draw) -> Sample:
    shapes = _shapes(d)
    if d.opset < 12:
        dtypes = [d.dtype(("float32", "float64"))] * 2
    else:
        dtypes = [d.dtype(("float32", "float64", "int32", "int64")), d.dtype(("float32", "int32", "int64", "float64"))]
    x, y = (d.array(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True))
    x = np.abs(x) if d.chance(0.7) else x
    if dtypes[0].startswith("int"):
        # What no integer holds is anybody's guess.
        return d.sample("Pow", [x % 5, np.abs(y) % 4])
    return d.sample("Pow", [x, np.round(y) % 4 if d.chance() else y])


def _shift(d: Draw) -> Sample:
    d.opset = max(d.opset, 11)
    dtype = d.dtype(UNSIGNED)
    first, second = (d.array(shape, dtype) for shape in _shapes(d))
    return d.sample("BitShift", [first, second % 8], direction=d.of(["LEFT", "RIGHT"]))


def _several(op: str, d: Draw) -> Sample:
    dtypes = FLOATS if op in ("Sum", "Mean") or d.opset < 12 else NUMBERS
    dtype = d.dtype(dtypes)
    operands = [_data(d, shape, dtype) for shape in _shapes(d, d.between(1, 4))]
    return d.sample(op, operands)


def _where(d: Draw) -> Sample:
    d.opset = max(d.opset, 9)
    condition, *data = _shapes(d, 3)
    dtype = d.dtype((*NUMBERS, "bool"))
    return d.sample("Where", [d.array(condition, "bool"), *(d.array(shape, dtype) for shape in data)])


def _prelu(d: Draw) -> Sample:
    shape, dtype = d.shape(1), d.dtype(FLOATS if d.opset < 9 else (*FLOATS, "int32", "int64"))
    return d.sample("PRelu", [d.array(shape, dtype), d.array(d.broadcast(shape), dtype)])


def _clip(d: Draw) -> Sample:
    low, high = sorted(d.rng.standard_normal(2) * 4)
    has = d.chance(0.7), d.chance(0.7)
    if d.opset < 11:
        attrs = {"min": float(low) if has[0] else None, "max": float(high) if has[1] else None}
        return d.sample("Clip", [d.array(d.shape(), d.dtype())], **attrs)
    dtype = d.dtype(FLOATS if d.opset < 12 else NUMBERS)
    limits = [
        np.array(each).astype(d.array((), dtype).dtype) for each in (abs(low) if dtype in UNSIGNED else low, abs(high))
    ]
    limits.sort()
    x = d.array(d.shape(), dtype)
    operands = [x, *(limit if given else None for limit, given in zip(limits, has, strict=True))]
    return d.sample("Clip", operands, fixed=[1, 2] if d.chance() else [])


def _cast(d: Draw) -> Sample:
    from onnx import helper

    names = (*NUMBERS, "bool")
    source, target = d.of(names), d.of(names)
    x = d.array(d.shape(), source)
    if target in UNSIGNED:
        x = np.abs(x) if source != "bool" else x
    kind = helper.np_dtype_to_tensor_dtype(d.array((), target).dtype)
    if d.opset >= 15 and d.chance(0.3):
        return d.sample("CastLike", [x, d.array((1,), target)])
    d.opset = max(d.opset, 13 if "bfloat16" in (source, target) else 7)
    return d.sample("Cast", [x], to=kind)


ELEMENTWISE: dict[str, Maker] = {
    **{op: partial(_unary, op) for op in _UNARY},
    **{op: partial(_attributed, op) for op in _ATTRIBUTES},
    **{op: partial(_binary, op) for op in _BINARY},
    **{op: partial(_several, op) for op in ("Sum", "Mean", "Max", "Min")},
    **{"Mod": _mod, "Pow": _pow, "BitShift": _shift, "Where": _where, "PRelu": _prelu, "Clip": _clip, "Cast": _cast},
}
