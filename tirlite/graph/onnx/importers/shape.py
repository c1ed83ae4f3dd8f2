"""Importers of operators on shapes, of constants, and of operators that move elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from tirlite.graph.aot.plain_dims import PlainDims
from tirlite.graph.expr import Call, Constant, Expr
from tirlite.graph.extents import product
from tirlite.graph.onnx.computed import elements_of, extent_of, numbers, scalar, sizes_of
from tirlite.graph.onnx.contents import boxed, contents, of_sizes
from tirlite.graph.onnx.importers.selection import BEYOND, reshaped, sliced, sliced_by_axis
from tirlite.graph.onnx.narrow import NarrowValue
from tirlite.graph.onnx.node import OnnxNode, Unsupported, axis_of
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.graph.op import Reshape
from tirlite.graph.operators.arrangement import Slice
from tirlite.graph.run_dims import run_dims
from tirlite.ir import f64, i64
from tirlite.sizes import Proof, Size, as_size, ceildiv, is_at_most, maximum, prove_eq, prove_le


def _shape(t: Translation, node: OnnxNode) -> Expr:
    shape = node.first.shape
    rank = len(shape)
    start, end = (_bounded(node.integer(name, default), rank) for name, default in (("start", 0), ("end", rank)))
    return of_sizes(boxed(list(shape[start:end]), (max(end - start, 0),)), i64, node.first)


def _bounded(place: int, rank: int) -> int:
    return max(0, min(rank, place + rank if place < 0 else place))


def _size(t: Translation, node: OnnxNode) -> Expr:
    return of_sizes(boxed(product(node.first.shape), ()), i64, node.first)


def _reshape(t: Translation, node: OnnxNode) -> Expr:
    x, copies = node.first, not node.flag("allowzero")
    given = [t.found(each) or each if isinstance(each, Expr) else each for each in elements_of(t, node.x(1))]
    wanted = [each for each in given if not isinstance(each, Expr)]
    if len(wanted) < len(given):
        return reshaped(t, x, given, copies=copies)
    if copies:
        if any(each == 0 and place >= len(x.shape) for place, each in enumerate(wanted)):
            raise Unsupported("an extent of 0 stands where its operand has no axis")
        wanted = [x.shape[place] if each == 0 else each for place, each in enumerate(wanted)]
    if wanted.count(-1) > 1:
        raise Unsupported("-1 stands for more than one extent")
    if -1 in wanted and product(each for each in wanted if each != -1) == 0:
        raise Unsupported("an extent of -1 stands beside one of 0, and may be anything")
    return t.b.reshape(x, wanted)


def _flatten(t: Translation, node: OnnxNode) -> Expr:
    axis = node.integer("axis", 1)
    return t.b.flatten(node.first, axis + node.rank if axis < 0 else axis)


def _axes(node: OnnxNode, number: int = 1) -> tuple[int, ...] | None:
    """The axes: an operand from opset 13 on, an attribute before."""
    if node.has(number):
        return node.known(number)
    return node.integers("axes")


def _squeeze(t: Translation, node: OnnxNode) -> Expr:
    axes = _axes(node)
    if axes is not None:
        axes = tuple(axis_of(axis, node.rank) for axis in axes)
    # Without axes, those of extent 1 are removed; not those of dims, as the rank cannot depend on a dim's value.
    return t.b.squeeze(node.first, axes)


def _unsqueeze(t: Translation, node: OnnxNode) -> Expr:
    axes = _axes(node)
    if axes is None:
        raise Unsupported("its axes are left out")
    rank = node.rank + len(axes)
    places = [axis_of(axis, rank) for axis in axes]
    if len(set(places)) < len(places):
        raise Unsupported(f"an axis stands twice among {list(axes)}")
    return t.b.unsqueeze(node.first, places)


def _transpose(t: Translation, node: OnnxNode) -> Expr:
    return t.b.transpose(node.first, node.integers("perm"))


def _expand(t: Translation, node: OnnxNode) -> Expr:
    """Broadcasts in both directions: an extent of 1 on either side becomes the other one's."""
    x, wanted = node.first, elements_of(t, node.x(1))
    rank = max(len(wanted), node.rank)
    mine = [*(1,) * (rank - node.rank), *x.shape]
    theirs: list[Size | Expr] = [*(1,) * (rank - len(wanted)), *wanted]
    shape, told = [], []
    for own, other in zip(mine, theirs, strict=True):
        if not isinstance(other, Expr):
            shape.append(own if other == 1 else other)
        elif own == 1:
            shape.append(extent_of(t, other))
        else:
            # A computed extent must be 1, or the operand's.
            value = t.b.where(t.b.equal(other, 1), scalar(t, own), other)
            told.append(t.b.extent(value, own, "wanted", least=own))
            shape.append(own)
    if told:
        x = t.b.call("reshape", x, attrs=Reshape(x.shape, tuple(told)))
    return t.b.broadcast_to(x, shape)


