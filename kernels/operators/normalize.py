"""Normalizations: batch, instance, layer and local response normalization, and softmax."""

from __future__ import annotations

from math import inf

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType, PrimFunc, TensorType
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory, with_given
from tirlite.kernels.operators.reduce import added, as_it_is, row_total
from tirlite.kernels.operators.shapes import around, broadcast, elements, extents, is_one, product, to_operand


@factory
def batch_norm(
    X: TensorType,
    S: TensorType,
    B: TensorType,
    M: TensorType,
    V: TensorType | None,
    Y: TensorType,
    *,
    epsilon: float = 1e-5,
) -> PrimFunc:
    """y = (x - mean) * scale / sqrt(variance + epsilon) + bias, with one of each per channel, axis 1 of x.

    Without a variance y = (x - mean) * scale + bias.
    """
    kind = computed_in(X.dtype)
    batches, channels, *rest = extents(X)
    places, given = product(rest), V or M

    @tl.kernel
    def batch_norm(x: X, scale: S, bias: B, mean: M, variance: given, y: tl.out[Y]):
        images = tl.view(x, x.dtype[batches, channels, places])
        results = tl.view(y, y.dtype[batches, channels, places])
        for batch in tl.parallel(batches):
            for c in range(channels):
                share, centre = kind(scale[c]), kind(mean[c])
                factor = share if tl.static(V is None) else share / tl.sqrt(kind(variance[c]) + epsilon)
                shift = kind(bias[c])
                for i in range(places):
                    results[batch, c, i] = y.dtype((kind(images[batch, c, i]) - centre) * factor + shift)

    return with_given(batch_norm, variance=V)


def standard(kind: DType, epsilon: float) -> Inline:
    """`moments(x, i)`: the mean of row i, and 1 / sqrt(variance + epsilon)."""
    total = row_total(kind, as_it_is, added, 0)
    squares = row_total(kind, squared_distance, added, 0)

    @tl.inline
    def moments(x, i):
        mean = total(x, i, kind(0)) / kind(x.shape[1])
        variance = squares(x, i, mean) / kind(x.shape[1])
        return mean, 1 / tl.sqrt(variance + epsilon)

    return moments


@tl.inline
def squared_distance(value, mean):
    return (value - mean) * (value - mean)


@factory
def instance_norm(X: TensorType, S: TensorType, B: TensorType, Y: TensorType, *, epsilon: float = 1e-5) -> PrimFunc:
    """Each channel of each batch item normalized to mean 0 and variance 1, times its scale, plus its bias."""
    kind = computed_in(X.dtype)
    batches, channels, *rest = extents(X)
    places = product(rest)
    moments = standard(kind, epsilon)

    @tl.kernel
    def instance_norm(x: X, scale: S, bias: B, y: tl.out[Y]):
        images = tl.view(x, x.dtype[batches * channels, places])
        results = tl.view(y, y.dtype[batches * channels, places])
        for i in tl.parallel(batches * channels):
            mean, factor = moments(images, i)
            for j in range(places):
                centred = (kind(images[i, j]) - mean) * factor
                results[i, j] = y.dtype(centred * kind(scale[i % channels]) + kind(bias[i % channels]))

    return instance_norm.ir


@factory
def layer_norm(
    X: TensorType, S: TensorType, B: TensorType | None, Y: TensorType, *, axis: int = -1, epsilon: float = 1e-5
) -> PrimFunc:
    """The axes from `axis` on normalized together to mean 0 and variance 1, times scale, plus bias, which broadcast."""
    kind = computed_in(X.dtype)
    shape = extents(X)
    axis %= len(shape)
    outer, length = product(shape[:axis]), product(shape[axis:])
    moments = standard(kind, epsilon)
    axes = broadcast((extents(S), extents(B or S)), shape[axis:])
    scale_at, bias_at = to_operand(axes, 0), to_operand(axes, 1)
    given, scales = B or S, elements(S)
    seen = given.dtype[elements(given)]

    @tl.kernel
    def layer_norm(x: X, scale: S, bias: given, y: tl.out[Y]):
        rows = tl.view(x, x.dtype[outer, length])
        factors = tl.view(scale, scale.dtype[scales])
        shifts = tl.view(scale if tl.static(B is None) else bias, seen)
        results = tl.view(y, y.dtype[outer, length])
        for i in tl.parallel(outer):
            mean, deviation = moments(rows, i)
            for j in range(length):
                value = (kind(rows[i, j]) - mean) * deviation * kind(factors[scale_at(j)])
                results[i, j] = y.dtype(value if tl.static(B is None) else value + kind(shifts[bias_at(j)]))

    return with_given(layer_norm, bias=B)


