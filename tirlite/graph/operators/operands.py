"""Checks of operands: kinds of element types with their names in messages, and shapes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tirlite.graph.extents import Shape
from tirlite.graph.op import Attrs, Site
from tirlite.graph.types import TensorType
from tirlite.ir import DType, i32, i64
from tirlite.record import record
from tirlite.sizes import Proof, Size, is_at_most, prove_eq, prove_le


@record
class Elements:
    """A set of element types with a name. Each method raises GraphError for a type outside of the set."""

    name: str
    holds: Callable[[DType], bool]

    def demand(self, site: Site, dtype: DType) -> DType:
        """Returns `dtype` if it belongs to the set."""
        if not self.holds(dtype):
            raise site.wrong_type(f"the elements must be {self.name}, and are {dtype}")
        return dtype

    def shared(self, site: Site) -> DType:
        """The element type that all operands share."""
        return self.demand(site, site.same_dtype())

    def first(self, site: Site) -> TensorType:
        """The type of the first operand."""
        self.demand(site, site.tensor(0).dtype)
        return site.tensor(0)

    def same(self, site: Site, attrs: Attrs) -> TensorType:
        """The type rule of operators whose result has the type of their operand."""
        return self.first(site)


NUMBERS = Elements("numbers", lambda dtype: dtype.is_number)
FLOATS = Elements("of a float type", lambda dtype: dtype.is_float)
INTEGERS = Elements("integers", lambda dtype: dtype.is_integer)
BOOLS = Elements("bool_", lambda dtype: dtype.is_bool)
BITS = Elements("integers or bool_", lambda dtype: dtype.is_bits)
NUMBERS_OR_BOOLS = Elements("numbers or bool_", lambda dtype: not dtype.is_handle)


def indices(site: Site, number: int) -> TensorType:
    """The type of an operand that holds indices."""
    found = site.tensor(number)
    if found.dtype not in (i32, i64):
        raise site.wrong_type(f"indices must be i32 or i64, and are {found.dtype}")
    return found


def nonnegative(site: Site, what: str, sizes: Shape) -> None:
    """Raises GraphError if one of the sizes is proved negative."""
    if any(prove_le(0, size) is Proof.NO for size in sizes):
        raise site.bad_attribute(f"{what} must not be negative")


def every_axis(site: Site, x: TensorType, name: str, given: Sequence[object]) -> None:
    """Raises GraphError if an attribute does not have one entry per axis."""
    if len(given) != x.rank:
        raise site.bad_attribute(f"{name} has {len(given)} entries, and there are {x.rank} axes")


def one_of(site: Site, name: str, text: str, known: Collection[str]) -> None:
    """Raises GraphError if an attribute is not one of the known values."""
    if text not in known:
        raise site.bad_attribute(f"{name} must be one of {', '.join(known)}")


def has_shape(site: Site, of: TensorType, shape: Shape) -> bool:
    return of.rank == len(shape) and all(map(site.is_equal, of.shape, shape))


def broadcast(site: Site, shapes: Sequence[Shape]) -> Shape:
    """The shape that all shapes broadcast to, as in NumPy: axes are aligned at the end, and extents of 1 are repeated.

    Other extents must be proved equal, or become a demand; otherwise GraphError is raised.
    """
    rank = max(map(len, shapes))
    aligned = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(_extent(site, axis - rank, column) for axis, column in enumerate(zip(*aligned, strict=True)))


def _extent(site: Site, axis: int, column: Sequence[Size]) -> Size:
    result: Size = 1
    for extent in column:
        if result == 1:
            result = extent
        elif extent != 1 and not site.is_equal(result, extent):
            differ = prove_eq(result, extent) is Proof.NO
            if differ and all(is_at_most(2, each) or each == 0 for each in (result, extent)):
                raise site.mismatch(f"axis {axis} is {result} in one operand and {extent} in another")
            why = f"axis {axis} is {result} in one operand and {extent} in another: are they equal?"
            raise site.undecided(why)
    return result


def broadcast_into(site: Site, operand: TensorType, shape: Shape) -> None:
    """Raises GraphError if an operand does not broadcast to exactly this shape."""
    made = broadcast(site, [operand.shape, shape])
    if len(made) != len(shape) or not all(map(site.is_equal, made, shape)):
        raise site.mismatch(f"{operand} does not broadcast to {TensorType(shape, operand.dtype)}")


def contracted(site: Site, a: Size, b: Size) -> None:
    """Raises GraphError if the two extents of a contracted axis differ."""
    if not site.is_equal(a, b):
        raise site.unequal(f"the extents summed over are {a} and {b}", a, b)
