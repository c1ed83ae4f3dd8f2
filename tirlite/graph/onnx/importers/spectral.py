"""Importers of Fourier transforms, as products with DFT matrices, and of mel weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tirlite.graph.expr import Expr
from tirlite.graph.extents import is_equal
from tirlite.graph.onnx.computed import numbers, scalar
from tirlite.graph.onnx.narrow import DTYPES
from tirlite.graph.onnx.node import OnnxNode, Unsupported, axis_of
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.ir import f64
from tirlite.sizes import Size, maximum

# Longer transforms would need too large matrices.
_LONGEST = 2048


def _dft(t: Translation, node: OnnxNode) -> Expr:
    x, rank = node.first, node.rank
    if node.version < 20:
        axis = axis_of(node.integer("axis", 1), rank)
    else:
        axis = axis_of(node.known(2)[0] if node.has(2) else -2, rank)
    folded = node.flag("onesided") and node.flag("inverse")
    own = 2 * (x.shape[axis] - 1) if folded else x.shape[axis]
    length = node.sizes(1)[0] if node.has(1) else own
    if folded:
        return _unfolded(t, _fitted(t, x, axis, length // 2 + 1), axis, length)
    return _transformed(t, _fitted(t, x, axis, length), axis, node, one_sided=node.flag("onesided"))


def _fitted(t: Translation, x: Expr, axis: int, length: Size) -> Expr:
    """x truncated, or padded with zeros, to a length along an axis."""
    extent, rank = x.shape[axis], x.tensor.rank
    if is_equal(length, extent):
        return x
    after = maximum(0, length - extent)
    filled = x if after == 0 else t.b.pad(x, [0] * rank, [after if place == axis else 0 for place in range(rank)])
    return t.b.slice(filled, [0], [length], [axis])


def _transformed(t: Translation, x: Expr, axis: int, node: OnnxNode, *, one_sided: bool) -> Expr:
    """The DFT along an axis; the last axis has the real, and optionally the imaginary part."""
    length, parts = x.shape[axis], x.shape[-1]
    if one_sided and parts == 2:
        raise Unsupported("one side of the transform of complex numbers is asked for")
    angles = _angles(t, length, length // 2 + 1 if one_sided else length)
    cosine, sine = t.b.cos(angles), t.b.sin(angles)
    if node.flag("inverse"):
        cosine, sine = (t.b.divide(each, _float(t, length)) for each in (cosine, sine))
    else:
        sine = t.b.negative(sine)
    real, *rest = _parts(t, x, axis)
    made = [t.b.matmul(real, cosine), t.b.matmul(real, sine)]
    if rest:
        made = [
            t.b.subtract(made[0], t.b.matmul(rest[0], sine)),
            t.b.add(made[1], t.b.matmul(rest[0], cosine)),
        ]
    return _joined(t, made, axis, x)


def _unfolded(t: Translation, x: Expr, axis: int, length: Size) -> Expr:
    """The inverse of a one-sided DFT: the real signal with these coefficients."""
    count = length // 2 + 1
    number = numbers(t, count)
    is_single = t.b.logical_or(t.b.equal(number, 0), t.b.equal(t.b.multiply(number, 2), scalar(t, length)))
    twice = t.b.unsqueeze(t.b.divide(t.b.where(is_single, np.float64(1), np.float64(2)), _float(t, length)), 1)
    angles = t.b.transpose(_angles(t, length, count))
    real, *rest = _parts(t, x, axis)
    if not rest:
        raise Unsupported("its operand is real")
    cosine, sine = (t.b.multiply(twice, each) for each in (t.b.cos(angles), t.b.sin(angles)))
    return _joined(t, [t.b.subtract(t.b.matmul(real, cosine), t.b.matmul(rest[0], sine))], axis, x)


def _angles(t: Translation, length: Size, count: Size) -> Expr:
    if isinstance(length, int) and not 0 < length <= _LONGEST:
        raise Unsupported(f"its transform has {length} terms, and may have {_LONGEST}")
    products = t.b.multiply(t.b.unsqueeze(numbers(t, length), 1), numbers(t, count))
    turns = t.b.cast(t.b.floor_mod(products, scalar(t, length)), f64)
    return t.b.divide(t.b.multiply(turns, 2 * np.pi), _float(t, length))


def _float(t: Translation, size: Size) -> Expr:
    return t.b.cast(scalar(t, size), f64)


def _parts(t: Translation, x: Expr, axis: int) -> list[Expr]:
    """The real and, if present, the imaginary part, in f64, with `axis` moved to the end."""
    rank, parts = x.tensor.rank, x.shape[-1]
    if axis == rank - 1 or parts not in (1, 2):
        raise Unsupported("the last axis of its operand is not an axis of parts of complex numbers")
    order = [*(place for place in range(rank - 1) if place != axis), axis, rank - 1]
    turned = t.b.cast(t.b.transpose(x, order), f64)
    return [t.b.reshape(each, turned.shape[:-1]) for each in t.b.split(turned, parts, -1)]


def _joined(t: Translation, parts: Sequence[Expr], axis: int, like: Expr) -> Expr:
    """The inverse of `_parts`: parts stacked along the last axis, `axis` in its place, in the type of `like`."""
    rank = like.tensor.rank
    made = t.b.concat([t.b.unsqueeze(t.b.cast(each, like.dtype), -1) for each in parts], -1)
    order = [*(place for place in range(rank - 1) if place != axis), axis, rank - 1]
    return t.b.transpose(made, [order.index(place) for place in range(rank)])


def _stft(t: Translation, node: OnnxNode) -> Expr:
    """The DFTs of the frames of a signal, each multiplied by the window."""
    signal, step = node.first, node.known(1)[0]
    if node.rank == 2:
        signal = t.b.unsqueeze(signal, -1)
    window = node.maybe(2)
    length = node.known(3)[0] if node.has(3) else window.shape[0] if window is not None else None
    if not isinstance(length, int):
        raise Unsupported("the length of its frames is not known")
    frames = (signal.shape[1] - length) // step + 1
    starts = t.b.multiply(numbers(t, frames), step)
    places = t.b.add(t.b.reshape(starts, (frames, 1)), t.b.constant(np.arange(length, dtype=np.int64)))
    seen = t.b.gather(signal, places, 1)
    if window is not None:
        seen = t.b.multiply(seen, t.b.reshape(window, (length, 1)))
    return _transformed(t, seen, 2, node, one_sided=node.flag("onesided", 1))


def _mel_weights(t: Translation, node: OnnxNode) -> Expr:
    """Triangular filters over the frequencies of a DFT, with corners at equal distances on the mel scale."""
    bins, length, rate = (int(node.array(number).reshape(-1)[0]) for number in range(3))
    ends = [2595 * np.log10(1 + float(node.array(number).reshape(-1)[0]) / 700) for number in (3, 4)]
    mels = np.arange(bins + 2) * (ends[1] - ends[0]) / (bins + 2) + ends[0]
    corners = ((length + 1) * (700 * (10 ** (mels / 2595) - 1)) // rate).astype(int)
    weights = np.zeros((length // 2 + 1, bins))
    for number, (low, middle, high) in enumerate(zip(corners, corners[1:], corners[2:], strict=False)):
        rising = np.arange(low, middle + 1)
        weights[rising, number] = (rising - low) / (middle - low) if middle > low else 1
        falling = np.arange(middle, high)
        weights[falling, number] = (high - falling) / max(high - middle, 1)
    dtype = DTYPES.get(node.integer("output_datatype", 1))
    if dtype is None:
        raise Unsupported("there is no such element type here")
    return t.b.cast(t.b.constant(weights.astype(np.float32)), dtype)


SPECTRAL: Mapping[str, Importer] = {"DFT": _dft, "STFT": _stft, "MelWeightMatrix": _mel_weights}
