"""The meanings of operators that make one element of many. Sums of integers wrap in their own type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tirlite.graph.ops.reduction import Arg, CumSum, Reduce
from tirlite.graph.reference.meaning import Array, Meaning


def _reduce(function: Callable[..., Any]) -> Meaning:
    def meaning(attrs: Reduce, x: Array) -> Array:
        return np.asarray(function(x, axis=attrs.axes, keepdims=attrs.keepdims)).astype(x.dtype, copy=False)

    return meaning


def _sum(x: Array, **over: Any) -> Any:
    return np.sum(x, dtype=x.dtype, **over)


def _log_sum_exp(x: Array, axis: tuple[int, ...], keepdims: bool) -> Any:
    most = x.max(axis, keepdims=True)
    most = np.where(np.isfinite(most), most, x.dtype.type(0))
    result = np.log(np.exp(x - most).sum(axis, keepdims=True)) + most
    return result if keepdims else result.squeeze(axis)


def _arg(function: Callable[..., Any]) -> Meaning:
    def meaning(attrs: Arg, x: Array) -> Array:
        if not attrs.last:
            return np.asarray(function(x, axis=attrs.axis, keepdims=attrs.keepdims))
        flipped = function(np.flip(x, attrs.axis), axis=attrs.axis, keepdims=attrs.keepdims)
        return np.asarray(x.shape[attrs.axis] - 1 - flipped)

    return meaning


def _running(function: Callable[..., Any], start: int) -> Meaning:
    def meaning(attrs: CumSum, x: Array) -> Array:
        ordered = np.flip(x, attrs.axis) if attrs.reverse else x
        made = np.asarray(function(ordered, attrs.axis, dtype=x.dtype))
        if attrs.exclusive:
            made = np.roll(made, 1, attrs.axis)
            np.moveaxis(made, attrs.axis, 0)[:1] = start
        return np.flip(made, attrs.axis) if attrs.reverse else made

    return meaning


REDUCTION: dict[str, Meaning] = {
    "argmax": _arg(np.argmax),
    "argmin": _arg(np.argmin),
    "cumprod": _running(np.cumprod, 1),
    "cumsum": _running(np.cumsum, 0),
    "reduce_all": _reduce(np.all),
    "reduce_any": _reduce(np.any),
    "reduce_l1": _reduce(lambda x, **over: _sum(np.abs(x), **over)),
    "reduce_l2": _reduce(lambda x, **over: np.sqrt(_sum(x * x, **over))),
    "reduce_log_sum": _reduce(lambda x, **over: np.log(_sum(x, **over))),
    "reduce_log_sum_exp": _reduce(_log_sum_exp),
    "reduce_max": _reduce(np.max),
    "reduce_mean": _reduce(np.mean),
    "reduce_min": _reduce(np.min),
    "reduce_prod": _reduce(lambda x, **over: np.prod(x, dtype=x.dtype, **over)),
    "reduce_sum": _reduce(_sum),
    "reduce_sum_square": _reduce(lambda x, **over: _sum(x * x, **over)),
}
