"""Importers of operators that gather or scatter by index, or whose result has a run-time extent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import combinations

import numpy as np

from tirlite.graph.expr import Call, Constant, Expr
from tirlite.graph.extents import product
from tirlite.graph.onnx.computed import elements_of, extent_of, numbers, scalar
from tirlite.graph.onnx.contents import contents
from tirlite.graph.onnx.narrow import DTYPES, NUMBERS
from tirlite.graph.onnx.node import OnnxNode, Unsupported
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.graph.op import Reshape
from tirlite.graph.operators.arrangement import Slice
from tirlite.graph.types import Array
from tirlite.ir import bool_, f32, i32, i64
from tirlite.sizes import Proof, Size, ceildiv, minimum, prove_eq


def _nonzero(t: Translation, node: OnnxNode) -> Expr:
    x = node.first
    return _places(t, t.b.reshape(x, (1,)) if not x.tensor.rank else x)


def _places(t: Translation, x: Expr) -> Expr:
    """The indices of nonzero elements, one row per axis."""
    if isinstance(x, Constant):
        found = x.value.nonzero()
        return t.b.constant(np.array(found, np.int64).reshape(len(found), -1))
    if x not in t.places:
        flags = x if x.dtype.is_bool else t.b.cast(x, bool_)
        total = product(x.shape)
        count = t.b.reduce_sum(t.b.cast(t.b.reshape(flags, (total,)), i64), 0)
        t.places[x] = t.b.nonzero(flags, t.extent(count, total, "count"))
    return t.places[x]


def _chosen(t: Translation, flags: Expr) -> Expr:
    """The indices of the true elements of a vector."""
    places = _places(t, flags)
    return t.b.reshape(places, places.shape[1:])


def _compress(t: Translation, node: OnnxNode) -> Expr:
    chosen = _chosen(t, node.x(1))
    if isinstance(chosen, Call):  # errors about indices out of range shall name the condition
        chosen = chosen.replaced(name=node.proto.input[1])
    if "axis" not in node.attributes:
        return t.b.gather(t.b.reshape(node.first, (-1,)), chosen, 0)
    return t.b.gather(node.first, chosen, node.axis())


def _topk(t: Translation, node: OnnxNode) -> list[Expr]:
    axis = node.axis("axis", -1)
    extent = node.first.shape[axis]
    count = t.extent(node.x(1), extent, "count") if node.version >= 10 else node.integer("k")
    return list(t.b.topk(node.first, count, axis, largest=node.flag("largest", 1)))


def _unique(t: Translation, node: OnnxNode) -> list[Expr]:
    """Sorts the rows, and selects those that differ from the row before."""
    x, axis = node.first, node.axis() if "axis" in node.attributes else None
    total = product(x.shape)
    order = None if axis is None else [axis, *(each for each in range(node.rank) if each != axis)]
    items = t.b.reshape(x, (total,)) if order is None else t.b.transpose(x, order)
    count = items.shape[0]
    rows = t.b.reshape(items, (count, product(items.shape[1:])))
    places, fresh = t.b.sort_rows(rows)
    starts = _chosen(t, fresh)
    found = starts.shape[0]
    one, group = t.b.constant(np.int64(1)), t.b.cumsum(t.b.cast(fresh, i64), 0)
    number = t.b.subtract(group, 1)  # for each sorted row, the number of its group of equal rows
    zeros = t.b.broadcast_to(t.b.constant(np.int64(0)), (count,))
    first = t.b.gather(places, starts, 0)
    inverse = t.b.scatter_elements(zeros, places, number, 0)
    none = t.b.broadcast_to(t.b.constant(np.int64(0)), (found,))
    counts = t.b.scatter_elements(none, number, t.b.broadcast_to(one, (count,)), 0, reduction="add")
    if not node.flag("sorted", 1):
        by_place, _ = t.b.sort_rows(t.b.reshape(first, (found, 1)))
        ranks = t.b.scatter_elements(none, by_place, numbers(t, found), 0)
        first, counts = t.b.gather(first, by_place, 0), t.b.gather(counts, by_place, 0)
        inverse = t.b.gather(ranks, inverse, 0)
    values = t.b.gather(items, first, 0)
    if order is not None:
        values = t.b.transpose(values, [order.index(each) for each in range(node.rank)])
    return [values, first, inverse, counts]


def _non_max_suppression(t: Translation, node: OnnxNode) -> Expr:
    boxes, scores = node.x(0), node.x(1)
    batches, classes, number = scores.shape
    most = _single(t, node, 2, np.int64(0))
    known = contents(most)
    each = number if known is None else minimum(number, max(0, int(known.item())))
    overlap, least = (_single(t, node, place, np.float32(0)) for place in (3, 4))
    room = batches * classes * each
    flags = {"center": node.flag("center_point_box"), "scored": node.has(4)}
    chosen, count = t.b.non_max_suppression(boxes, scores, most, overlap, least, room, **flags)
    found = t.extent(count, room, "boxes")
    return first_rows(t, chosen, found)


def first_rows(t: Translation, x: Expr, count: Size) -> Expr:
    """The first `count` rows of a tensor that has at least as many."""
    rank = x.tensor.rank
    return t.b.call("slice", x, attrs=Slice((0,) * rank, (count, *x.shape[1:]), (1,) * rank))


def backwards(t: Translation, x: Expr) -> Expr:
    """The rows of a tensor in reverse order."""
    last = scalar(t, x.shape[0] - 1)
    return t.b.gather(x, t.b.range(last, t.b.constant(np.int64(-1)), x.shape[0]), 0)


def _single(t: Translation, node: OnnxNode, number: int, default: np.generic) -> Expr:
    given = node.maybe(number)
    if given is None:
        return t.b.constant(default)
    return t.fold(t.b.reshape(t.b.cast(given, i64 if number == 2 else f32), ()))


BEYOND = 1_000_000_000  # longer than any axis: exporters write such numbers for "to the end"


def sliced(t: Translation, x: Expr, axis: int, start: Size | Expr, stop: Size | Expr, step: int | Expr) -> Expr:
    """Slices along an axis with ends or a step that are only known during the run; negative ends count from the end.

    A run in which a computed step is 0 raises an error.
    """
    extent = x.shape[axis]
    length = scalar(t, extent)

    def either(ahead: Expr | int, back: Expr | int) -> Expr | int:
        if isinstance(step, Expr):
            return t.b.where(t.b.greater(step, 0), scalar(t, ahead), scalar(t, back))
        return ahead if step > 0 else back

    low, high = either(0, -1), either(length, t.b.subtract(length, 1))
    first, last = (_placed(t, scalar(t, each), length) for each in (start, stop))
    first = t.b.minimum(t.b.maximum(first, 0), high)
    last = t.b.minimum(t.b.maximum(last, low), high)
    # As in onnxruntime, a very large stop means the end in either direction.
    is_end = t.b.greater_equal(scalar(t, stop), BEYOND)
    last = scalar(t, either(last, t.b.where(is_end, low, last)))
    distance = scalar(t, either(t.b.subtract(last, first), t.b.subtract(first, last)))
    width = t.b.maximum(t.b.abs(step), 1) if isinstance(step, Expr) else abs(step)
    count = t.b.maximum(t.b.floor_divide(t.b.add(distance, t.b.subtract(scalar(t, width), 1)), width), 0)
    if isinstance(step, Expr):
        count = t.b.where(t.b.equal(step, 0), -1, count)
    found = t.extent(count, extent if isinstance(step, Expr) else ceildiv(extent, abs(step)), "length")
    return t.b.gather(x, t.b.range(first, scalar(t, step), found), axis)


def sliced_by_axis(t: Translation, x: Expr, axes: Sequence[Size | Expr], *ends: Sequence[Size | Expr]) -> Expr:
    """Slices along axes that are only known during the run; `ends` are the starts, the stops and the steps.

    A run in which an axis is repeated or out of range raises an error.
    """
    rank = x.tensor.rank
    places = [_placed(t, scalar(t, each), scalar(t, rank)) for each in axes]
    wrong = [t.b.logical_or(t.b.less(each, 0), t.b.greater_equal(each, rank)) for each in places]
    wrong += [t.b.equal(*pair) for pair in combinations(places, 2)]
    for axis in range(rank):
        found = [scalar(t, each) for each in (0, BEYOND, 1)]
        for place, *given in zip(places, *ends, strict=True):
            is_here = t.b.equal(place, axis)
            found = [t.b.where(is_here, scalar(t, each), rest) for each, rest in zip(given, found, strict=True)]
        first, last, step = found
        x = sliced(t, x, axis, first, last, reduce(lambda rest, each: t.b.where(each, 0, rest), wrong, step))
    return x


def _placed(t: Translation, place: Expr, length: Expr) -> Expr:
    """An index counted from the start; negative ones count from the end."""
    return t.b.where(t.b.less(place, 0), t.b.add(place, length), place)


def reshaped(t: Translation, x: Expr, wanted: list[Size | Expr], *, copies: bool) -> Expr:
    """Reshapes to extents that are only known during the run; a single one is inferred from the others if possible.

    With `copies`, an extent of 0 stands for the operand's. A run with another number of elements raises an error.
    """
    rank = x.tensor.rank
    wanted = [
        x.shape[place] if copies and place < rank and not isinstance(each, Expr) and each == 0 else each
        for place, each in enumerate(wanted)
    ]
    known = [each for each in wanted if not isinstance(each, Expr)]
    values: list[Expr] = [scalar(t, each) for each in wanted]
    for place, each in enumerate(wanted[:rank] if copies else ()):
        if isinstance(each, Expr):
            values[place] = t.b.where(t.b.equal(each, 0), scalar(t, x.shape[place]), values[place])
    rest, total = product(known), product(x.shape)
    if len(known) == len(wanted) - 1 and -1 not in known and prove_eq(rest, 0) is Proof.NO:
        extent = total // rest
        if prove_eq(extent * rest, total) is Proof.YES:
            (place,) = (place for place, each in enumerate(wanted) if isinstance(each, Expr))
            found = t.b.where(t.b.equal(values[place], -1), scalar(t, extent), values[place])
            told = t.b.extent(found, extent, "wanted", least=extent)
            return t.b.call("reshape", x, attrs=Reshape((*known[:place], extent, *known[place:]), (told,)))
    others: Expr = scalar(t, 1)
    for each in values:
        others = t.b.multiply(others, t.b.where(t.b.equal(each, -1), 1, each))
    left = t.b.floor_divide(scalar(t, total), t.b.maximum(others, 1))
    shape = [
        each
        if not isinstance(each, Expr) and each != -1
        else t.extent(t.b.where(t.b.equal(value, -1), left, value), None)
        for value, each in zip(values, wanted, strict=True)
    ]
    return t.b.assume(x, shape)


SELECTION: Mapping[str, Importer] = {
    "NonZero": _nonzero,
    "Compress": _compress,
    "TopK": _topk,
    "Unique": _unique,
    "NonMaxSuppression": _non_max_suppression,
}


def check_indices(t: Translation, node: OnnxNode) -> None:
    """Raises Unsupported if a constant index is out of the first operand's range, in a node that is sure to run."""
    if not t.is_sure or not isinstance(node.x(1), Constant):
        return
    indices, shape, name = node.array(1), node.first.shape, node.proto.input[1]
    if node.op in ("GatherND", "ScatterND"):
        first = node.integer("batch_dims") if node.op == "GatherND" else 0
        for column in range(indices.shape[-1]):
            _check_along(first + column, shape[first + column], indices[..., column], name)
    else:
        axis = node.axis()
        _check_along(axis, shape[axis], indices, name)


