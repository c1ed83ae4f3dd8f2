"""Random nodes that put elements elsewhere, join and divide tensors, or make them of numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from graph.onnx.nodes.sample import FLOATS, NUMBERS, Draw, Sample

Maker = Callable[[Draw], Sample]
ANY = (*NUMBERS, "bool")


def _ints(values: object) -> np.ndarray:
    return np.asarray(values, np.int64)


def _data(d: Draw, *, low: int = 0, high: int = 4) -> np.ndarray:
    return d.array(d.shape(low, high), d.dtype(ANY))


def _transpose(d: Draw) -> Sample:
    x = _data(d)
    return d.sample("Transpose", [x], perm=None if d.chance(0.2) else [int(each) for each in d.rng.permutation(x.ndim)])


def _reshape(d: Draw) -> Sample:
    x = _data(d)
    extents = [int(each) for each in d.rng.permutation(x.shape)]
    if len(extents) > 1 and d.chance():
        extents = [extents[0] * extents[1], *extents[2:]]
    if d.chance(0.3):
        extents.insert(d.between(0, len(extents)), 1)
    for place, extent in enumerate(extents):
        if place < x.ndim and extent == x.shape[place] and d.chance(0.4):
            extents[place] = 0
    if extents and x.size and d.chance(0.4):
        extents[d.between(0, len(extents) - 1)] = -1
    return d.sample("Reshape", [x, _ints(extents)], fixed=[1])


def _flatten(d: Draw) -> Sample:
    x = _data(d)
    least = -x.ndim if d.opset >= 11 else 0
    return d.sample(
        "Flatten", [x], axis=d.between(least, x.ndim) if x.ndim and d.chance(0.8) else None if x.ndim else 0
    )


def _squeeze(d: Draw) -> Sample:
    shape = list(d.shape(0, 3))
    for _ in range(d.between(1, 2)):
        shape.insert(d.between(0, len(shape)), 1)
    ones = [axis for axis, extent in enumerate(shape) if extent == 1]
    axes = [axis - len(shape) if d.opset >= 11 and d.chance(0.3) else axis for axis in d.some(ones)]
    x = d.array(shape, d.dtype(ANY))
    axes = axes if d.chance(0.85) else None
    if d.opset < 13:
        return d.sample("Squeeze", [x], axes=axes)
    return d.sample("Squeeze", [x, None if axes is None else _ints(axes)], fixed=[1])


def _unsqueeze(d: Draw) -> Sample:
    x = _data(d, high=3)
    rank = x.ndim + d.between(1, 2)
    axes = d.some(range(rank))[: rank - x.ndim]
    while len(axes) < rank - x.ndim:
        axes = d.some(range(rank))[: rank - x.ndim]
    axes = [axis - rank if d.opset >= 11 and d.chance(0.3) else axis for axis in axes]
    if d.opset < 13:
        return d.sample("Unsqueeze", [x], axes=axes)
    return d.sample("Unsqueeze", [x, _ints(axes)], fixed=[1])


def _expand(d: Draw) -> Sample:
    d.opset = max(d.opset, 8)
    whole = d.shape()
    x = d.array(d.broadcast(whole), d.dtype(ANY))
    wanted = [1 if extent in x.shape and d.chance(0.2) else extent for extent in whole]
    return d.sample("Expand", [x, _ints(wanted)], fixed=[1])


def _tile(d: Draw) -> Sample:
    x = _data(d, low=1)
    return d.sample("Tile", [x, _ints([0 if d.chance(0.05) else d.between(1, 3) for _ in x.shape])], fixed=[1])


def _concat(d: Draw) -> Sample:
    shape, dtype = list(d.shape(1)), d.dtype(ANY)
    axis = d.axis(len(shape)) if d.opset >= 11 else d.between(0, len(shape) - 1)
    parts = []
    for _ in range(d.between(1, 4)):
        shape[axis] = 0 if d.chance(0.1) else d.between(1, 4)
        parts.append(d.array(shape, dtype))
    return d.sample("Concat", parts, axis=axis)


def _split(d: Draw) -> Sample:
    shape = list(d.shape(1))
    axis = d.axis(len(shape)) if d.opset >= 11 else d.between(0, len(shape) - 1)
    count = d.between(1, 4)
    dtype = d.dtype(ANY)
    kept = axis if d.chance(0.9) else None
    place = axis if kept is not None else 0
    if d.chance():
        sizes = [0 if d.chance(0.1) else d.between(1, 3) for _ in range(count)]
        shape[place] = sum(sizes)
        x = d.array(shape, dtype)
        if d.opset < 13:
            return d.sample("Split", [x], outputs=count, axis=kept, split=sizes)
        return d.sample("Split", [x, _ints(sizes)], fixed=[1], outputs=count, axis=kept)
    if d.opset >= 18 and d.chance():
        each = d.between(1, 3)
        shape[place] = each * count - d.between(0, each - 1)
    else:
        shape[place] = count * d.between(1, 3)
    attrs = {"num_outputs": count} if d.opset >= 18 else {}
    return d.sample("Split", [d.array(shape, dtype)], outputs=count, axis=kept, **attrs)


def _slice(d: Draw) -> Sample:
    x = _data(d, low=1)
    axes = d.some(range(x.ndim))
    steps = [d.of([1, 1, 1, 2, 3] + ([-1, -2] if d.opset >= 10 else [])) for _ in axes]
    starts = [d.between(-6, 6) for _ in axes]
    stops = [d.of([d.between(-6, 6), 1 << 31 if step > 0 else -(1 << 31), d.between(-6, 6)]) for step in steps]
    signed = [axis - x.ndim if d.opset >= 10 and d.chance(0.3) else axis for axis in axes]
    if d.opset < 10:
        return d.sample("Slice", [x], starts=starts, ends=stops, axes=signed)
    kind = np.int64 if d.chance(0.7) else np.int32
    arrays = [np.asarray(np.clip(each, -(1 << 31), (1 << 31) - 1), kind) for each in (starts, stops, signed, steps)]
    if all(step == 1 for step in steps) and d.chance():
        arrays.pop()
    return d.sample("Slice", [x, *arrays], fixed=range(1, 1 + len(arrays)))


def _pad(d: Draw) -> Sample:
    mode = d.of(["constant", "constant", "edge", "reflect"] + (["wrap"] if d.opset >= 19 else []))
    dtype = d.dtype(FLOATS[:2] if d.opset < 11 else ANY)
    shape = [max(extent, 1) if mode != "constant" else extent for extent in d.shape(1, 4)]
    x = d.array(shape, dtype)
    most = [extent - 1 if mode == "reflect" else extent if mode == "wrap" else 3 for extent in shape]
    least = [-min(1, extent - 1) if d.chance(0.2) and extent > 2 else 0 for extent in shape]
    pads = [d.between(min(0, low), max(high, 0)) for low, high in zip(least * 2, most * 2, strict=True)]
    named = None if d.chance(0.5) else mode
    mode = mode if named else "constant"
    if named is None:
        pads = [min(each, 3) for each in pads]
    if d.opset < 11:
        return d.sample("Pad", [x], pads=pads, mode=named, value=d.of([None, 1.5]))
    value = np.asarray(d.array((), dtype)) if d.chance() and mode == "constant" else None
    operands = [x, _ints(pads), value]
    if d.opset >= 18 and d.chance(0.4):
        axes = d.some(range(x.ndim))
        chosen = [pads[axis] for axis in axes] + [pads[axis + x.ndim] for axis in axes]
        operands = [x, _ints(chosen), value, _ints([axis - x.ndim if d.chance(0.3) else axis for axis in axes])]
    return d.sample("Pad", operands, fixed=range(1, len(operands)), mode=named)


def _depth(d: Draw) -> Sample:
    b, dtype = d.between(1, 3), d.dtype(FLOATS)
    n, c, h, w = d.shape(4, 4)
    mode = d.of([None, "DCR", "CRD"]) if d.opset >= 11 else None
    return d.sample("DepthToSpace", [d.array((n, c * b * b, h, w), dtype)], blocksize=b, mode=mode)


def _space(d: Draw) -> Sample:
    b, dtype = d.between(1, 3), d.dtype(FLOATS)
    n, c, h, w = d.shape(4, 4)
    return d.sample("SpaceToDepth", [d.array((n, c, h * b, w * b), dtype)], blocksize=b)


def _range(d: Draw) -> Sample:
    d.opset = max(d.opset, 11)
    dtype = d.of(["int64", "int32", "float32", "float64", "int16"])
    step = d.of([1, 2, -1, -3, 0.5] if dtype.startswith("f") else [1, 2, -1, -3])
    ends = [np.asarray(each, dtype) for each in (d.between(-5, 5), d.between(-5, 9), step)]
    return d.sample("Range", ends, fixed=range(3))


def _trilu(d: Draw) -> Sample:
    d.opset = max(d.opset, 14)
    x = _data(d, low=2)
    shift = np.asarray(d.between(-4, 4), np.int64) if d.chance(0.7) else None
    return d.sample("Trilu", [x, shift], fixed=[1], upper=d.of([None, 0, 1]))


def _eye(d: Draw) -> Sample:
    d.opset = max(d.opset, 9)
    x = d.array(d.shape(2, 2), d.dtype(("float32", "int64", "int32", "float64")))
    return d.sample("EyeLike", [x], k=d.of([None, 0, 1, -2]), dtype=d.of([None, 1, 7, 11]))


def _shape_of(d: Draw) -> Sample:
    attrs = {"start": d.of([None, -5, -1, 0, 1]), "end": d.of([None, -1, 1, 9])} if d.opset >= 15 else {}
    return d.sample("Shape", [_data(d)], **attrs)


def _filled(d: Draw) -> Sample:
    from onnx import numpy_helper

    d.opset = max(d.opset, 9)
    value = numpy_helper.from_array(d.array((1,), d.dtype(ANY))) if d.chance(0.8) else None
    return d.sample("ConstantOfShape", [_ints(d.shape())], fixed=[0], value=value)


ARRANGEMENT: dict[str, Maker] = {
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Expand": _expand,
    "Tile": _tile,
    "Concat": _concat,
    "Split": _split,
    "Slice": _slice,
    "Pad": _pad,
    "DepthToSpace": _depth,
    "SpaceToDepth": _space,
    "Range": _range,
    "Trilu": _trilu,
    "EyeLike": _eye,
    "Shape": _shape_of,
    "ConstantOfShape": _filled,
}
