"""Reductions over any axes: sums, products, extremes, norms, means, and logarithms of sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType, PrimFunc, TensorType
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.shapes import BroadcastAxis, Extent, broadcast, extents, from_part, product


def row_total(kind: DType, prepare: Inline, join: Inline, start: float) -> Inline:
    """`total(x, i, extra)`: all of x[i, :] joined, from `start` on, in `kind`.

    `prepare(value, extra)` comes before `join`, which is one of those below. The order of the elements is not kept.
    """

    @tl.inline
    def total(x, i, extra):
        result = kind(start)
        for j in tl.reduce(x.shape[1]):
            value = prepare(kind(x[i, j]), extra)
            if tl.static(join is added):
                result += value
            elif tl.static(join is multiplied):
                result *= value
            elif tl.static(join is greatest):
                result = max(result, value)
            else:
                result = min(result, value)
        return result

    return total


@tl.inline
def as_it_is(value, extra):
    return value


@tl.inline
def added(a, b):
    return a + b


@tl.inline
def multiplied(a, b):
    return a * b


@tl.inline
def greatest(a, b):
    return max(a, b)


@tl.inline
def least(a, b):
    return min(a, b)


BLOCK = 64  # columns that are reduced together


@tl.inline
def size(value, extra):
    return abs(value)


@tl.inline
def square(value, extra):
    return value * value


@tl.inline
def total(value, count):
    return value


@tl.inline
def mean(value, count):
    return value / count


@tl.inline
def root(value, count):
    return tl.sqrt(value)


@tl.inline
def logarithm(value, count):
    return tl.log(value, fast=True)


@dataclass(frozen=True, slots=True)
class Reduction:
    """The steps of a reduction: a map of each element, the combination of two, the start value, a map of the result."""

    prepare: Inline
    join: Inline
    start: float
    end: Inline = total


@factory
def reduce(
    name: str, chosen: Reduction, X: TensorType, Y: TensorType, *, axes: tuple[int, ...], keepdims: bool = False
) -> PrimFunc:
    """A reduction over `axes`, called `name`; `keepdims` is in the extents of y already.

    Elements of 16 bits are joined in f32.
    """
    kind = tl.u8 if X.dtype.is_bool else computed_in(X.dtype)
    if not kind.is_float:
        chosen = replace(chosen, start=int({inf: kind.max, -inf: kind.min}.get(chosen.start, chosen.start)))
    shape = extents(X)
    count = product(shape[axis] for axis in sorted({axis % len(shape) for axis in axes})) if kind.is_float else 1
    groups = _groups(shape, axes)
    build = _along_columns if groups[-1].present[1] else _along_rows
    return build(X, Y, kind, groups, chosen, count).named(name)


def _groups(shape: tuple[Extent, ...], axes: tuple[int, ...]) -> tuple[BroadcastAxis, ...]:
    """The axes of the operand, with neighbours of one kind joined; the second operand has those that stay."""
    reduced = {axis % len(shape) for axis in axes}
    kept = tuple(1 if axis in reduced else extent for axis, extent in enumerate(shape))
    groups = broadcast((shape, kept), shape)
    return (*groups, BroadcastAxis(1, (True, False))) if all(axis.present[1] for axis in groups) else groups


def _parts(groups: tuple[BroadcastAxis, ...]) -> tuple[Extent, Extent, Inline, Inline]:
    """The number of results, the rows of each, and where the rows are: the sum of two offsets."""
    stays = [axis.present[1] for axis in groups]
    results = product(axis.extent for axis in groups if axis.present[1])
    rows = product(axis.extent for axis in groups if not axis.present[1])
    return results, rows, from_part(groups, stays), from_part(groups, [not stay for stay in stays])


def _along_rows(
    X: TensorType, Y: TensorType, kind: DType, groups: tuple[BroadcastAxis, ...], chosen: Reduction, count: Extent
) -> PrimFunc:
    """A reduction of the last axis: rows become numbers, and those of several rows are combined."""
    length = groups[-1].extent
    results, rows, outer, inner = _parts(groups[:-1])
    of_row = row_total(kind, chosen.prepare, chosen.join, chosen.start)
    join, end, start = chosen.join, chosen.end, chosen.start

    @tl.kernel
    def reduction(x: X, y: tl.out[Y]):
        matrix = tl.view(x, x.dtype[results * rows, length])
        numbers = tl.view(y, y.dtype[results])
        for i in tl.parallel(results):
            value = kind(start)
            for r in range(rows):
                part = of_row(matrix, outer(i) + inner(r), kind(0))
                value = join(value, part)
            numbers[i] = y.dtype(end(value, kind(count)))

    return reduction.ir


def _along_columns(
    X: TensorType, Y: TensorType, kind: DType, groups: tuple[BroadcastAxis, ...], chosen: Reduction, count: Extent
) -> PrimFunc:
    """A reduction that keeps the last axis: whole rows are combined, a block of columns at a time."""
    width = groups[-1].extent
    results, rows, outer, inner = _parts(groups[:-1])
    prepare, join, end, start = chosen.prepare, chosen.join, chosen.end, chosen.start

    @tl.kernel
    def reduction(x: X, y: tl.out[Y]):
        matrix = tl.view(x, x.dtype[results * rows, width])
        sums = tl.view(y, y.dtype[results, width])
        blocks = (width + BLOCK - 1) // BLOCK
        for piece in tl.parallel(results * blocks):
            i = piece // blocks
            first = piece % blocks * BLOCK
            some = min(BLOCK, width - first)
            totals = tl.alloc(kind[BLOCK], scope="local")
            for q in range(some):
                totals[q] = start
            for r in range(rows):
                row = outer(i) + inner(r)
                for q in range(some):
                    totals[q] = join(totals[q], prepare(kind(matrix[row, first + q]), kind(0)))
            for q in range(some):
                sums[i, first + q] = y.dtype(end(totals[q], kind(count)))

    return reduction.ir


@factory
def log_sum_exp(X: TensorType, Y: TensorType, *, axes: tuple[int, ...], keepdims: bool = False) -> PrimFunc:
    """The logarithms of sums of exponentials, the greatest element taken off first, so that exp does not overflow."""
    kind = computed_in(X.dtype)
    results, terms, outer, inner = _parts(_groups(extents(X), axes))

    @tl.kernel
    def reduce_log_sum_exp(x: X, y: tl.out[Y]):
        elements = tl.view(x, x.dtype[results * terms])
        numbers = tl.view(y, y.dtype[results])
        for i in tl.parallel(results):
            most = kind(-inf)
            for r in range(terms):
                most = max(most, kind(elements[outer(i) + inner(r)]))
            shift = most if most > -inf and most < inf else 0
            value = kind(0)
            for r in range(terms):
                value += tl.exp(kind(elements[outer(i) + inner(r)]) - shift, fast=True)
            numbers[i] = y.dtype(tl.log(value, fast=True) + shift)

    return reduce_log_sum_exp.ir
