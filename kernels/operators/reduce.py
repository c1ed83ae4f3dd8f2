"""Reductions over any axes: sums, products, extremes, norms, means, and logarithms of sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType, PrimFunc, TensorType
from tirlite.kernels.operators.case import Case
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.indices import from_part
from tirlite.kernels.operators.rows import added, as_it_is, greatest, least, multiplied, row_total
from tirlite.kernels.operators.shapes import Axis, Extent, broadcast, extents, product

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
    return tl.log(value)


@dataclass(frozen=True, slots=True)
class Reduction:
    """What is done to each element, how two become one, where that starts, and what is done to the last."""

    prepare: Inline
    join: Inline
    start: float
    end: Inline = total


REDUCTIONS = {
    "reduce_sum": Reduction(as_it_is, added, 0),
    "reduce_mean": Reduction(as_it_is, added, 0, mean),
    "reduce_prod": Reduction(as_it_is, multiplied, 1),
    "reduce_max": Reduction(as_it_is, greatest, -inf),
    "reduce_min": Reduction(as_it_is, least, inf),
    "reduce_l1": Reduction(size, added, 0),
    "reduce_l2": Reduction(square, added, 0, root),
    "reduce_sum_square": Reduction(square, added, 0),
    "reduce_log_sum": Reduction(as_it_is, added, 0, logarithm),
    "reduce_log_sum_exp": Reduction(as_it_is, added, 0, logarithm),
    "reduce_all": Reduction(as_it_is, least, 1),
    "reduce_any": Reduction(as_it_is, greatest, 0),
}


@factory
def reduce(op: str, X: TensorType, Y: TensorType, *, axes: tuple[int, ...], keepdims: bool = False) -> PrimFunc:
    """The reduction called `op` in `REDUCTIONS`, over `axes`; `keepdims` is in the extents of y already.

    Elements of 16 bits are joined in f32.
    """
    kind = tl.u8 if X.dtype.is_bool else computed_in(X.dtype)
    chosen = REDUCTIONS[op]
    if not kind.is_float:
        chosen = replace(chosen, start=int({inf: kind.max, -inf: kind.min}.get(chosen.start, chosen.start)))
    shape = extents(X)
    reduced = {axis % len(shape) for axis in axes}
    kept = tuple(1 if axis in reduced else extent for axis, extent in enumerate(shape))
    count = product(shape[axis] for axis in sorted(reduced)) if kind.is_float else 1
    groups = broadcast((shape, kept), shape)
    if not groups or all(axis.present[1] for axis in groups):
        groups = (*groups, Axis(1, (True, False)))
    if op == "reduce_log_sum_exp":
        return _log_sum_exp(X, Y, kind, groups)
    build = _along_columns if groups[-1].present[1] else _along_rows
    return build(X, Y, kind, groups, chosen, count).replaced(name=op)


def _parts(groups: tuple[Axis, ...]) -> tuple[Extent, Extent, Inline, Inline]:
    """How many results the axes have, how many rows each, and where their rows are: the sum of two numbers."""
    stays = [axis.present[1] for axis in groups]
    results = product(axis.extent for axis in groups if axis.present[1])
    rows = product(axis.extent for axis in groups if not axis.present[1])
    return results, rows, from_part(groups, stays), from_part(groups, [not stay for stay in stays])


def _along_rows(
    X: TensorType, Y: TensorType, kind: DType, groups: tuple[Axis, ...], chosen: Reduction, count: Extent
) -> PrimFunc:
    """Where the last axis is reduced: rows become numbers, and those of several rows one."""
    length = groups[-1].extent
    results, rows, outer, inner = _parts(groups[:-1])
    of_row = row_total(X.dtype, kind, chosen.prepare, chosen.join, chosen.start)
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
    X: TensorType, Y: TensorType, kind: DType, groups: tuple[Axis, ...], chosen: Reduction, count: Extent
) -> PrimFunc:
    """Where the last axis stays: whole rows are joined, a block of columns at a time."""
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


def _log_sum_exp(X: TensorType, Y: TensorType, kind: DType, groups: tuple[Axis, ...]) -> PrimFunc:
    """The greatest element is taken off first, so that exp does not overflow."""
    results, terms, outer, inner = _parts(groups)

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
                value += tl.exp(kind(elements[outer(i) + inner(r)]) - shift)
            numbers[i] = y.dtype(tl.log(value) + shift)

    return reduce_log_sum_exp.ir


d0, d1, d2, d3 = tl.dims("d0 d1 d2 d3")
SIZES = (2, 3, 4, 70)


def case(op: str, axes: tuple[int, ...], *, dtype: DType = tl.f32, free: bool = False, keepdims: bool = True) -> Case:
    """A case over axes of a box of rank 4, all of whose axes are dims if it is `free`."""
    shape = (d0, d1, d2, d3) if free else SIZES
    result = tuple(1 if k in axes else e for k, e in enumerate(shape) if keepdims or k not in axes)
    function = NUMPY[op]

    def inputs(rng: np.random.Generator) -> tuple[np.ndarray]:
        if dtype.is_bool:
            return (rng.random(SIZES) < 0.99,)
        values = rng.uniform(0.9, 1.1, SIZES) if dtype.is_float else rng.integers(-3, 9, SIZES)
        return (values.astype(dtype.numpy),)

    def reference(x: np.ndarray) -> np.ndarray:
        wide = x.astype(np.float64) if dtype.is_float else x
        return np.asarray(function(wide, axis=axes, keepdims=keepdims)).astype(dtype.numpy)

    exact = not dtype.is_float or op in ("reduce_max", "reduce_min")
    name = f"{op}-{dtype}-{axes}{'-free' * free}{'-flat' * (not keepdims)}"
    tolerance = 0 if exact else {tl.f16: 1e-3, tl.f32: 2e-6, tl.f64: 1e-14}[dtype]
    types = (dtype[shape], dtype[result])
    return Case(name, lambda: reduce(op, *types, axes=axes, keepdims=keepdims), inputs, reference, tolerance)


NUMPY = {
    "reduce_sum": np.sum,
    "reduce_mean": np.mean,
    "reduce_prod": np.prod,
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_l1": lambda x, **over: np.sum(np.abs(x), **over),
    "reduce_l2": lambda x, **over: np.sqrt(np.sum(x * x, **over)),
    "reduce_sum_square": lambda x, **over: np.sum(x * x, **over),
    "reduce_log_sum": lambda x, **over: np.log(np.sum(x, **over)),
    "reduce_log_sum_exp": lambda x, **over: np.log(np.sum(np.exp(x), **over)),
    "reduce_all": np.all,
    "reduce_any": np.any,
}
OF_FLOATS = tuple(op for op in REDUCTIONS if op not in ("reduce_all", "reduce_any"))

CASES = (
    *(case(op, (3,)) for op in OF_FLOATS),
    *(case(op, (1,)) for op in OF_FLOATS),
    *(case("reduce_sum", axes) for axes in ((), (0,), (0, 1, 2, 3), (0, 2), (1, 3), (0, 3), (2, 3))),
    *(case("reduce_mean", axes, free=True) for axes in ((2, 3), (0, 2), (1,))),
    case("reduce_log_sum_exp", (0, 2), free=True),
    case("reduce_max", (1, 2), keepdims=False),
    *(case("reduce_sum", (2, 3), dtype=dtype) for dtype in (tl.f16, tl.f64, tl.i32, tl.u8, tl.i64)),
    *(case("reduce_max", (3,), dtype=dtype) for dtype in (tl.f16, tl.i8)),
    *(case(op, axes, dtype=tl.bool_) for op in ("reduce_all", "reduce_any") for axes in ((3,), (0,))),
)
