"""Operators that move or create elements: transpose, slice, broadcast, tile, concat, split, pad, range and one-hot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce

import tirlite as tl
from tirlite.ir import And, Builder, Call, Expr, Max, Min, Op, PrimFunc, TensorType, Var, const
from tirlite.kernels.operators.elementwise import spread
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.shapes import Extent, around, as_expr, extents, is_one, is_same, nest, product, seen

SQUARE = 16  # the side of the square blocks of a transpose


@factory
def transpose(X: TensorType, Y: TensorType, *, axes: tuple[int, ...]) -> PrimFunc:
    """y has axis axes[k] of x as its axis k."""
    return permuted("transpose", X, Y, extents(X), axes)


def permuted(name: str, X: TensorType, Y: TensorType, shape: Sequence[Extent], axes: Sequence[int]) -> PrimFunc:
    """x viewed as `shape`, with its axes permuted; axes that stay adjacent are merged."""
    runs: list[list[int]] = []
    for axis in axes:
        if is_one(shape[axis]):
            continue
        if runs and runs[-1][-1] == _before(axis, shape):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    joined = [product(shape[axis] for axis in run) for run in runs]
    order = sorted(range(len(runs)), key=lambda number: runs[number][0])
    b = Builder(name)
    x, y = b.param("x", X), b.param("y", Y, out=True)
    source, target = seen(b, x, [joined[number] for number in order]), seen(b, y, joined)
    is_near = not runs or order[-1] == len(runs) - 1
    with nest(b, joined) if is_near else _in_blocks(b, joined, order[-1]) as indices:
        b.store(target, indices, source[tuple(indices[number] for number in order)])
    return b.build()


@contextmanager
def _in_blocks(b: Builder, box: Sequence[Extent], near: int) -> Iterator[tuple[Var, ...]]:
    """Loops over a box in square blocks of its last axis and the axis `near`; `with` gives the indices.

    The result is contiguous along the last axis, the operand along `near`: in a square block, the cache lines of both
    are used completely while they are in the cache.
    """
    others = [axis for axis in range(len(box) - 1) if axis != near]
    sides = [(box[axis] + SQUARE - 1) // SQUARE for axis in (near, -1)]
    with nest(b, [*(box[axis] for axis in others), *sides]) as (*outer, i, j):
        rows, columns = _within(i, box[near]), _within(j, box[-1])
        with b.for_("row", *rows) as row, b.for_("column", *columns) as column:
            found = dict(zip(others, outer, strict=True)) | {near: row, len(box) - 1: column}
            yield tuple(found[axis] for axis in range(len(box)))


def _within(block: Var, extent: Extent) -> tuple[Expr, Expr]:
    """The range of a block along an axis, with constant bounds if there is only one block."""
    if isinstance(extent, int) and extent <= SQUARE:
        return as_expr(0), as_expr(extent)
    return block * SQUARE, Min(block * SQUARE + SQUARE, as_expr(extent))


def _before(axis: int, shape: Sequence[Extent]) -> int:
    """The nearest axis before `axis` whose extent is not 1; -1 if there is none."""
    return next((k for k in range(axis - 1, -1, -1) if not is_one(shape[k])), -1)


@factory
def slice_(
    X: TensorType, Y: TensorType, *, starts: tuple[Extent, ...], sizes: tuple[Extent, ...], steps: tuple[int, ...]
) -> PrimFunc:
    """y[i] = x[starts + i * steps] for i below `sizes`, along every axis."""
    axes: list[tuple[Extent, Extent, Extent, int]] = []
    for extent, start, size, step in reversed(list(zip(extents(X), starts, sizes, steps, strict=True))):
        is_whole = bool(axes) and axes[-1][1] == 0 and axes[-1][3] == 1 and is_same(axes[-1][0], axes[-1][2])
        if is_whole and step == 1:
            inner = axes[-1][0]
            axes[-1] = (extent * inner, start * inner, size * inner, 1)
        else:
            axes.append((extent, start, size, step))
    axes.reverse()
    b = Builder("slice")
    x, y = b.param("x", X), b.param("y", Y, out=True)
    source, target = seen(b, x, [axis[0] for axis in axes]), seen(b, y, [axis[2] for axis in axes])
    with nest(b, [axis[2] for axis in axes]) as indices:
        b.store(target, indices, source[tuple(i * axis[3] + axis[1] for i, axis in zip(indices, axes, strict=True))])
    return b.build()


@factory
def broadcast_to(X: TensorType, Y: TensorType) -> PrimFunc:
    """x broadcast to the shape of y, as in NumPy."""
    return spread("broadcast_to", (X, Y), lambda value: value)


@factory
def tile(X: TensorType, Y: TensorType, *, repeats: tuple[Extent, ...]) -> PrimFunc:
    """x repeated `repeats` times along each axis."""
    source = [each for extent in extents(X) for each in (1, extent)]
    target = [each for pair in zip(repeats, extents(X), strict=True) for each in pair]
    return spread("tile", (X, Y), lambda value: value, shapes=(source, target))


@factory
def concat(*types: TensorType, axis: int) -> PrimFunc:
    """The operands concatenated along an axis; the last of `types` is the result's."""
    *given, result = types
    b = Builder("concat")
    sources = [b.param(f"x{number}", each) for number, each in enumerate(given)]
    y = b.param("y", result, out=True)
    outer, length, inner = around(result, axis)
    rows = seen(b, y, (outer, length * inner))
    parts = [seen(b, source, (outer, _width(each, axis))) for source, each in zip(sources, given, strict=True)]
    with b.parallel("i", 0, outer) as i:
        start: Extent = 0
        for part, each in zip(parts, given, strict=True):
            width = _width(each, axis)
            with b.for_("j", 0, width) as j:
                b.store(rows, (i, j + start), part[i, j])
            start = width + start
    return b.build()


