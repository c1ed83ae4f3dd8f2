"""A tensor at other extents: each element taken from the nearest one, or from its neighbours along each axis.

Of images, whose last axis changes beside another one, the lines are mixed first, which goes by vectors; where elements
lie along the last axis, and their weights, is worked out once for all lines. An element that is the nearest one of a
whole number of neighbours is stored there so many times.

Where an element of the result lies along an axis of the operand is told by one of ONNX's coordinate modes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TypeAlias

from tirlite.ir.builder import Builder
from tirlite.ir.dtype import DType, TensorType, f32, f64, i64
from tirlite.ir.expr import Buffer, Call, Cast, Expr, Max, Min, as_expr
from tirlite.ir.func import PrimFunc
from tirlite.ir.op import Op
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.shapes import Extent, extents, nest

# What an index of the result takes from along an axis: indices of the operand, with weights where there are several.
_Ways: TypeAlias = "list[tuple[Expr, Expr | None]]"
_NEIGHBOURS = {"linear": 2, "cubic": 4}
# Of lines so many times as long as those of the result most elements would be mixed in vain.
_LONG = 4


@factory
def resize(
    X: TensorType,
    Y: TensorType,
    *,
    scales: tuple[float | None, ...],
    mode: str = "nearest",
    coordinates: str = "half_pixel",
    rounding: str = "round_prefer_floor",
    cubic: float = -0.75,
) -> PrimFunc:
    """x at the extents of y; `mode` is "nearest", with a `rounding`, "linear", or "cubic" with Keys' coefficient.

    `scales` are the extents of y over those of x as they were given; None takes them from the extents. Places outside
    of x count as at its edge.
    """
    b = Builder("resize")
    x, y = b.param("x", X), b.param("y", Y, out=True)
    before, after = extents(X), extents(Y)
    kind = computed_in(X.dtype) if X.dtype.is_float else f32

    def ways(axis: int, index: Expr) -> _Ways:
        return _ways(b, index, before[axis], after[axis], scales[axis], mode, coordinates, rounding, cubic)

    *others, last = (not _stays(*each) for each in zip(before, after, scales, strict=True))
    is_short = not (isinstance(before[-1], int) and isinstance(after[-1], int)) or before[-1] <= _LONG * after[-1]
    if mode != "nearest" and last and any(others) and is_short:
        _by_lines(b, x, y, ways, kind, _NEIGHBOURS[mode])
        return b.build()
    times = [_times(*each, coordinates, rounding) for each in zip(before, after, scales, strict=True)]
    if mode == "nearest" and all(times):
        _repeated(b, x, y, [each or 1 for each in times])
    elif mode == "nearest" and last:
        _gathered(b, x, y, ways)
    else:
        with nest(b, after) as indices:
            found = [ways(axis, index) for axis, index in enumerate(indices)]
            b.store(y, indices, _mixed(x, found, kind).astype(X.dtype))
    return b.build()


def _times(before: Extent, after: Extent, scale: float | None, coordinates: str, rounding: str) -> int | None:
    """How many neighbours of the result take each element along an axis, where these are as many of each; else None."""
    if _stays(before, after, scale):
        return 1
    if not (isinstance(before, int) and isinstance(after, int) and before) or after % before:
        return None
    times = after // before
    is_first = (coordinates, rounding) == ("asymmetric", "floor")
    is_middle = coordinates in ("half_pixel", "pytorch_half_pixel") and rounding.startswith("round_prefer")
    return times if scale in (None, times) and after > 1 and (is_first or is_middle) else None


def _repeated(b: Builder, x: Buffer, y: Buffer, times: list[int]) -> None:
    """Each element so many times along each axis."""
    with nest(b, [extent for each in zip(x.shape, times, strict=True) for extent in each]) as indices:
        found, steps = indices[::2], indices[1::2]
        places = tuple(at * count + step for at, count, step in zip(found, times, steps, strict=True))
        b.store(y, places, x[found])


def _gathered(b: Builder, x: Buffer, y: Buffer, ways: Callable[[int, Expr], _Ways]) -> None:
    """Each element from the nearest one; where those along the last axis lie is worked out once."""
    width, columns = x.shape[-1], y.shape[-1]
    places = b.alloc("places", TensorType(i64, (columns,)))
    with b.for_("column", 0, columns) as column:
        b.store(places, (column,), ways(len(x.shape) - 1, column)[0][0])
    with nest(b, y.shape[:-1]) as outer:
        found = [ways(axis, index)[0][0] for axis, index in enumerate(outer)]
        with b.for_("column", 0, columns) as column:
            b.store(y, (*outer, column), x[(*found, Min(Max(places[column], as_expr(0)), width - 1))])


def _by_lines(b: Builder, x: Buffer, y: Buffer, ways: Callable[[int, Expr], _Ways], kind: DType, count: int) -> None:
    """Each line out of one that is mixed from those of x; `count` elements are neighbours along the last axis."""
    width, columns = x.shape[-1], y.shape[-1]
    tables = [
        (b.alloc(f"places{k}", TensorType(i64, (columns,))), b.alloc(f"weights{k}", TensorType(kind, (columns,))))
        for k in range(count)
    ]
    with b.for_("column", 0, columns) as column:
        for (places, weights), (at, weight) in zip(tables, ways(len(x.shape) - 1, column), strict=True):
            assert weight is not None
            b.store(places, (column,), at)
            b.store(weights, (column,), weight.astype(kind))
    with nest(b, y.shape[:-1]) as outer:
        line = b.alloc("line", TensorType(kind, (width,)))
        others = [ways(axis, index) for axis, index in enumerate(outer)]
        with b.for_("column", 0, width) as column:
            b.store(line, (column,), _mixed(x, [*others, [(column, None)]], kind))
        with b.for_("column", 0, columns) as column:
            # In bounds as they are, which is seen of what is read from memory where it is clamped.
            found = [
                line[Min(Max(places[column], as_expr(0)), width - 1)] * weights[column] for places, weights in tables
            ]
            b.store(y, (*outer, column), sum(found[1:], found[0]).astype(y.dtype))


def _stays(before: Extent, after: Extent, scale: float | None) -> bool:
    """Whether indices along an axis are those of the operand."""
    return before is after or (isinstance(before, int) and before == after and scale in (None, 1.0))


def _mixed(x: Buffer, ways: list[_Ways], kind: DType) -> Expr:
    """The sum of the elements at all corners, each with its weight."""
    total: Expr | None = None
    for corner in product(*ways):
        term = x[tuple(at for at, _ in corner)].astype(kind)
        for _, weight in corner:
            if weight is not None:
                term = term * weight.astype(kind)
        total = term if total is None else total + term
    assert total is not None
    return total


def _ways(
    b: Builder,
    index: Expr,
    before: Extent,
    after: Extent,
    scale: float | None,
    mode: str,
    coordinates: str,
    rounding: str,
    cubic: float,
) -> _Ways:
    """The indices along an axis of the operand that an index of the result takes from, and their weights."""
    if _stays(before, after, scale):
        return [(index, None)]
    place = b.let("place", _place(index, before, after, scale, coordinates))
    last = as_expr(before) - 1
    if mode == "nearest":
        rounded = _rounded(place, rounding)
        return [(b.let("at", Min(Max(Cast(i64, rounded), as_expr(0)), last)), None)]
    if mode == "cubic":
        return _four(b, place, last, cubic)
    inside = b.let("inside", Min(Max(place, as_expr(0.0)), Cast(f64, last)))
    # In bounds as it is; said in integers it is seen to be.
    low = b.let("low", Min(Max(Cast(i64, Call(f64, Op.FLOOR, (inside,))), as_expr(0)), last))
    high = b.let("high", Min(low + 1, last))
    share = b.let("share", inside - Cast(f64, low))
    return [(low, 1 - share), (high, share)]


def _four(b: Builder, place: Expr, last: Expr, a: float) -> _Ways:
    """The elements around a place, with the weights of Keys' convolution: two that are near, two that are far."""
    low = b.let("low", Cast(i64, Call(f64, Op.FLOOR, (place,))))
    share = b.let("share", place - Cast(f64, low))
    found: list[tuple[Expr, Expr | None]] = []
    for step in range(-1, 3):
        x = b.let(f"distance{step + 1}", share - float(step) if step <= 0 else float(step) - share)
        near = ((a + 2) * x - (a + 3)) * x * x + 1.0
        far = ((x - 5.0) * x + 8.0) * x * a - 4.0 * a
        weight = b.let(f"weight{step + 1}", near if step in (0, 1) else far)
        found.append((b.let(f"at{step + 1}", Min(Max(low + step, as_expr(0)), last)), weight))
    return found


def _place(index: Expr, before: Extent, after: Extent, scale: float | None, coordinates: str) -> Expr:
    """Where an index of the result lies in the operand, as f64."""
    at, old, new = (Cast(f64, as_expr(each)) for each in (index, before, after))
    ratio = new / old if scale is None else as_expr(float(scale))
    if coordinates == "asymmetric":
        return at / ratio
    if coordinates == "align_corners":
        # The corners are those before the extent was cut to a whole number.
        whole = new if scale is None else old * ratio
        return at * (old - 1) / Max(whole - 1, as_expr(1.0))
    half = (at + 0.5) / ratio - 0.5
    if coordinates == "pytorch_half_pixel":
        return Call(f64, Op.IF_THEN_ELSE, (new > 1, half, as_expr(0.0)))
    return half


def _rounded(place: Expr, rounding: str) -> Expr:
    if rounding == "floor":
        return Call(f64, Op.FLOOR, (place,))
    if rounding == "ceil":
        return Call(f64, Op.CEIL, (place,))
    if rounding == "round_prefer_ceil":
        return Call(f64, Op.FLOOR, (place + 0.5,))
    return Call(f64, Op.CEIL, (place - 0.5,))
