"""The types of values in a graph: tensors of an element type and a symbolic shape, and tuples of types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from tirlite.diag import CallTypeError, GraphMessage, Message, Span
from tirlite.graph.extents import Extent, Shape, is_equal, product, shape_of
from tirlite.ir import DType, TensorType as Annotation
from tirlite.record import record
from tirlite.show import shown
from tirlite.sizes import Dim, Proof, Size, is_at_most, maximum, prove_le, substitute


class NegativeGraphExtent(GraphMessage):
    """An extent of a tensor in a graph is below zero for all values of the dims.

    Example: `g.input("x", tl.graph.TensorType((-1, 3), tl.f32))`.
    """

    title = "`{name}` has the type {type}, with an extent below zero"
    help = "extents are zero or more; write a dim, `tl.dim(...)`, for one that is free"


class NoTensorType(Message):
    """Something other than the type of a tensor is given where one is taken.

    Example: `g.input("x", 3)`, or the type of a tuple there.
    Fix: Give an element type with extents, as in `tl.f32[n, 3]`; a tuple is made of inputs, `g.tuple(a, b)`.
    """

    raises = CallTypeError
    title = "{given} is not a type of a tensor"
    help = "write an element type with extents, as in `tl.f32[n, 3]`"


@record
class TensorType:
    """A tensor: its extents, which are sizes over dims, and its element type. Equal by value."""

    shape: Shape
    dtype: DType

    def __post_init__(self) -> None:
        # By their types: a class may say anything of `__class__`.
        if not issubclass(type(self.dtype), DType) or not issubclass(type(self.shape), Iterable):
            raise NoTensorType(f"shape {shown(self.shape)[:60]} of {shown(self.dtype)[:60]}").error()
        object.__setattr__(self, "shape", shape_of(self.shape))

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def elements(self) -> Size:
        """How many elements there are; an extent that may be below zero counts as zero there."""
        return product(e if is_at_most(0, e) else maximum(0, e) for e in self.shape)

    @property
    def bytes(self) -> Size:
        """The bytes of all elements, without padding."""
        return self.elements * self.dtype.bytes

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape)) or '()'}]"


@record
class TupleType:
    """A tuple of values of these types."""

    fields: tuple[Type, ...]

    def __str__(self) -> str:
        comma = "," if len(self.fields) == 1 else ""
        return f"({', '.join(map(str, self.fields))}{comma})"


Type: TypeAlias = "TensorType | TupleType"


def tensor_type(given: Annotation | DType | TensorType, name: str = "", span: Span | None = None) -> TensorType:
    """The tensor type that `tl.f32[n, 3]` stands for; `tl.f32` alone has no axis.

    Raises CallTypeError for what is not a type of a tensor, GraphError for what is not an extent, or is negative.
    """
    if not issubclass(type(given), (DType, TensorType, Annotation)):
        text = str(given) if issubclass(type(given), TupleType) else shown(given)
        raise NoTensorType(text[:60], span=span).error()
    if isinstance(given, DType):
        return TensorType((), given)
    made = (
        given
        if isinstance(given, TensorType)
        else TensorType(shape_of(cast("tuple[Extent, ...]", given.shape), span), given.dtype)
    )
    if not all_nonnegative(made):
        raise NegativeGraphExtent(name, str(made), span=span).error()
    return made


def all_nonnegative(given: TensorType) -> bool:
    """Whether no extent is proved to be below zero."""
    return all(prove_le(0, extent) is not Proof.NO for extent in given.shape)


def tensors(given: Type) -> tuple[TensorType, ...]:
    """The tensors in a type, from left to right."""
    return tuple(_tensors(given))


def extents_in(types: Iterable[Type]) -> list[Size]:
    """The extents of the tensors in some types, from left to right."""
    return [extent for given in types for of in tensors(given) for extent in of.shape]


def _tensors(given: Type) -> Iterator[TensorType]:
    stack = [given]
    while stack:
        top = stack.pop()
        if isinstance(top, TensorType):
            yield top
        else:
            stack += reversed(top.fields)


def same_type(a: Type, b: Type) -> bool:
    """Whether both are the same for all values of the dims, as far as that is proved."""
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        equal = a.dtype == b.dtype and a.rank == b.rank
        return equal and all(is_equal(m, n) for m, n in zip(a.shape, b.shape, strict=True))
    if isinstance(a, TupleType) and isinstance(b, TupleType):
        return len(a.fields) == len(b.fields) and all(map(same_type, a.fields, b.fields))
    return False


def substituted(given: Type, sizes: Mapping[Dim, Size]) -> Type:
    """The type with sizes in the place of dims."""
    return mapped_type(given, lambda extent: substitute(extent, sizes))


def mapped_type(given: Type, function: Callable[[Size], Size]) -> Type:
    """The type with each extent mapped by a function."""
    if isinstance(given, TupleType):
        return TupleType(tuple(mapped_type(each, function) for each in given.fields))
    return TensorType(tuple(map(function, given.shape)), given.dtype)


def leaves_of(given: Any) -> tuple[Any, ...]:
    """The leaves of nested tuples, from left to right."""
    return tuple(leaf for each in given for leaf in leaves_of(each)) if isinstance(given, tuple) else (given,)


def mapped_leaves(function: Callable[[Any], Any], given: Any) -> Any:
    """The nested tuples with each leaf mapped by a function."""
    return tuple(mapped_leaves(function, each) for each in given) if isinstance(given, tuple) else function(given)


def mapped_tensors(function: Callable[[Any, TensorType], Any], value: Any, of: Type) -> Any:
    """A value of a type with each tensor mapped by a function."""
    if isinstance(of, TensorType):
        return function(value, of)
    return tuple(mapped_tensors(function, each, kind) for each, kind in zip(value, of.fields, strict=True))


def structured(of: Type, leaves: Iterator[Any]) -> Any:
    """A value of a type, of the tensors in it from left to right."""
    if isinstance(of, TensorType):
        return next(leaves)
    return tuple([next(leaves) if type(each) is TensorType else structured(each, leaves) for each in of.fields])


Array = npt.NDArray[Any]


def bfloat_bits(array: Array) -> Array:
    """The bits of the bfloat16 next to each f32, the even one of two as near."""
    bits = array.view(np.uint32)
    up = (bits >> 16 & 1) + np.uint32(0x7FFF)
    return np.where(np.isnan(array), np.uint32(0x7FC0), bits + up >> 16).astype(np.uint16)


def bfloat_values(bits: Array) -> Array:
    """The numbers that these bits are, as f32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)
