"""The meanings of convolutions and pools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tirlite.graph.ops.convolution import Conv, ConvTranspose, Pool, pads_of
from tirlite.graph.reference.meaning import Array, Meaning, plain


def _pairs(pads: Sequence[Any]) -> list[tuple[int, int]]:
    """(before, behind) for all axes, of what is given for the spatial ones."""
    half = len(pads) // 2
    return [(0, 0), (0, 0), *zip(pads[:half], pads[half:], strict=True)]


def _windows(x: Array, window: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Array:
    """`[batch, channels, *places, *window]`: what the window sees at each of its places."""
    axes = len(window)
    reach = [dilation * (size - 1) + 1 for size, dilation in zip(window, dilations, strict=True)]
    seen = sliding_window_view(x, reach, tuple(range(2, 2 + axes)))
    return seen[(slice(None), slice(None), *_every((*strides, *dilations)))]


def _every(steps: Sequence[int]) -> list[slice]:
    return [slice(None, None, step) for step in steps]


def _conv(attrs: Conv, x: Array, weight: Array, bias: Array | None = None) -> Array:
    padded = np.pad(x, _pairs(pads_of(attrs, x.shape[2:], weight.shape[2:])))
    seen = _windows(padded, weight.shape[2:], attrs.strides, attrs.dilations)
    axes = x.ndim - 2
    parts = []
    for channels, kernel in zip(np.split(seen, attrs.groups, 1), np.split(weight, attrs.groups, 0), strict=True):
        summed = [1, *range(2 + axes, 2 + 2 * axes)]
        parts.append(np.tensordot(channels, kernel, (summed, [1, *range(2, 2 + axes)])))
    return _with_bias(np.moveaxis(np.concatenate(parts, -1), -1, 1), bias)


def _with_bias(result: Array, bias: Array | None) -> Array:
    return result if bias is None else np.asarray(result + bias.reshape(-1, *(1,) * (result.ndim - 2)))


def _conv_transpose(attrs: ConvTranspose, x: Array, weight: Array, bias: Array | None = None) -> Array:
    """The convolution of x, its elements put apart by the strides, with the windows turned around."""
    axes = x.ndim - 2
    extents = [(extent - 1) * step + 1 for extent, step in zip(x.shape[2:], attrs.strides, strict=True)]
    spaced = np.zeros((*x.shape[:2], *extents), x.dtype)
    spaced[(slice(None), slice(None), *_every(attrs.strides))] = x
    turned = weight[(slice(None), slice(None), *_every([-1] * axes))]
    # [inputs, outputs of a group] becomes [outputs, inputs of a group].
    groups = np.split(turned, attrs.groups, 0)
    kernel = np.concatenate([np.swapaxes(group, 0, 1) for group in groups], 0)
    extra = attrs.output_padding or (0,) * axes
    reach = [d * (k - 1) for k, d in zip(weight.shape[2:], attrs.dilations, strict=True)]
    wide = (*reach, *(r + e for r, e in zip(reach, extra, strict=True)))
    full = _conv(Conv((1,) * axes, wide, attrs.dilations, attrs.groups), spaced, kernel)
    cuts = zip(_pairs(attrs.pads), full.shape, strict=True)
    return _with_bias(full[tuple(slice(before, end - behind) for (before, behind), end in cuts)], bias)


def _padded(attrs: Pool, x: Array, fill: Any, beyond: Any) -> Array:
    """x with its padding of `fill`, and with `beyond` where windows of the ceil mode reach further."""
    result = np.pad(x, _pairs(attrs.pads), constant_values=fill)
    if attrs.ceil_mode:
        more = [-(n - d * (k - 1) - 1) % s for n, k, s, d in _along(attrs, result)]
        result = np.pad(result, [(0, 0), (0, 0), *((0, each) for each in more)], constant_values=beyond)
    return result


def _along(attrs: Pool, x: Array) -> list[tuple[int, int, int, int]]:
    return list(zip(x.shape[2:], attrs.window, attrs.strides, attrs.dilations, strict=True))


def _places(attrs: Pool, x: Array) -> tuple[slice, ...]:
    """The places that count: in ceil mode those that begin in the padding behind the tensor do not."""
    starts = zip(x.shape[2:], attrs.pads, attrs.strides, strict=False)
    return tuple(
        slice(0, -(-(extent + before) // step) if attrs.ceil_mode else None) for extent, before, step in starts
    )


def _pooled(attrs: Pool, x: Array, fill: Any, beyond: Any) -> Array:
    attrs = replace(attrs, pads=pads_of(attrs, x.shape[2:], attrs.window), same="")
    seen = _windows(_padded(attrs, x, fill, beyond), attrs.window, attrs.strides, attrs.dilations)
    return seen[(slice(None), slice(None), *_places(attrs, x))]


def _max_pool(attrs: Pool, x: Array) -> Array:
    least = -np.inf if x.dtype.kind == "f" else False if x.dtype.kind == "b" else np.iinfo(x.dtype).min
    axes = x.ndim - 2
    return np.asarray(_pooled(attrs, x, least, least).max(tuple(range(-axes, 0))))


def _max_pool_indices(attrs: Pool, x: Array) -> tuple[Array, Array]:
    """The greatest elements, and where in its channel each stands: the first of equals, nan before all others."""
    axes = x.ndim - 2
    places = np.arange(np.prod(x.shape[2:])).reshape(1, 1, *x.shape[2:])
    least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    seen, at = _pooled(attrs, x, least, least), _pooled(attrs, places, -1, -1)
    seen, at = (each.reshape(*each.shape[: 2 + axes], -1) for each in (seen, at))
    # What stands in the padding is not an element: it comes last of equals.
    order = np.argsort(at < 0, -1, kind="stable")
    seen = np.take_along_axis(seen, np.broadcast_to(order, seen.shape), -1)
    first = seen.argmax(-1)[..., None]
    found = np.take_along_axis(np.broadcast_to(np.take_along_axis(at, order, -1), seen.shape), first, -1)
    return np.take_along_axis(seen, first, -1)[..., 0], found[..., 0].astype(np.int64)


def _average_pool(attrs: Pool, x: Array) -> Array:
    over = tuple(range(2 - x.ndim, 0))
    counted = np.ones((1, 1, *x.shape[2:]), x.dtype)
    counts = _pooled(attrs, counted, 1 if attrs.count_include_pad else 0, 0).sum(over)
    return np.asarray(_pooled(attrs, x, 0, 0).sum(over) / counts)


CONVOLUTION: dict[str, Meaning] = {
    "average_pool": _average_pool,
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "global_average_pool": plain(lambda x: x.mean(tuple(range(2, x.ndim)), keepdims=True)),
    "global_max_pool": plain(lambda x: x.max(tuple(range(2, x.ndim)), keepdims=True)),
    "max_pool": _max_pool,
    "max_pool_indices": _max_pool_indices,
}
