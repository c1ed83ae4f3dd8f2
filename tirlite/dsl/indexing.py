"""What stands before square brackets, and what stands in them, in; an element, an extent or a tensor type out."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.diag import Message, Span
from tirlite.dsl.convert import number
from tirlite.dsl.parameters import described
from tirlite.ir.dtype import DType, TensorType
from tirlite.ir.expr import Buffer, Expr, IntImm, Load
from tirlite.record import record


class BadIndex(Message):
    """An index is not an integer, or a vector in the wrong place.

    Example: `x[0.5 * i]`.
    Fix: Use an integer, as in `x[i // 2]`, or cast with `tl.i64(...)`.
    """

    title = "index {axis} of `{name}` is {given}"
    help = "an index is an integer: `//` gives one, and tl.i64(...) casts; only the last may be a vector"


class NegativeIndex(Message):
    """A constant index is below zero.

    Example: `x[-1]`.
    Fix: Count from 0: the last element is `x[x.shape[0] - 1]`.
    """

    title = "index {axis} of `{name}` is {value}"
    help = "indices count from 0; the end is `{name}.shape[{axis}]{value}`"


class NoSuchExtent(Message):
    """`.shape` is indexed by something other than the number of an axis.

    Example: `x.shape[2]`, where `x` has two axes.
    Fix: Write a constant from 0 to the number of axes less one.
    """

    title = "`{name}` has no extent {given}"
    help = "{advice}"


class TupleIndex(Message):
    """A tuple from around the kernel is indexed by something other than a constant in its range.

    Example: `WEIGHTS[k]` in a `range` loop over `k`, where `WEIGHTS = (1, 2, 1)`.
    Fix: Loop over `tl.static(range(3))`, or pass the values as an array.
    """

    title = "a tuple of {count} is indexed by {given}"
    help = "the index is a constant; a loop over tl.static(range({count})) has constant variables"


@record
class Shape:
    """`x.shape`, before it is indexed."""

    buffer: Buffer


def element(buffer: Buffer, values: Sequence[object], spans: Sequence[Span], span: Span) -> Load:
    """`buffer[values]`."""
    rank, name = len(buffer.shape), buffer.name
    if len(values) != rank:
        from tirlite.ir.validate_types import IndexCount

        example = ", ".join(f"i{axis}" for axis in range(rank)) if rank else "()"
        advice = f"write {name}[{example}]"
        if 0 < len(values) < rank:
            advice += ", all indices between one pair of brackets; what has fewer axes is gone over by a loop"
        raise IndexCount(name, rank, len(values), advice, span=span).error()
    last = rank - 1
    return Load(
        buffer, tuple(_index(name, n, n == last, *each) for n, each in enumerate(zip(values, spans, strict=True)))
    )


def _index(name: str, axis: int, may_be_vector: bool, value: object, span: Span) -> Expr:
    if isinstance(value, (bool, float)) or not isinstance(value, (int, Expr)):
        raise BadIndex(axis, name, described(value), span=span).error()
    index = number(value, span)
    if not index.dtype.is_integer or (index.dtype.lanes > 1 and not may_be_vector):
        raise BadIndex(axis, name, described(value), span=span).error()
    if isinstance(index, IntImm) and index.value < 0:
        raise NegativeIndex(axis, name, index.value, span=span).error()
    return index


def chosen(values: tuple[object, ...], index: object, span: Span) -> object:
    """The element of a constant tuple at a constant index."""
    if isinstance(index, bool) or not isinstance(index, int) or not -len(values) <= index < len(values):
        raise TupleIndex(len(values), described(index), span=span).error()
    return values[index]


def _extents_of(buffer: Buffer) -> str:
    """What of the shape of a buffer can be written, as advice."""
    last = len(buffer.shape) - 1
    if last < 0:
        return f"`{buffer.name}` has no axes"
    return f"write {buffer.name}.shape[0]" + (f" to {buffer.name}.shape[{last}], with a constant" if last else "")


def extent_of(shape: Shape, values: Sequence[object], span: Span) -> Expr:
    """`x.shape[axis]`."""
    extents = shape.buffer.shape
    axis = values[0] if len(values) == 1 else None
    if isinstance(axis, bool) or not isinstance(axis, int) or not 0 <= axis < len(extents):
        given = " ".join(described(value) for value in values)
        raise NoSuchExtent(shape.buffer.name, given, _extents_of(shape.buffer), span=span).error()
    return extents[axis]


def tensor_type(dtype: DType, values: Sequence[object]) -> TensorType:
    """`tl.f32[values]`; a shape from around the kernel counts as its extents."""
    return TensorType(dtype, tuple(values))
