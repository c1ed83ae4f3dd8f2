"""Cases of the kernels of `tirlite.kernels.operators.order`."""

from __future__ import annotations

import numpy as np
from operator_cases.case import Case, integers, normal

import tirlite as tl
from tirlite.ir import DType
from tirlite.kernels.operators.order import argmax, argmin, cumprod, cumsum, topk

n, m = tl.dims("n m")


SIZES = {n: 4, m: 70}


def sized(shape: tuple) -> tuple[int, ...]:
    return tuple(SIZES.get(each, each) for each in shape)


def arg_case(name: str, shape: tuple, axis: int, *, greatest: bool = True, last: bool = False, dtype=tl.i32) -> Case:
    """A case with equal elements."""
    rest = tuple(1 if k == axis % len(shape) else each for k, each in enumerate(shape))

    def reference(x: np.ndarray) -> np.ndarray:
        function = np.argmax if greatest else np.argmin
        if last:
            return x.shape[axis] - 1 - function(np.flip(x, axis), axis, keepdims=True)
        return function(x, axis, keepdims=True)

    factory = argmax if greatest else argmin
    make = integers(-3, 4, sized(shape), dtype=dtype.numpy.type)
    types = (dtype[shape], tl.i64[rest])
    return Case(
        f"arg{'max' if greatest else 'min'}-{name}", lambda: factory(*types, axis=axis, last=last), make, reference
    )


def with_nan(rng: np.random.Generator) -> tuple[np.ndarray]:
    return (np.array([[1, np.nan, 3, np.nan], [2, 5, 5, 1]], np.float32),)


def topk_case(name: str, shape: tuple, axis: int, count: int, *, largest: bool = True) -> Case:
    result = tuple(count if k == axis % len(shape) else each for k, each in enumerate(shape))

    def reference(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(-x if largest else x, axis, kind="stable")
        order = np.take(order, np.arange(count), axis)
        return np.take_along_axis(x, order, axis), order

    types = (tl.f32[shape], tl.f32[result], tl.i64[result])
    inputs = integers(-5, 6, sized(shape), dtype=np.float32)
    return Case(f"topk-{name}", lambda: topk(*types, axis=axis, largest=largest), inputs, reference)


def cumsum_case(name: str, shape: tuple, axis: int, *, dtype: DType = tl.i64, **attrs: bool) -> Case:
    def reference(x: np.ndarray) -> np.ndarray:
        ordered = np.flip(x, axis) if attrs.get("reverse") else x
        made = np.cumsum(ordered.astype(np.float64 if dtype.is_float else x.dtype), axis).astype(x.dtype)
        made = made - ordered if attrs.get("exclusive") else made
        return np.flip(made, axis) if attrs.get("reverse") else made

    values = normal(sized(shape)) if dtype is tl.f32 else integers(-9, 9, sized(shape), dtype=dtype.numpy.type)
    types = (dtype[shape], dtype[shape])
    return Case(
        f"cumsum-{name}", lambda: cumsum(*types, axis=axis, **attrs), values, reference, 1e-5 if dtype.is_float else 0
    )


def products(x: np.ndarray) -> np.ndarray:
    return np.cumprod(x, 1, dtype=x.dtype)


CASES = (
    arg_case("rows", (n, m), -1),
    arg_case("columns", (3, n, 7), 1, last=True),
    arg_case("first axis", (n, 5), 0, greatest=False, dtype=tl.f16),
    arg_case("last of least", (n, 9), 1, greatest=False, last=True, dtype=tl.u8),
    arg_case("long rows", (2, 300), 1, dtype=tl.f32),
    arg_case("many columns", (2, 9, 40), 1, greatest=False, dtype=tl.f32),
    Case("argmax-nan of columns", lambda: argmax(tl.f32[2, 4], tl.i64[4], axis=0), with_nan, lambda x: np.argmax(x, 0)),
    Case("argmax-nan", lambda: argmax(tl.f32[2, 4], tl.i64[2]), with_nan, lambda x: np.argmax(x, -1)),
    Case("argmin-nan", lambda: argmin(tl.f32[2, 4], tl.i64[2]), with_nan, lambda x: np.argmin(x, -1)),
    topk_case("rows", (n, m), -1, 5),
    topk_case("least", (3, 9, 2), 1, 9, largest=False),
    topk_case("one", (n, 6), 1, 1),
    cumsum_case("rows", (n, m), 1),
    cumsum_case("columns", (2, n, m), 1, dtype=tl.f32),
    cumsum_case("exclusive", (n, 5), 0, exclusive=True),
    cumsum_case("reverse", (n, 5), 1, reverse=True, dtype=tl.i32),
    cumsum_case("both", (n, 5), 1, exclusive=True, reverse=True),
    Case(
        "cumprod",
        lambda: cumprod(tl.i32[n, 5], tl.i32[n, 5], axis=1),
        integers(-4, 5, (4, 5), dtype=np.int32),
        products,
    ),
)
