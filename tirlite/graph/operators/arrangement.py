"""Operators that change the order or shape of tensors, or join, split or create them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tirlite.diag import Span
from tirlite.graph.builder.calls import CallBuilder, Operand, operator
from tirlite.graph.expr import Call, TupleGetItem
from tirlite.graph.extents import Extent, Shape, is_equal, product, shape_of, size_of
from tirlite.graph.op import Array, Attrs, Axis, Count, Lowering, Reshape, Site, Sizes, Spelling, axis_of
from tirlite.graph.operators.operands import NUMBERS, broadcast_into, every_axis, indices, nonnegative, one_of
from tirlite.graph.run_dims import run_dims
from tirlite.graph.types import TensorType, TupleType
from tirlite.ir import DType, i64
from tirlite.record import record
from tirlite.sizes import Proof, Size, ceildiv, is_at_most, maximum, minimum, prove_eq, prove_le

# Indices from here on stand for the end of an axis in scripts and model files.
_FAR = 2**31 - 1


def resolved(shape: Shape, wanted: Shape) -> Shape:
    """`wanted` with its first -1 replaced by the extent that keeps the number of elements of `shape`.

    The inference of the type reports an error if there is none.
    """
    if -1 not in wanted:
        return wanted
    place = wanted.index(-1)
    extents, factors = [*shape], []
    for each in (*wanted[:place], *wanted[place + 1 :]):
        # Common factors cancel, which makes the quotient simpler.
        if isinstance(each, int) or each not in extents:
            factors.append(each)
        else:
            extents.remove(each)
    left, others = product(extents), product(factors)
    return (*wanted[:place], left // others if others != 0 else 0, *wanted[place + 1 :])


def sliced(extent: Size, start: Extent | None, stop: Extent | None, step: int, span: Span | None) -> tuple[Size, Size]:
    """The first index and the number of indices of `start:stop:step` on an axis; None stands for an end."""
    if step == 0:
        return 0, 0
    if step > 0:
        first = 0 if start is None else _clamped(size_of(start, span), 0, extent, extent)
        last = extent if stop is None else _clamped(size_of(stop, span), 0, extent, extent)
        return first, maximum(0, ceildiv(last - first, step))
    first = extent - 1 if start is None else _clamped(size_of(start, span), -1, extent - 1, extent)
    last = -1 if stop is None else _clamped(size_of(stop, span), -1, extent - 1, extent)
    return maximum(0, first), maximum(0, ceildiv(first - last, -step))


def _clamped(index: Size, low: Size, high: Size, extent: Size) -> Size:
    """An index clamped to `low` .. `high`; a negative one counts from the end."""
    if isinstance(index, int) and abs(index) >= _FAR:
        return high if index > 0 else low
    if prove_le(0, index) is Proof.NO:
        index = index + extent
    return maximum(low, minimum(index, high))


@record
class Transpose(Attrs):
    """The permutation: for each axis of the result, the axis of the operand."""

    axes: tuple[int, ...]


@record
class Broadcast(Attrs):
    """The extents of the result."""

    shape: Shape


@record
class Tile(Attrs):
    """How often the operand is repeated along each axis."""

    repeats: tuple[Size, ...]


@record
class Slice(Attrs):
    """For each axis: the first index, the number of indices, and the step, which may be negative."""

    starts: tuple[Size, ...]
    sizes: tuple[Size, ...]
    steps: tuple[int, ...]


@record
class Pad(Attrs):
    """The elements added before and after each axis.

    `mode` is "constant" (`value`), "edge" (the outermost element), "reflect" (mirrored at the outermost element) or
    "wrap" (from the other end).
    """

    before: tuple[Size, ...]
    after: tuple[Size, ...]
    mode: str = "constant"
    value: float | int = 0


PAD_MODES = ("constant", "edge", "reflect", "wrap")


def _reshape_type(site: Site, attrs: Reshape) -> TensorType:
    x = site.tensor(0)
    nonnegative(site, "extents", attrs.shape)
    before, after = product(x.shape), product(attrs.shape)
    if not site.is_equal(before, after):
        why = f"{before} elements become {after}"
        if prove_eq(before, after) is Proof.NO:
            raise site.mismatch(why)
        raise site.undecided(f"{why}: are they as many?", before, after)
    return TensorType(attrs.shape, x.dtype)


def _assume_type(site: Site, attrs: Reshape) -> TensorType:
    """The builder demands equal numbers of elements, so nothing is proved here."""
    x = site.tensor(0)
    nonnegative(site, "extents", attrs.shape)
    before, after = product(x.shape), product(attrs.shape)
    if prove_eq(before, after) is Proof.NO:
        raise site.mismatch(f"{before} elements become {after}")
    return TensorType(attrs.shape, x.dtype)


def _transpose_type(site: Site, attrs: Transpose) -> TensorType:
    x = site.tensor(0)
    if sorted(attrs.axes) != list(range(x.rank)):
        raise site.bad_attribute(f"axes must be an order of the {x.rank} axes from 0 on")
    return TensorType(tuple(x.shape[axis] for axis in attrs.axes), x.dtype)


def _broadcast_to_type(site: Site, attrs: Broadcast) -> TensorType:
    x = site.tensor(0)
    nonnegative(site, "extents", attrs.shape)
    broadcast_into(site, x, attrs.shape)
    return TensorType(attrs.shape, x.dtype)


def _tile_type(site: Site, attrs: Tile) -> TensorType:
    x = site.tensor(0)
    every_axis(site, x, "repeats", attrs.repeats)
    nonnegative(site, "repeats", attrs.repeats)
    return TensorType(tuple(e * n for e, n in zip(x.shape, attrs.repeats, strict=True)), x.dtype)


def _slice_type(site: Site, attrs: Slice) -> TensorType:
    x = site.tensor(0)
    for name in ("starts", "sizes", "steps"):
        every_axis(site, x, name, getattr(attrs, name))
    if 0 in attrs.steps:
        raise site.bad_attribute("a step must not be 0")
    nonnegative(site, "sizes", attrs.sizes)
    for axis, (start, size, step) in enumerate(zip(attrs.starts, attrs.sizes, attrs.steps, strict=True)):
        if is_at_most(1, size):
            last, extent = start + step * (size - 1), x.shape[axis]
            for index in (start, last):
                if prove_le(0, index) is Proof.NO or prove_le(index, extent - 1) is Proof.NO:
                    raise site.bad_attribute(f"axis {axis} has {extent} elements, and index {index} is asked for")
    return TensorType(attrs.sizes, x.dtype)


def _pad_type(site: Site, attrs: Pad) -> TensorType:
    x = site.tensor(0)
    every_axis(site, x, "before", attrs.before)
    every_axis(site, x, "after", attrs.after)
    nonnegative(site, "pads", attrs.before + attrs.after)
    one_of(site, "mode", attrs.mode, PAD_MODES)
    axes = tuple(zip(x.shape, attrs.before, attrs.after, strict=True))
    for axis, (extent, before, after) in enumerate(axes):
        if attrs.mode != "constant" and is_at_most(1, before + after) and not site.is_most(1, extent):
            raise site.mismatch(f"axis {axis} is empty, and has no elements that could be repeated around it")
    return TensorType(tuple(before + extent + after for extent, before, after in axes), x.dtype)


@record
class SplitSizes(Attrs):
    """The extents of the parts along an axis."""

    sizes: tuple[Size, ...]
    axis: int = 0


def _concat_type(site: Site, attrs: Axis) -> TensorType:
    dtype = site.same_dtype()
    first, *rest = site.tensors()
    axis = site.axis(attrs.axis, first.rank)
    total = first.shape[axis]
    for number, each in enumerate(rest, 1):
        if each.rank != first.rank:
            raise site.mismatch(f"operand {number} has {each.rank} axes, operand 0 {first.rank}")
        for other in range(first.rank):
            _check_equal(site, axis, other, first, each, number)
        total = total + each.shape[axis]
    return TensorType((*first.shape[:axis], total, *first.shape[axis + 1 :]), dtype)


def _check_equal(site: Site, axis: int, other: int, first: TensorType, each: TensorType, number: int) -> None:
    a, b = first.shape[other], each.shape[other]
    if other != axis and not site.is_equal(a, b):
        why = f"axis {other} is {a} in operand 0 and {b} in operand {number}"
        raise site.unequal(why, a, b)


def _split_type(site: Site, attrs: SplitSizes) -> TupleType:
    x = site.tensor(0)
    axis = site.axis(attrs.axis, x.rank)
    total: Size = 0
    for size in attrs.sizes:
        total = total + size
    if not attrs.sizes or not site.is_equal(total, x.shape[axis]):
        raise site.bad_attribute(f"the parts have {total} elements along axis {axis}, which has {x.shape[axis]}")
    parts = (TensorType((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype) for size in attrs.sizes)
    return TupleType(tuple(parts))


def _gather_type(site: Site, attrs: Axis) -> TensorType:
    x, places = site.tensor(0), indices(site, 1)
    axis = site.axis(attrs.axis, x.rank)
    return TensorType(x.shape[:axis] + places.shape + x.shape[axis + 1 :], x.dtype)


def _reshape(attrs: Reshape, x: Array) -> Array:
    return x.reshape(numbers(attrs.shape))


def _transpose(attrs: Transpose, x: Array) -> Array:
    return x.transpose(attrs.axes)


def _broadcast_to(attrs: Broadcast, x: Array) -> Array:
    return np.broadcast_to(x, numbers(attrs.shape))


def _tile(attrs: Tile, x: Array) -> Array:
    return np.tile(x, numbers(attrs.repeats))


def _slice(attrs: Slice, x: Array) -> Array:
    ranges = zip(numbers(attrs.starts), numbers(attrs.sizes), attrs.steps, strict=True)
    return x[np.ix_(*(start + step * np.arange(size) for start, size, step in ranges))] if x.ndim else x


def _pad(attrs: Pad, x: Array) -> Array:
    widths = list(zip(numbers(attrs.before), numbers(attrs.after), strict=True))
    if attrs.mode == "constant":
        return np.pad(x, widths, constant_values=x.dtype.type(attrs.value))
    modes: Any = attrs.mode
    return np.pad(x, widths, mode=modes)


def _concat(attrs: Axis, *parts: Array) -> Array:
    return np.concatenate(parts, attrs.axis)


def _split(attrs: SplitSizes, x: Array) -> tuple[Array, ...]:
    ends = np.cumsum(numbers(attrs.sizes))[:-1]
    return tuple(np.split(x, ends, attrs.axis))


def _gather(attrs: Axis, x: Array, indices: Array) -> Array:
    return np.take(x, indices, attrs.axis)


def numbers(sizes: tuple[object, ...]) -> tuple[int, ...]:
    """The sizes as integers; all are, once the dims are bound."""
    assert all(isinstance(size, int) for size in sizes)
    return tuple(size for size in sizes if isinstance(size, int))


class Arrangement(CallBuilder):
    """Moves elements of any type without changing them. Extents may be integers, dims, or expressions of dims."""

    @operator(_reshape_type, _reshape, attrs=Reshape, is_view=True)
    def reshape(self, x: Operand, shape: Sequence[Extent]) -> Call:
        """The same elements in the same order under another shape; one extent may be -1 and is then inferred."""
        (value,) = self._operands([x], span := self._here())
        if self.renewal is not None:
            value = self.renewal.value(value)
            shape = self.renewal.shape(shape_of(shape, span))
        extents = resolved(value.shape, shape_of(shape, span))
        asked_by = self._asking("reshape")
        if self.renewal is not None and self.renewal.is_open(product(value.shape), product(extents), asked_by, span):
            return self.assume(value, extents)
        return self.call("reshape", value, attrs=Reshape(extents))

    @operator(_assume_type, _reshape, attrs=Reshape, is_view=True)
    def assume(self, x: Operand, shape: Sequence[Extent]) -> Call:
        """x under another shape of as many elements; if the counts are not proved equal, each call or run checks it."""
        (value,) = self._operands([x], span := self._here())
        extents = shape_of(shape, span)
        made = self.call("assume", value, attrs=Reshape(extents))
        differ = [(a, b) for a, b in zip(value.shape, extents, strict=False) if not is_equal(a, b)]
        is_one = len(differ) == 1 and len(value.shape) == len(extents)
        before, after = differ[0] if is_one else (product(value.shape), product(extents))
        asked_by = self._asking(f"reshape({value.type})")
        if is_one and self.renewal is not None and self.demands.ask(after, before, asked_by, span):
            return made
        if not is_equal(before, after) and not run_dims((before, after)):
            self.demands.assume(before, after, asked_by, span)
        return made

    def flatten(self, x: Operand, axis: int = 1) -> Call:
        """A matrix: the axes before `axis` become its rows, the others its columns."""
        (value,) = self._operands([x], self._here())
        place = axis if axis >= 0 else axis + len(value.shape)
        return self.reshape(value, (product(value.shape[:place]), product(value.shape[place:])))

    def squeeze(self, x: Operand, axes: int | Sequence[int] | None = None) -> Call:
        """Removes these axes, whose extents must be 1; by default all axes of extent 1."""
        (value,) = self._operands([x], self._here())
        rank = len(value.shape)
        if axes is None:
            dropped = {axis for axis, extent in enumerate(value.shape) if extent == 1}
        else:
            dropped = {axis % rank if rank else axis for axis in ([axes] if isinstance(axes, int) else axes)}
        return self.reshape(value, [extent for axis, extent in enumerate(value.shape) if axis not in dropped])

    def unsqueeze(self, x: Operand, axes: int | Sequence[int]) -> Call:
        """Inserts axes of extent 1 at these positions of the result."""
        (value,) = self._operands([x], self._here())
        places = [axes] if isinstance(axes, int) else list(axes)
        rank = len(value.shape) + len(places)
        put = {place % rank for place in places}
        rest = iter(value.shape)
        return self.reshape(value, [1 if axis in put else next(rest, 1) for axis in range(rank)])

    def expand_dims(self, x: Operand, axis: int) -> Call:
        """Inserts one axis of extent 1."""
        return self.unsqueeze(x, axis)

    @operator(_transpose_type, _transpose, "arrange.transpose", attrs=Transpose)
    def transpose(self, x: Operand, axes: Sequence[int] | None = None) -> Call:
        """The axes in another order; by default reversed."""
        (value,) = self._operands([x], self._here())
        rank = len(value.shape)
        order = range(rank - 1, -1, -1) if axes is None else [axis + rank if axis < 0 else axis for axis in axes]
        return self.call("transpose", value, attrs=Transpose(tuple(order)))

    @operator(_broadcast_to_type, _broadcast_to, Lowering("arrange.broadcast_to", said=("shape",)), attrs=Broadcast)
    def broadcast_to(self, x: Operand, shape: Sequence[Extent]) -> Call:
        """x broadcast to this shape: repeated along missing axes and axes of extent 1."""
        return self.call("broadcast_to", x, attrs=Broadcast(shape_of(shape, self._here())))

    @operator(_tile_type, _tile, "arrange.tile", attrs=Tile)
    def tile(self, x: Operand, repeats: Sequence[Extent]) -> Call:
        """x repeated this many times along each axis."""
        return self.call("tile", x, attrs=Tile(shape_of(repeats, self._here())))

    @operator(_slice_type, _slice, "arrange.slice_", attrs=Slice)
    def slice(
        self,
        x: Operand,
        starts: Sequence[Extent | None],
        stops: Sequence[Extent | None],
        axes: Sequence[int] | None = None,
        steps: Sequence[int] | None = None,
    ) -> Call:
        """`x[start:stop:step]`, as in Python, along the given axes, or the first ones."""
        (value,) = self._operands([x], span := self._here())
        shape = value.shape
        every: list[tuple[Size, Size, int]] = [(0, extent, 1) for extent in shape]
        chosen = range(len(starts)) if axes is None else [axis % max(len(shape), 1) for axis in axes]
        for axis, start, stop, step in zip(chosen, starts, stops, steps or (1,) * len(starts), strict=True):
            every[axis] = (*sliced(shape[axis], start, stop, step, span), step)
        return self.call(
            "slice", value, attrs=Slice(*map(tuple, zip(*every, strict=True))) if every else Slice((), (), ())
        )

    @operator(_pad_type, _pad, "arrange.pad", attrs=Pad)
    def pad(
        self,
        x: Operand,
        before: Sequence[Extent],
        after: Sequence[Extent] | None = None,
        *,
        mode: str = "constant",
        value: float | int = 0,
    ) -> Call:
        """x padded before and after each axis: with `value`, or by mode "edge", "reflect" or "wrap"."""
        first = shape_of(before, span := self._here())
        last = first if after is None else shape_of(after, span)
        return self.call("pad", x, attrs=Pad(first, last, mode, value))

    @operator(_concat_type, _concat, "arrange.concat", most=None, attrs=Axis)
    def concat(self, parts: Sequence[Operand], axis: int = 0) -> Call:
        """The parts concatenated along an axis."""
        return self.call("concat", *parts, attrs=Axis(axis))

    @operator(_split_type, _split, Lowering("arrange.split", said=("sizes",)), attrs=SplitSizes)
    def split(self, x: Operand, parts: int | Sequence[Extent], axis: int = 0) -> list[TupleGetItem]:
        """Splits x along an axis: into the given extents, or into this many equal parts, the last with the rest."""
        (value,) = self._operands([x], span := self._here())
        if isinstance(parts, int):
            extent = value.shape[axis] if -len(value.shape) <= axis < len(value.shape) else 0
            each = ceildiv(extent, parts) if parts > 0 else 0
            sizes = (*(each,) * (parts - 1), extent - each * (parts - 1))
        else:
            sizes = shape_of(parts, span)
        call = self.call("split", value, attrs=SplitSizes(sizes, axis))
        return [self.item(call, number) for number in range(len(sizes))]

    @operator(_gather_type, _gather, "indexing.gather", least=2, attrs=Axis, onnx=Spelling("Gather", axis_of))
    def gather(self, x: Operand, indices: Operand, axis: int = 0) -> Call:
        """The elements at these indices of an axis, which the axes of the indices replace; as numpy.take."""
        return self.call("gather", x, indices, attrs=Axis(axis))


def _sizes_type(site: Site, attrs: Sizes) -> TensorType:
    if not attrs.dtype.is_integer:
        raise site.bad_attribute(f"sizes are integers, not {attrs.dtype}")
    made = TensorType(attrs.extents, attrs.dtype)
    if made.elements != len(attrs.elements):
        raise site.bad_attribute(f"{len(attrs.elements)} elements do not fill {made}")
    return made


def _range_type(site: Site, attrs: Count) -> TensorType:
    dtype = NUMBERS.shared(site)
    if any(each.rank for each in site.tensors()):
        raise site.mismatch("start and step must have no axes")
    nonnegative(site, "count", (attrs.count,))
    return TensorType((attrs.count,), dtype)


def _sizes(attrs: Sizes) -> Array:
    return np.array(attrs.elements, attrs.dtype.numpy).reshape(numbers(attrs.extents))


def _range(attrs: Count, start: Array, delta: Array) -> Array:
    assert isinstance(attrs.count, int)
    return np.asarray(start + np.arange(attrs.count).astype(start.dtype) * delta)


class Creation(CallBuilder):
    """Creates tensors from numbers and dims."""

    @operator(_range_type, _range, Lowering("arrange.range_", said=("count",)), least=2, attrs=Count)
    def range(self, start: Operand, delta: Operand, count: Extent) -> Call:
        """`start + i * delta` for i below `count`."""
        return self.call("range", start, delta, attrs=Count(size_of(count, self._here())))

    @operator(_sizes_type, _sizes, least=0, attrs=Sizes)
    def sizes(self, elements: Sequence[Extent], dtype: DType = i64) -> Call:
        """A vector of integers, given as expressions of dims."""
        found = shape_of(elements, self._here())
        return self.call("sizes", attrs=Sizes(found, (len(found),), dtype))