def _tile(t: Translation, node: OnnxNode) -> Expr:
    x, repeats = node.first, sizes_of(t, node, 1, node.rank)
    if all(isinstance(each, int) for each in repeats):
        return t.b.tile(x, repeats)
    apart = t.b.reshape(x, [each for extent in x.shape for each in (1, extent)])
    pairs = list(zip(repeats, x.shape, strict=True))
    repeated = t.b.broadcast_to(apart, [each for pair in pairs for each in pair])
    return t.b.reshape(repeated, [count * extent for count, extent in pairs])


def _concat(t: Translation, node: OnnxNode) -> Expr:
    parts = node.all()
    axis = node.axis("axis", 1)
    some = [each for each in parts if prove_eq(each.shape[axis], 0) is not Proof.YES]
    return t.b.concat(some or parts[:1], axis)


def _split(t: Translation, node: OnnxNode) -> Sequence[Expr]:
    axis = node.axis("axis", 0)
    extent = node.first.shape[axis]
    if node.has(1):
        return _split_by(t, node.first, elements_of(t, node.x(1)), axis)
    given: Sequence[Size] | None = node.integers("split")
    if given is None:
        count = node.integer("num_outputs", len(node.outputs))
        if count != len(node.outputs):
            raise Unsupported(f"it makes {count} parts, and has {len(node.outputs)} results")
        each = ceildiv(extent, count)
        given = [*([each] * (count - 1)), extent - each * (count - 1)]
    return t.b.split(node.first, list(given), axis)


def _split_by(t: Translation, x: Expr, parts: list[Size | Expr], axis: int) -> Sequence[Expr]:
    """Splits into parts of these extents; if some are computed, the last one is the rest, which is checked."""
    extent = x.shape[axis]
    sizes = [t.extent(each, extent) if isinstance(each, Expr) else each for each in parts]
    if any(isinstance(each, Expr) for each in parts):
        left = extent - sum(sizes[:-1], start=as_size(0))
        same = t.b.extent(scalar(t, parts[-1]), left, "left", least=left)
        x = t.b.call("reshape", x, attrs=Reshape(x.shape, (sizes[-1], same)))
        sizes[-1] = left
    return t.b.split(x, sizes, axis)


def _slice(t: Translation, node: OnnxNode) -> Expr:
    rank = node.rank
    if node.version < 10:
        starts, stops, given_axes = (node.integers(name) for name in ("starts", "ends", "axes"))
        if starts is None or stops is None:
            raise Unsupported("its starts or ends are left out")
        return t.b.slice(node.first, starts, [_stop(stop, 1) for stop in stops], given_axes)
    given = [node.x(number) if node.has(number) else None for number in (1, 2, 3, 4)]
    count = next((each.shape[0] for each in given if each is not None and isinstance(each.shape[0], int)), None)
    firsts, ends, along, by = ([] if each is None else elements_of(t, each, count) for each in given)
    found = list(along or range(len(firsts)))
    axes = [axis_of(each, rank) for each in found if isinstance(each, int)]
    x, known = node.first, []
    if len(axes) < len(found):
        return sliced_by_axis(t, x, found, firsts, ends, by or (1,) * len(firsts))
    if len(set(axes)) < len(axes):
        raise Unsupported(f"an axis stands twice in {axes}")
    for start, stop, axis, step in zip(firsts, ends, axes, by or (1,) * len(firsts), strict=True):
        if isinstance(start, Expr) or isinstance(stop, Expr) or not isinstance(step, int):
            x = sliced(t, x, axis, start, stop, step if isinstance(step, int) else scalar(t, step))
        else:
            known.append((_start(start, step, x.shape[axis]), _stop(stop, step), axis, step))
    if not known:
        return x
    first, last, where, steps = (list(each) for each in zip(*known, strict=True))
    return _told(t, x, t.b.slice(x, first, last, where, steps))