def _check_along(axis: int, extent: Size, indices: Array, name: str) -> None:
    if isinstance(extent, int):
        for index in indices[(indices < -extent) | (indices >= extent)][:1]:
            raise Unsupported(f"index {index} in input `{name}` lies outside of axis {axis}, of {extent} elements")


def _scatter_elements(t: Translation, node: OnnxNode) -> Expr:
    check_indices(t, node)
    how = node.text("reduction", "none")
    return t.b.scatter_elements(node.x(0), node.x(1), node.x(2), node.axis("axis", 0), reduction=how)


def _one_hot(t: Translation, node: OnnxNode) -> Expr:
    (depth,) = elements_of(t, t.fold(t.b.cast(node.x(1), i64)), 1)
    indices = node.first
    if indices.dtype not in (i32, i64):
        indices = t.b.cast(indices, i64)
    return t.b.one_hot(indices, extent_of(t, depth), node.x(2), axis=node.axis("axis", -1, rank=node.rank + 1))


def _reverse_sequence(t: Translation, node: OnnxNode) -> Expr:
    """Reverses the first elements of each sequence of a batch, as many as its length."""
    x, lengths = node.first, t.b.cast(node.x(1), i64)
    time, batch = node.axis("time_axis", 0), node.axis("batch_axis", 1)
    if {time, batch} != {0, 1}:
        raise Unsupported("its axes of time and batch are not the first two")
    order = (1, 0, *range(2, node.rank))
    ordered = x if batch == 0 else t.b.transpose(x, order)
    count = x.shape[time]
    steps = t.b.reshape(numbers(t, count), (1, count))
    ends = t.b.reshape(lengths, (x.shape[batch], 1))
    places = t.b.where(t.b.less(steps, ends), t.b.subtract(t.b.subtract(ends, 1), steps), steps)
    made = t.b.gather_nd(ordered, t.b.unsqueeze(places, -1), batch_dims=1)
    return made if batch == 0 else t.b.transpose(made, order)


