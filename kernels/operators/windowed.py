"""Makes the definition of convolutions and their transposes: for each place of the result a sum over channels and taps.

How it is computed is the scheduler's to choose: see `s.pack_padded`. The transpose of one in steps of two has sums of
every other tap alone at every other place, others between: each such phase is a nest of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import reduce
from itertools import product as combinations
from math import gcd, prod
from typing import NamedTuple

from tirlite.ir import EQ, And, AttrKey, Buffer, Builder, Call, Expr, Op, Permission, PrimFunc, TensorType, const
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.shapes import Extent, as_expr, extents, nest, product, seen
from tirlite.kernels.operators.window import Window

Types = tuple[TensorType, TensorType, TensorType | None, TensorType]  # of image, weights, bias and result
_MOST_PHASES = 16


class Axis(NamedTuple):
    """Some places of the result along an axis, the taps that count there, and where elements lie under these.

    The q-th place is `first + every * q`, the t-th tap `tap + tap_every * t`. Under it lies the element at
    `(stride * q + offset + dilation * t) / by`, if that is whole and inside.
    """

    inputs: Extent
    count: Extent
    first: int
    every: int
    taps: Extent
    tap: int
    tap_every: int
    stride: int
    offset: Extent
    dilation: int
    by: int = 1

    def under(self, q: Expr, t: Expr) -> tuple[Expr, list[Expr]]:
        """The index of the element, and what must hold for there to be one."""
        at, holds = q * self.stride + self.offset + t * self.dilation, list[Expr]()
        if self.by > 1:
            at, holds = at // self.by, [EQ(at % self.by, as_expr(0))]
        return at, [*holds, at >= 0, at < as_expr(self.inputs)]


def axes_under(window: Window) -> tuple[Axis, ...]:
    """The axes of a convolution."""
    return tuple(
        Axis(inputs, places, 0, 1, size, 0, 1, stride, 0 - before, dilation)
        for inputs, places, size, stride, before, dilation in _geometry(window)
    )


def phases_from(window: Window) -> Iterator[tuple[Axis, ...]]:
    """The axes of the transpose of a convolution, for each of its phases; as one where these are not known, or many."""
    if prod(window.strides) > _MOST_PHASES or any(
        stride > 1 and not (isinstance(before, int) and isinstance(size, int))
        for _, _, size, stride, before, _ in _geometry(window)
    ):
        yield tuple(
            Axis(inputs, places, 0, 1, size, 0, 1, 1, before, -dilation, stride)
            for inputs, places, size, stride, before, dilation in _geometry(window)
        )
        return
    yield from combinations(*(tuple(_phases(*axis)) for axis in _geometry(window)))


def _geometry(window: Window) -> Iterator[tuple[Extent, Extent, Extent, int, Extent, int]]:
    return zip(window.inputs, window.places, window.size, window.strides, window.before, window.dilations, strict=True)


def _phases(inputs: Extent, places: Extent, size: Extent, stride: int, before: Extent, dilation: int) -> Iterator[Axis]:
    if stride == 1:
        yield Axis(inputs, places, 0, 1, size, 0, 1, 1, before, -dilation)
        return
    assert isinstance(size, int)
    assert isinstance(before, int)
    every = stride // gcd(stride, dilation)
    for first in range(stride):
        taps = [tap for tap in range(size) if (first + before - tap * dilation) % stride == 0]
        tap = taps[0] if taps else 0
        offset = (first + before - tap * dilation) // stride
        count = (places - first + stride - 1) // stride
        yield Axis(inputs, count, first, stride, len(taps), tap, every, 1, offset, -every * dilation // stride)


def windowed(name: str, types: Types, phases: Sequence[Sequence[Axis]], groups: int, *, transposed: bool) -> PrimFunc:
    """y[n, g, o, place] = sum over c and the taps of w[g, o, c, tap] * x[n, g, c, at], plus b[g, o].

    `at` is where an element lies under a tap; what lies outside of x is 0. `phases` have each place once. The weights
    of a transposed one are w[g, c, o, tap].
    """
    X, W, B, Y = types
    batches, taken, outputs = extents(X)[0], extents(X)[1] // groups, extents(Y)[1] // groups
    places = extents(Y)[2:] if len(phases) > 1 else (product(extents(Y)[2:]),)
    b = Builder(name)
    x, w = b.param("x", X), b.param("w", W)
    bias = None if B is None else b.param("b", B)
    y = b.param("y", Y, out=True)
    x = seen(b, x, (batches, groups, taken, *extents(X)[2:]))
    w = seen(b, w, (groups, *((taken, outputs) if transposed else (outputs, taken)), *extents(W)[2:]))
    y = seen(b, y, (batches, groups, outputs, *places))
    biases = None if bias is None else seen(b, bias, (groups, outputs))
    with b.attr(AttrKey.ALLOW, None, (Permission.CONTRACT,)):
        for axes in phases:
            # Places of a phase lie apart, so rows of them are not one behind the other.
            counts = [axis.count for axis in axes]
            box = counts if len(phases) > 1 else [product(counts)]
            with nest(b, (batches, groups, outputs, *box), serial=True) as (n, g, o, *at):
                coordinates = at if len(phases) > 1 else _coordinates(axes, at[0])
                total = _sum(b, axes, coordinates, taken, x, w, (n, g, o), transposed=transposed)
                if biases is not None:
                    total = total + biases[g, o].astype(total.dtype)
                if len(phases) > 1:
                    at = [axis.first + axis.every * q for axis, q in zip(axes, coordinates, strict=True)]
                b.store(y, (n, g, o, *at), total)
    return b.build()


def _sum(
    b: Builder,
    axes: Sequence[Axis],
    places: Sequence[Expr],
    taken: Extent,
    x: Buffer,
    w: Buffer,
    element: tuple[Expr, Expr, Expr],
    *,
    transposed: bool,
) -> Expr:
    """What an element of the result is a sum of, put into a scalar of its own."""
    (n, g, o), kind = element, computed_in(x.dtype)
    total = b.alloc("total", TensorType(kind, ()), scope="local")
    b.store(total, (), 0)
    with ExitStack() as loops:
        terms = {"c": taken, **{f"p{k}": axis.taps for k, axis in enumerate(axes)}}
        c, *steps = (loops.enter_context(b.reduce(term, 0, extent)) for term, extent in terms.items())
        found = [axis.under(q, t) for axis, q, t in zip(axes, places, steps, strict=True)]
        taps = [axis.tap + axis.tap_every * t for axis, t in zip(axes, steps, strict=True)]
        inside = reduce(And, [part for _, holds in found for part in holds])
        element_under = x[(n, g, c, *(at for at, _ in found))].astype(kind)
        under = Call(kind, Op.IF_THEN_ELSE, (inside, element_under, const(0, kind)))
        weight = w[(g, c, o, *taps) if transposed else (g, o, c, *taps)].astype(kind)
        b.store(total, (), total[()] + weight * under)
    return total[()]


def _coordinates(axes: Sequence[Axis], place: Expr) -> list[Expr]:
    """The place along each axis, of one that counts row by row."""
    found: list[Expr] = []
    for k, axis in enumerate(axes):
        own = place if k == len(axes) - 1 else place // product([each.count for each in axes[k + 1 :]])
        found.append(own % axis.count if k else own)
    return found