def _told(t: Translation, x: Expr, made: Expr) -> Expr:
    """The slice, by a gather along axes whose start depends on dims that no extent of operand or result gives."""
    if not isinstance(made, Call) or not isinstance(made.attrs, Slice):
        return made
    plain = PlainDims([*x.shape, *made.shape])
    starts, sizes, steps = made.attrs.starts, made.attrs.sizes, made.attrs.steps
    if not (open_axes := [axis for axis, start in enumerate(starts) if plain.told(start) is None]):
        return made
    axes = [axis for axis in range(len(starts)) if axis not in open_axes]
    stops = [starts[axis] + steps[axis] * sizes[axis] for axis in axes]
    if all(steps[axis] > 0 for axis in axes):
        x = t.b.slice(x, [starts[axis] for axis in axes], stops, axes, [steps[axis] for axis in axes])
        axes = []
    for axis in sorted([*axes, *open_axes]):
        places = t.b.range(scalar(t, starts[axis]), t.b.constant(np.int64(steps[axis])), sizes[axis])
        x = t.b.gather(x, places, axis)
    return x


def _start(start: Size, step: int, extent: Size) -> Size:
    """The start of a slice: backwards from in front of the axis, it is the first element, where Python has none."""
    if step > 0 or prove_le(0, start) is not Proof.NO:
        return start
    return -extent if isinstance(start, int) and start <= -BEYOND else maximum(start, -extent)


def _stop(stop: Size, step: int) -> Size | None:
    """The stop of a slice; None, for the end, if it is larger than any axis, as exporters write it.

    With a negative step, any such number means the end, as in onnxruntime; with a positive one, a negative stop leaves
    nothing.
    """
    if not isinstance(stop, int) or abs(stop) < BEYOND:
        return stop
    return 0 if stop < 0 < step else None


def _pad(t: Translation, node: OnnxNode) -> Expr:
    x, rank = node.first, node.rank
    given: Sequence[Size | Expr] | None = node.integers("pads") if node.version < 11 else elements_of(t, node.x(1))
    if given is None:
        raise Unsupported("its pads are left out")
    axes = [axis_of(axis, rank) for axis in node.known(3)] if node.has(3) else list(range(rank))
    widths: list[list[Size | Expr]] = [[0] * rank, [0] * rank]
    for place, axis in enumerate(axes):
        widths[0][axis], widths[1][axis] = given[place], given[place + len(axes)]
    fill = node.number("value") if node.version < 11 else _fill(t, node)
    cut = [[width if isinstance(width, int) and width < 0 else 0 for width in side] for side in widths]
    if any(map(any, cut)):
        # Negative pads remove elements.
        stops = [extent + less for extent, less in zip(x.shape, cut[1], strict=True)]
        x = t.b.slice(x, [-less for less in cut[0]], stops)
        widths = [
            [0 if less else width for width, less in zip(side, gone, strict=True)]
            for side, gone in zip(widths, cut, strict=True)
        ]
    mode = node.text("mode", "constant")
    x = _joined_with_borders(t, x, widths, fill) if mode == "constant" else _gathered_borders(t, x, widths, mode)
    sizes = [[each for each in side if not isinstance(each, Expr)] for side in widths]
    return t.b.pad(x, *sizes, mode=mode, value=0 if isinstance(fill, Expr) else fill)