@factory
def split(X: TensorType, *types: TensorType, axis: int) -> PrimFunc:
    """The operand split along an axis into parts of `types`."""
    b = Builder("split")
    x = b.param("x", X)
    results = [b.param(f"y{number}", each, out=True) for number, each in enumerate(types)]
    outer, length, inner = around(X, axis)
    rows = seen(b, x, (outer, length * inner))
    parts = [seen(b, result, (outer, _width(each, axis))) for result, each in zip(results, types, strict=True)]
    with b.parallel("i", 0, outer) as i:
        start: Extent = 0
        for part, each in zip(parts, types, strict=True):
            width = _width(each, axis)
            with b.for_("j", 0, width) as j:
                b.store(part, (i, j), rows[i, j + start])
            start = width + start
    return b.build()


def _width(tensor: TensorType, axis: int) -> Extent:
    _, length, inner = around(tensor, axis)
    return length * inner


@factory
def pad(
    X: TensorType,
    Y: TensorType,
    *,
    before: tuple[Extent, ...],
    after: tuple[Extent, ...],
    mode: str = "constant",
    value: float = 0,
) -> PrimFunc:
    """x with elements added before and after each axis; `mode` is "constant", "edge", "reflect" or "wrap"."""
    b = Builder("pad")
    x, y = b.param("x", X), b.param("y", Y, out=True)
    shape = [as_expr(extent) for extent in extents(X)]
    with nest(b, extents(Y)) as indices:
        moved = [
            b.let(f"at{axis}", index - start) for axis, (index, start) in enumerate(zip(indices, before, strict=True))
        ]
        if mode == "constant":
            filler = const(value if X.dtype.is_float else int(value), X.dtype)
            inside = [part for at, extent in zip(moved, shape, strict=True) for part in (at >= 0, at < extent)]
            element = x[tuple(moved)]
            if inside:
                element = Call(X.dtype, Op.IF_THEN_ELSE, (reduce(And, inside), element, filler))
            b.store(y, indices, element)
        else:
            b.store(y, indices, x[tuple(_inside(at, extent, mode) for at, extent in zip(moved, shape, strict=True))])
    return b.build()


def _inside(at: Expr, extent: Expr, mode: str) -> Expr:
    """The index of the element that pads position `at`; `at` itself inside, by a condition that loops are split at."""
    last = extent - 1
    if mode == "edge":
        beyond: Expr = Min(Max(at, as_expr(0)), last)
    elif mode == "wrap":
        beyond = at % extent
    else:
        # With mirrors at both ends, the sequence has twice their distance as its period.
        period = Max(last * 2, as_expr(1))
        folded = at % period
        beyond = Min(folded, period - folded)
    return Call(at.dtype, Op.IF_THEN_ELSE, (And(at >= 0, at <= last), at, beyond))


@factory
def range_(S: TensorType, D: TensorType, Y: TensorType) -> PrimFunc:
    """y[i] = start + i * delta for all elements of y."""
    (count,) = extents(Y)

    @tl.kernel
    def range_(start: S, delta: D, y: tl.out[Y]):
        for i in range(count):
            y[i] = start[()] + y.dtype(i) * delta[()]

    return range_.ir.named("range")


@factory
def one_hot(I: TensorType, V: TensorType, Y: TensorType, *, axis: int = -1) -> PrimFunc:
    """y[..., k, ...] = values[1] if i[..., ...] == k, else values[0]; `axis` is the axis of k."""
    outer, depth, inner = around(Y, axis)

    @tl.kernel
    def one_hot(indices: I, values: V, y: tl.out[Y]):
        numbers = tl.view(indices, indices.dtype[outer, inner])
        results = tl.view(y, y.dtype[outer, depth, inner])
        for i in tl.parallel(outer):
            for k in range(depth):
                for q in range(inner):
                    index = tl.i64(numbers[i, q])
                    at = index + depth if index < 0 else index
                    results[i, k, q] = values[1] if at == k else values[0]

    return one_hot.ir