@factory
def lrn(
    X: TensorType, Y: TensorType, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> PrimFunc:
    """y = x / (bias + alpha / size * s) ** beta, where s sums the squares of `size` neighbouring channels."""
    kind = computed_in(X.dtype)
    batches, channels, *rest = extents(X)
    places = product(rest)
    before = (size - 1) // 2

    @tl.inline
    def power(value):
        if tl.static(beta == 0.75):  # the usual value: roots are faster than a power
            return tl.sqrt(value) * tl.sqrt(tl.sqrt(value))
        else:
            return tl.pow(value, beta)

    @tl.kernel
    def lrn(x: X, y: tl.out[Y]):
        images = tl.view(x, x.dtype[batches, channels, places])
        results = tl.view(y, y.dtype[batches, channels, places])
        for piece in tl.parallel(batches * channels):
            batch = piece // channels
            c = piece % channels
            for i in range(places):
                total = kind(0)
                for near in tl.reduce(max(0, c - before), min(channels, c - before + size)):
                    total += kind(images[batch, near, i]) * kind(images[batch, near, i])
                divisor = power(bias + total * (alpha / size))
                results[batch, c, i] = y.dtype(kind(images[batch, c, i]) / divisor)

    return lrn.ir


@factory
def softmax(X: TensorType, Y: TensorType, *, axis: int = -1) -> PrimFunc:
    """y = exp(x) / sum of exp(x) along an axis; the maximum is subtracted first, so that exp does not overflow."""
    return _softmax("softmax", X, Y, axis)


@factory
def log_softmax(X: TensorType, Y: TensorType, *, axis: int = -1) -> PrimFunc:
    """y = x - log of the sum of exp(x) along an axis."""
    return _softmax("log_softmax", X, Y, axis)


def _softmax(name: str, X: TensorType, Y: TensorType, axis: int) -> PrimFunc:
    outer, length, inner = around(X, axis)
    kind, is_row, is_log = computed_in(X.dtype), is_one(inner), name == "log_softmax"
    shape = (outer, length) if is_row else (outer, length, inner)
    seen = X.dtype[shape], Y.dtype[shape]

    @tl.inline
    def element(x, i, j, q):
        return kind(x[i, j]) if tl.static(is_row) else kind(x[i, j, q])

    @tl.inline
    def put(y, i, j, q, value):
        if tl.static(is_row):
            y[i, j] = y.dtype(value)
        else:
            y[i, j, q] = y.dtype(value)

    @tl.kernel
    def softmax(x: X, y: tl.out[Y]):
        given = tl.view(x, seen[0])
        results = tl.view(y, seen[1])
        for i in tl.parallel(outer):
            for q in tl.parallel(inner):
                largest = kind(-inf)
                for j in tl.reduce(length):
                    largest = max(largest, element(given, i, j, q))
                total = kind(0)
                for j in tl.reduce(length):
                    total += tl.exp(element(given, i, j, q) - largest, fast=True)
                if tl.static(is_log):
                    total = tl.log(total, fast=True)
                for j in range(length):
                    shifted = element(given, i, j, q) - largest
                    put(results, i, j, q, shifted - total if tl.static(is_log) else tl.exp(shifted, fast=True) / total)

    return softmax.ir.named(name)