def _gathered_borders(t: Translation, x: Expr, widths: list[list[Size | Expr]], mode: str) -> Expr:
    """Pads by gathers along axes with pads that are run-time extents; sets these `widths` to 0."""
    for axis, both in enumerate(zip(*widths, strict=True)):
        if not any(isinstance(each, Expr) or run_dims([each]) for each in both):
            continue
        x, (before, after) = _cut(t, x, axis, both)
        count = x.shape[axis]
        places, last = t.b.subtract(numbers(t, before + count + after), scalar(t, before)), scalar(t, count - 1)
        if mode == "wrap":
            places = t.b.floor_mod(places, scalar(t, count))
        elif mode == "reflect":
            period = t.b.maximum(t.b.multiply(last, 2), 1)
            places = t.b.floor_mod(places, period)
            places = t.b.minimum(places, t.b.subtract(period, places))
        x = t.b.gather(x, t.b.maximum(t.b.minimum(places, last), 0), axis)
        widths[0][axis], widths[1][axis] = 0, 0
    return x


def _joined_with_borders(t: Translation, x: Expr, widths: list[list[Size | Expr]], fill: float | Expr) -> Expr:
    """Pads by concatenation along axes whose widths are both symbolic or are run-time extents; sets them to 0.

    The extents of operand and result would not determine two symbolic widths. A computed `fill` applies to all axes.
    """
    for axis, (before, after) in enumerate(zip(*widths, strict=True)):
        is_open = not (isinstance(before, int) or isinstance(after, int))
        if (
            is_open
            or any(isinstance(each, Expr) or run_dims([each]) for each in (before, after))
            or isinstance(fill, Expr)
        ):
            value = t.b.cast(fill if isinstance(fill, Expr) else t.b.constant(fill), x.dtype)
            shape = list(x.shape)
            x, left = _cut(t, x, axis, (before, after))
            borders = [t.b.broadcast_to(value, (*shape[:axis], each, *shape[axis + 1 :])) for each in left]
            x = t.b.concat([borders[0], x, borders[1]], axis)
            if not isinstance(before, Expr) and not isinstance(after, Expr) and left != [before, after]:
                shape[axis] += before + after
                x = t.b.assume(x, shape)
            widths[0][axis], widths[1][axis] = 0, 0
    return x


def _cut(t: Translation, x: Expr, axis: int, widths: Sequence[Size | Expr]) -> tuple[Expr, list[Size]]:
    """Removes the elements that negative widths cut off, and returns the remaining widths too."""
    sizes = [each for each in widths if not isinstance(each, Expr)]
    if len(sizes) == len(widths):
        if all(is_at_most(0, each) for each in sizes):
            return x, sizes
        first, last = (maximum(0, -each) for each in sizes)
        kept = t.b.slice(x, [first], [x.shape[axis] - last], [axis])
        return _told(t, x, kept), [maximum(0, each) for each in sizes]
    numbers = [scalar(t, each) for each in widths]
    start, less = (t.b.maximum(t.b.subtract(0, each), 0) for each in numbers)
    stop = t.b.maximum(t.b.subtract(scalar(t, x.shape[axis]), less), 0)
    left = [t.extent(t.b.maximum(each, 0), None, "border") for each in numbers]
    return sliced(t, x, axis, start, stop, 1), left


def _fill(t: Translation, node: OnnxNode) -> float | Expr:
    if not node.has(2) or isinstance(node.x(2), Constant):
        found = node.maybe_array(2)
        return 0 if found is None or not found.size else found.reshape(-1)[0].item()
    return t.b.reshape(node.x(2), ())


def _depth_to_space(t: Translation, node: OnnxNode) -> Expr:
    n, c, h, w = node.first.shape
    b = node.integer("blocksize")
    rest = c // (b * b)
    if node.text("mode", "DCR") == "DCR":
        shape, order = (n, b, b, rest, h, w), (0, 3, 4, 1, 5, 2)
    else:
        shape, order = (n, rest, b, b, h, w), (0, 1, 4, 2, 5, 3)
    return t.b.reshape(t.b.transpose(t.b.reshape(node.first, shape), order), (n, rest, h * b, w * b))


