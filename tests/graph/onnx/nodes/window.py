"""Random nodes that move a window over spatial axes, or resample them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from graph.onnx.nodes.sample import FLOATS, Draw, Sample

Maker = Callable[[Draw], Sample]


def _geometry(d: Draw, axes: int) -> dict[str, Any]:
    attrs: dict[str, Any] = {}
    if d.chance():
        attrs["strides"] = [d.between(1, 3) for _ in range(axes)]
    if d.chance(0.4):
        attrs["dilations"] = [d.between(1, 2) for _ in range(axes)]
    return attrs


def _padding(d: Draw, window: list[int]) -> dict[str, Any]:
    how = d.of(["none", "pads", "pads", "auto"])
    if how == "auto":
        return {"auto_pad": d.of(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])}
    return {} if how == "none" else {"pads": [d.between(0, size - 1) for size in (*window, *window)]}


def _extents(d: Draw, window: list[int], attrs: dict[str, Any]) -> list[int]:
    reach = [dilation * (size - 1) + 1 for size, dilation in zip(window, attrs.get("dilations", [1] * 3), strict=False)]
    return [each + d.between(0, 6) for each in reach]


def _conv(op: str, d: Draw) -> Sample:
    axes, groups = d.between(1, 3), d.of([1, 1, 2, 3])
    window = [d.between(1, 3) for _ in range(axes)]
    attrs = _geometry(d, axes) | _padding(d, window)
    if op == "ConvTranspose" and attrs.get("auto_pad", "").startswith("SAME"):
        attrs["strides"] = [d.between(1, size) for size in window]
    if op == "ConvTranspose" and attrs.get("auto_pad", "NOTSET") == "NOTSET" and d.chance(0.3) and "strides" in attrs:
        attrs["output_padding"] = [d.between(0, stride - 1) for stride in attrs["strides"]]
    taken, made = d.between(1, 3), d.between(1, 5)
    dtype = d.dtype(("float32", "float32", "float64", "float16"))
    x = d.array((d.between(1, 2), taken * groups, *_extents(d, window, attrs)), dtype)
    weights = (made * groups, taken, *window) if op == "Conv" else (taken * groups, made, *window)
    operands = [x, d.array(weights, dtype, 0.5), d.array((made * groups,), dtype) if d.chance() else None]
    kernel = window if d.chance() else None
    return d.sample(op, operands, fixed=[1, 2] if d.chance(0.7) else [], group=groups, kernel_shape=kernel, **attrs)


def _pool(op: str, d: Draw) -> Sample:
    axes = d.between(1, 3)
    window = [d.between(1, 3) for _ in range(axes)]
    attrs = _geometry(d, axes)
    if op == "MaxPool" and d.opset < 10 or op == "AveragePool" and d.opset < 19 or op == "LpPool" and d.opset < 18:
        attrs.pop("dilations", None)
    attrs |= _padding(d, window)
    if attrs.get("auto_pad", "").startswith("SAME"):
        # Others do not agree with the standard, nor with each other, on dilations, and on steps beyond the window.
        attrs.pop("dilations", None)
        attrs["strides"] = [d.between(1, size) for size in window]
    if op == "MaxPool" and d.opset >= 10 or op == "AveragePool" and d.opset >= 10 or op == "LpPool" and d.opset >= 18:
        attrs["ceil_mode"] = d.of([None, 0, 1])
    if op == "AveragePool":
        attrs["count_include_pad"] = d.of([None, 0, 1])
    if op == "LpPool":
        attrs["p"] = d.of([None, 1, 2, 3])
    dtype = d.dtype(FLOATS[:3] if op != "MaxPool" or d.opset < 12 else (*FLOATS[:3], "int8", "uint8"))
    x = d.array((d.between(1, 2), d.between(1, 3), *_extents(d, window, attrs)), dtype)
    outputs = 2 if op == "MaxPool" and d.opset >= 8 and d.chance(0.25) else 1
    order = d.of([None, 0, 1]) if outputs == 2 else None
    return d.sample(op, [x], outputs=outputs, storage_order=order, kernel_shape=window, **attrs)


def _global(op: str, d: Draw) -> Sample:
    x = d.array((d.between(1, 2), d.between(1, 3), *d.shape(1, 3, empty=0)), d.dtype(FLOATS[:3]))
    return d.sample(op, [x], **({"p": d.of([None, 1, 3])} if op == "GlobalLpPool" else {}))


def _lrn(d: Draw) -> Sample:
    x = d.array((d.between(1, 2), d.between(1, 6), *d.shape(0, 2)), "float32")
    more = {"alpha": d.of([None, 0.1]), "beta": d.of([None, 0.5]), "bias": d.of([None, 2.0])}
    return d.sample("LRN", [x], size=d.of([1, 3, 5]), **more)


_COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric")


def _resize(d: Draw) -> Sample:
    rank = d.between(2, 4)
    shape = [d.between(1, 2), d.between(1, 2), *(d.between(2, 6) for _ in range(rank - 2))][:rank]
    x = d.array(shape, d.dtype(("float32", "float32", "float64", "uint8", "int8", "int32")))
    scaled = [1] * min(2, rank - 1) + [0] * rank
    scales = [1.0 if scaled[axis] and rank > 2 else d.of([0.5, 0.6, 1.0, 1.5, 2.0, 2.7]) for axis in range(rank)]
    mode = d.of(["nearest", "linear", "nearest", "cubic"] if rank == 4 else ["nearest", "linear"])
    if mode != "nearest" and x.dtype.kind != "f":
        x = x.astype(np.float32)
    if d.opset < 11:
        d.opset = max(d.opset, 7)
        mode = "nearest" if mode == "cubic" else mode
        x = x.astype(np.float32)
        scales = [max(each, 1.0) for each in scales]
        if d.opset < 9:
            return d.sample("Upsample", [x], mode=mode, scales=scales)
        op = "Upsample" if d.opset == 9 else "Resize"
        return d.sample(op, [x, np.asarray(scales, np.float32)], fixed=[1], mode=mode)
    attrs: dict[str, Any] = {"mode": mode if d.chance(0.8) or mode != "nearest" else None}
    how = list(_COORDINATES[:4] if d.opset < 19 else _COORDINATES)
    attrs["coordinate_transformation_mode"] = d.of([None, *how])
    if mode == "nearest":
        attrs["nearest_mode"] = d.of([None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic":
        attrs["cubic_coeff_a"], attrs["exclude_outside"] = d.of([None, -0.5]), d.of([None, 0, 1])
    if d.opset >= 18 and mode != "nearest":
        attrs["antialias"] = d.of([None, None, 0, 1])
    roi = None if d.opset >= 13 else np.zeros(0, np.float32)
    sizes = np.asarray([max(1, int(extent * scale)) for extent, scale in zip(shape, scales, strict=True)], np.int64)
    if d.chance():
        ratios = np.asarray(scales, np.float32)
        return d.sample("Resize", [x, roi, ratios], fixed=[1, 2], **attrs)
    empty = None if d.opset >= 13 else np.zeros(0, np.float32)
    return d.sample("Resize", [x, roi, empty, sizes], fixed=[1, 2, 3], **attrs)


def _unpool(d: Draw) -> Sample:
    d.opset = max(d.opset, 9)
    n, c, h, w = 1, d.between(1, 2), d.between(1, 3), d.between(1, 3)
    places = np.stack([d.rng.permutation(4 * h * w)[: h * w].reshape(h, w) for _ in range(c)])
    indices = (places + np.arange(c).reshape(-1, 1, 1) * 4 * h * w)[None].astype(np.int64)
    return d.sample("MaxUnpool", [d.array((n, c, h, w)), indices], kernel_shape=[2, 2], strides=[2, 2])


def _grid(d: Draw) -> Sample:
    d.opset = max(d.opset, 16)
    modes = ("bilinear", "nearest", "bicubic") if d.opset < 20 else ("linear", "nearest", "cubic")
    three = d.opset >= 20 and d.chance(0.2)
    axes = 3 if three else 2
    x = d.array((d.between(1, 2), d.between(1, 3), *(d.between(2, 5) for _ in range(axes))))
    grid = d.array((x.shape[0], *(d.between(1, 4) for _ in range(axes)), axes), scale=0.8)
    mode = d.of([None, *(modes[:2] if three else modes)])
    padding = d.of([None, "zeros", "border", "reflection"])
    return d.sample("GridSample", [x, grid], mode=mode, padding_mode=padding, align_corners=d.of([None, 0, 1]))


def _roi(d: Draw) -> Sample:
    d.opset = max(d.opset, 10)
    x = d.array((2, d.between(1, 2), d.between(4, 7), d.between(4, 7)))
    count = d.between(1, 3)
    corners = np.sort(d.rng.random((count, 2, 2)) * 8, 1).reshape(count, 4).astype(np.float32)
    attrs = {"mode": d.of([None, "avg", "max"]), "output_height": d.of([None, 2]), "output_width": d.of([None, 3])}
    attrs |= {"sampling_ratio": d.of([None, 1, 2]), "spatial_scale": d.of([None, 0.5])}
    if d.opset >= 16:
        attrs["coordinate_transformation_mode"] = d.of([None, "half_pixel", "output_half_pixel"])
    return d.sample("RoiAlign", [x, corners, d.rng.integers(0, 2, count)], **attrs)


WINDOW: dict[str, Maker] = {
    **{op: partial(_conv, op) for op in ("Conv", "ConvTranspose")},
    **{op: partial(_pool, op) for op in ("MaxPool", "AveragePool", "LpPool")},
    **{op: partial(_global, op) for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")},
    "LRN": _lrn,
    "Resize": _resize,
    "MaxUnpool": _unpool,
    "GridSample": _grid,
    "RoiAlign": _roi,
}