def _above_diagonal(t: Translation, rows: Size, columns: Size) -> Expr:
    """For each element of a matrix, its distance to the right of the diagonal."""
    zero, one = t.b.constant(np.int64(0)), t.b.constant(np.int64(1))
    row = t.b.reshape(t.b.range(zero, one, rows), (rows, 1))
    return t.b.subtract(t.b.range(zero, one, columns), row)


def _trilu(t: Translation, node: OnnxNode) -> Expr:
    *_, rows, columns = node.first.shape
    (shift,) = elements_of(t, node.x(1), 1) if node.has(1) else (0,)
    distance = _above_diagonal(t, rows, columns)
    compare = t.b.greater_equal if node.flag("upper", 1) else t.b.less_equal
    inside = compare(distance, scalar(t, shift))
    false = t.b.cast(t.b.constant(np.int64(0)), node.first.dtype)
    return t.b.where(inside, node.first, false)


def _eye_like(t: Translation, node: OnnxNode) -> Expr:
    from_here = node.first
    rows, columns = from_here.shape
    distance = _above_diagonal(t, rows, columns)
    number = node.integer("dtype", NUMBERS[from_here.dtype])
    if number not in DTYPES:
        raise Unsupported("there is no such element type here")
    return t.b.cast(t.b.equal(distance, node.integer("k")), DTYPES[number])


INDEXING: Mapping[str, Importer] = {
    "ScatterElements": _scatter_elements,
    "Scatter": _scatter_elements,
    "OneHot": _one_hot,
    "Trilu": _trilu,
    "EyeLike": _eye_like,
    "ReverseSequence": _reverse_sequence,
}