def _space_to_depth(t: Translation, node: OnnxNode) -> Expr:
    n, c, h, w = node.first.shape
    b = node.integer("blocksize")
    apart = t.b.reshape(node.first, (n, c, h // b, b, w // b, b))
    order = (0, 3, 5, 1, 2, 4) if node.text("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return t.b.reshape(t.b.transpose(apart, order), (n, c * b * b, h // b, w // b))


def _constant(t: Translation, node: OnnxNode) -> Expr | NarrowValue:
    kinds = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
    for name, kind in kinds.items():
        if name in node.attributes:
            return t.b.constant(np.array(node.attributes[name], kind))
    found = node.attributes.get("value")
    if not isinstance(found, Constant | NarrowValue):
        raise Unsupported("its value is not a tensor of numbers")
    return found


def _constant_of_shape(t: Translation, node: OnnxNode) -> Expr:
    found = node.attributes.get("value")
    value = found if isinstance(found, Constant) else t.b.constant(np.zeros(1, np.float32))
    return t.b.broadcast_to(t.b.reshape(value, ()), sizes_of(t, node, 0))


def _range(t: Translation, node: OnnxNode) -> Expr:
    count = _known_count(t, node)
    if count is None:
        count = _found_count(t, *(t.fold(t.b.reshape(node.x(number), ())) for number in range(3)))
    return t.b.range(t.b.reshape(node.x(0), ()), t.b.reshape(node.x(2), ()), count)


def _known_count(t: Translation, node: OnnxNode) -> Size | None:
    """The number of elements of a range if it follows from constants and shapes, else None."""
    if isinstance(node.x(2), Constant) and not node.array(2).any():
        raise Unsupported("its step is 0")
    if all(isinstance(node.x(number), Constant) for number in range(3)):
        start, limit, delta = (node.array(number).reshape(-1)[0] for number in range(3))
        return max(0, int(np.ceil((float(limit) - float(start)) / float(delta))))
    if node.dtype.is_float:
        return _count_of_floats(t, node)
    ends = [contents(node.x(number)) for number in range(3)]
    if any(each is None for each in ends):
        return None
    first, last, step = (node.sizes(number)[0] for number in range(3))
    if not isinstance(step, int):
        return None
    return maximum(0, ceildiv(last - first, step) if step > 0 else ceildiv(first - last, -step))


def _found_count(t: Translation, start: Expr, limit: Expr, step: Expr) -> Size:
    """The number of elements of a range as a run-time extent; of `range(0, extent)` that extent."""
    ends = [contents(each) for each in (start, step)]
    if [each.item() for each in ends if each is not None] == [0, 1]:
        return t.found(limit) or t.extent(t.b.maximum(limit, 0), None, "count")
    return t.extent(_count(t, start, limit, step), None, "count")


def _count(t: Translation, start: Expr, limit: Expr, step: Expr) -> Expr:
    """The number of elements of a range; -1, which is rejected as an extent, if the step is 0."""
    if start.dtype.is_float:
        ratio = t.b.divide(t.b.cast(t.b.subtract(limit, start), f64), t.b.cast(step, f64))
        found = t.b.cast(t.b.ceil(ratio), i64)
    else:
        start, limit, step = (t.b.cast(each, i64) for each in (start, limit, step))
        by = t.b.where(t.b.equal(step, 0), 1, step)
        found = t.b.negative(t.b.floor_divide(t.b.subtract(start, limit), by))
    return t.b.where(t.b.equal(step, 0), -1, t.b.maximum(found, 0))


def _count_of_floats(t: Translation, node: OnnxNode) -> Size | None:
    """The number of elements of a range of floats, if its ends are sizes and its step is a constant; else None."""
    whole: list[Size] = []
    for number in range(2):
        found = t.fold.floats.of(node.x(number))
        is_whole = found is not None and all(each.by == 1 for each in found.reshape(-1))
        sizes = t.fold.whole(found, node.x(number)) if found is not None and is_whole else None
        if sizes is None:
            return None
        whole.append(sizes.reshape(-1)[0])
    if not isinstance(node.x(2), Constant):
        return None
    step = Fraction(float(node.array(2).reshape(-1)[0]))
    if not step or step.denominator > 1 << 16:
        return None
    return maximum(0, ceildiv((whole[1] - whole[0]) * step.denominator * (1 if step > 0 else -1), abs(step.numerator)))


SHAPE: Mapping[str, Importer] = {
    "Shape": _shape,
    "Size": _size,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Transpose": _transpose,
    "Expand": _expand,
    "Tile": _tile,
    "Concat": _concat,
    "Split": _split,
    "Slice": _slice,
    "Pad": _pad,
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Range": _range,
}
