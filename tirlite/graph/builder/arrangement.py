"""The builder's methods for operators that put the elements of tensors into another order or shape."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.graph.builder.calls import CallBuilder, Operand
from tirlite.graph.builder.ranges import resolved, sliced
from tirlite.graph.expr import Call, TupleGetItem
from tirlite.graph.extents import Extent, is_equal, product, shape_of
from tirlite.graph.ops import Axis, Broadcast, Pad, Reshape, Slice, Split, Tile, Transpose
from tirlite.sizes import Size, ceildiv


class ArrangementBuilder(CallBuilder):
    """Elements of any type, moved but not changed. Extents may be integers, dims, or expressions of dims."""

    def reshape(self, x: Operand, shape: Sequence[Extent]) -> Call:
        """The same elements in the same order under another shape; one extent may be -1: whatever is left for it."""
        (value,) = self._operands([x], span := self._here())
        if self.renewal is not None:
            value = self.renewal.value(value)
            shape = self.renewal.shape(shape_of(shape, span))
        extents = resolved(value.shape, shape_of(shape, span))
        if self.renewal is not None and self.renewal.is_open(product(value.shape), product(extents), "reshape", span):
            return self.assume(value, extents)
        return self.call("reshape", value, attrs=Reshape(extents))

    def assume(self, x: Operand, shape: Sequence[Extent]) -> Call:
        """x under another shape of as many elements: where that is not proved, each call is checked for it."""
        (value,) = self._operands([x], span := self._here())
        extents = shape_of(shape, span)
        made = self.call("assume", value, attrs=Reshape(extents))
        before, after = product(value.shape), product(extents)
        if not is_equal(before, after):
            self.demands.assume(before, after, f"reshape({value.type})", span)
        return made

    def flatten(self, x: Operand, axis: int = 1) -> Call:
        """A matrix: the axes before `axis` become its rows, those from there on its columns."""
        (value,) = self._operands([x], self._here())
        place = axis if axis >= 0 else axis + len(value.shape)
        return self.reshape(value, (product(value.shape[:place]), product(value.shape[place:])))

    def squeeze(self, x: Operand, axes: int | Sequence[int] | None = None) -> Call:
        """Without these axes, whose extents must be 1; without all axes of extent 1 where none are given."""
        (value,) = self._operands([x], self._here())
        rank = len(value.shape)
        if axes is None:
            dropped = {axis for axis, extent in enumerate(value.shape) if extent == 1}
        else:
            dropped = {axis % rank if rank else axis for axis in ([axes] if isinstance(axes, int) else axes)}
        return self.reshape(value, [extent for axis, extent in enumerate(value.shape) if axis not in dropped])

    def unsqueeze(self, x: Operand, axes: int | Sequence[int]) -> Call:
        """With axes of extent 1 put in, so that they stand at these places of the result."""
        (value,) = self._operands([x], self._here())
        places = [axes] if isinstance(axes, int) else list(axes)
        rank = len(value.shape) + len(places)
        put = {place % rank for place in places}
        rest = iter(value.shape)
        return self.reshape(value, [1 if axis in put else next(rest, 1) for axis in range(rank)])

    def expand_dims(self, x: Operand, axis: int) -> Call:
        """With one axis of extent 1 put in."""
        return self.unsqueeze(x, axis)

    def transpose(self, x: Operand, axes: Sequence[int] | None = None) -> Call:
        """The axes in another order; reversed where none is given."""
        (value,) = self._operands([x], self._here())
        rank = len(value.shape)
        order = range(rank - 1, -1, -1) if axes is None else [axis + rank if axis < 0 else axis for axis in axes]
        return self.call("transpose", value, attrs=Transpose(tuple(order)))

    def broadcast_to(self, x: Operand, shape: Sequence[Extent]) -> Call:
        """x, repeated along the axes that it lacks and those of extent 1 until it has this shape."""
        return self.call("broadcast_to", x, attrs=Broadcast(shape_of(shape, self._here())))

    def tile(self, x: Operand, repeats: Sequence[Extent]) -> Call:
        """x, so many times along each axis."""
        return self.call("tile", x, attrs=Tile(shape_of(repeats, self._here())))

    def slice(
        self,
        x: Operand,
        starts: Sequence[Extent | None],
        stops: Sequence[Extent | None],
        axes: Sequence[int] | None = None,
        steps: Sequence[int] | None = None,
    ) -> Call:
        """`x[start:stop:step]` along the given axes, or the first ones, with the meaning that Python gives it."""
        (value,) = self._operands([x], span := self._here())
        shape = value.shape
        every: list[tuple[Size, Size, int]] = [(0, extent, 1) for extent in shape]
        chosen = range(len(starts)) if axes is None else [axis % max(len(shape), 1) for axis in axes]
        for axis, start, stop, step in zip(chosen, starts, stops, steps or (1,) * len(starts), strict=True):
            every[axis] = (*sliced(shape[axis], start, stop, step, span), step)
        return self.call(
            "slice", value, attrs=Slice(*map(tuple, zip(*every, strict=True))) if every else Slice((), (), ())
        )

    def pad(
        self,
        x: Operand,
        before: Sequence[Extent],
        after: Sequence[Extent] | None = None,
        *,
        mode: str = "constant",
        value: float | int = 0,
    ) -> Call:
        """x with more elements before and behind each axis: of `value`, or by mode "edge", "reflect" or "wrap"."""
        first = shape_of(before, span := self._here())
        last = first if after is None else shape_of(after, span)
        return self.call("pad", x, attrs=Pad(first, last, mode, value))

    def concat(self, parts: Sequence[Operand], axis: int = 0) -> Call:
        """The parts one behind the other along an axis."""
        return self.call("concat", *parts, attrs=Axis(axis))

    def split(self, x: Operand, parts: int | Sequence[Extent], axis: int = 0) -> list[TupleGetItem]:
        """The parts along an axis: of the given extents, or so many equal ones and the last of what is left."""
        (value,) = self._operands([x], span := self._here())
        if isinstance(parts, int):
            extent = value.shape[axis] if -len(value.shape) <= axis < len(value.shape) else 0
            each = ceildiv(extent, parts) if parts > 0 else 0
            sizes = (*(each,) * (parts - 1), extent - each * (parts - 1))
        else:
            sizes = shape_of(parts, span)
        call = self.call("split", value, attrs=Split(sizes, axis))
        return [self.item(call, number) for number in range(len(sizes))]

    def gather(self, x: Operand, indices: Operand, axis: int = 0) -> Call:
        """The elements at these indices of an axis, whose place the axes of the indices take; as numpy.take."""
        return self.call("gather", x, indices, attrs=Axis(axis))
