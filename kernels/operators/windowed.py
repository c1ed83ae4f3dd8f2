"""Makes the definition of convolutions and their transposes: for each place of the result a sum over channels and taps.

How it is computed is the scheduler's to choose: see `s.pack_padded`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import reduce

from tirlite.ir import EQ, And, AttrKey, Builder, Call, Expr, Op, Permission, PrimFunc, TensorType, const
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.nest import nest, seen
from tirlite.kernels.operators.shapes import as_expr, extents, product
from tirlite.kernels.operators.window import Window


def windowed(
    name: str,
    types: tuple[TensorType, TensorType, TensorType | None, TensorType],
    window: Window,
    groups: int,
    *,
    transposed: bool,
) -> PrimFunc:
    """y[n, g, o, place] = sum over c and the taps of w[g, o, c, tap] * x[n, g, c, at], plus b[g, o].

    `at` is where the tap lies with the window at this place, or where the element is that a transposed convolution
    spreads to it; what lies outside of x is 0. The weights of a transposed one are w[g, c, o, tap].
    """
    X, W, B, Y = types
    kind, batches = computed_in(X.dtype), extents(X)[0]
    taken, outputs = extents(X)[1] // groups, extents(Y)[1] // groups
    channels = (taken, outputs) if transposed else (outputs, taken)
    b = Builder(name)
    given, factors = b.param("x", X), b.param("w", W)
    bias = None if B is None else b.param("b", B)
    result = b.param("y", Y, out=True)
    x = seen(b, given, (batches, groups, taken, *window.inputs))
    w = seen(b, factors, (groups, *channels, *window.size))
    y = seen(b, result, (batches, groups, outputs, product(window.places)))
    biases = None if bias is None else seen(b, bias, (groups, outputs))
    with (
        b.attr(AttrKey.ALLOW, None, (Permission.CONTRACT,)),
        nest(b, (batches, groups, outputs, product(window.places)), serial=True) as (n, g, o, place),
    ):
        total = b.alloc("total", TensorType(kind, ()), scope="local")
        b.store(total, (), 0)
        with ExitStack() as loops:
            terms = {"c": taken, **{f"p{k}": size for k, size in enumerate(window.size)}}
            c, *taps = (loops.enter_context(b.reduce(term, 0, extent)) for term, extent in terms.items())
            at, inside = (_from if transposed else _under)(window, _coordinates(window, place), taps)
            under = Call(kind, Op.IF_THEN_ELSE, (inside, x[(n, g, c, *at)].astype(kind), const(0, kind)))
            weight = w[(g, c, o, *taps) if transposed else (g, o, c, *taps)].astype(kind)
            b.store(total, (), total[()] + weight * under)
        b.store(y, (n, g, o, place), total[()] if biases is None else total[()] + biases[g, o].astype(kind))
    return b.build()


def _coordinates(window: Window, place: Expr) -> list[Expr]:
    """The place along each axis, of one that counts row by row."""
    found: list[Expr] = []
    for k, extent in enumerate(window.places):
        inner = product(window.places[k + 1 :])
        own = place if k == len(window.places) - 1 else place // inner
        found.append(own % extent if k else own)
    return found


def _under(window: Window, places: Sequence[Expr], taps: Sequence[Expr]) -> tuple[list[Expr], Expr]:
    """The index along each axis of what lies under a tap, and whether that is inside."""
    at = [
        place * stride - before + tap * dilation
        for place, stride, before, tap, dilation in zip(
            places, window.strides, window.before, taps, window.dilations, strict=True
        )
    ]
    return at, _inside(window, at)


def _from(window: Window, places: Sequence[Expr], taps: Sequence[Expr]) -> tuple[list[Expr], Expr]:
    """The index along each axis of what the transpose spreads to a place by a tap, and whether there is one."""
    away = [
        place + before - tap * dilation
        for place, before, tap, dilation in zip(places, window.before, taps, window.dilations, strict=True)
    ]
    at = [each // stride for each, stride in zip(away, window.strides, strict=True)]
    hits = [EQ(each % stride, as_expr(0)) for each, stride in zip(away, window.strides, strict=True) if stride != 1]
    return at, reduce(And, [*hits, _inside(window, at)])


def _inside(window: Window, at: Sequence[Expr]) -> Expr:
    extents = map(as_expr, window.inputs)
    return reduce(
        And, [part for index, extent in zip(at, extents, strict=True) for part in (index >= 0, index < extent)]
    )
