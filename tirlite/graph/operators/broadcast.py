"""Computes the shape that shapes broadcast to, as NumPy does it, and finds others that do not go together."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.graph.extents import Shape, is_at_most
from tirlite.graph.op import Site
from tirlite.graph.types import TensorType
from tirlite.sizes import Proof, Size, prove_eq


def broadcast(site: Site, shapes: Sequence[Shape]) -> Shape:
    """The common shape: axes are aligned at the end, and an extent of 1 is repeated.

    Symbolic extents must be proved to be equal, or be 1. Raises GraphError where they cannot be, or may not be.
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


def broadcast_into(site: Site, operand: TensorType, shape: tuple[Size, ...]) -> None:
    """Raises GraphError where an operand does not broadcast to exactly this shape."""
    made = broadcast(site, [operand.shape, shape])
    if len(made) != len(shape) or not all(map(site.is_equal, made, shape)):
        raise site.mismatch(f"{operand} does not broadcast to {TensorType(shape, operand.dtype)}")


def contracted(site: Site, a: Size, b: Size) -> None:
    """Raises GraphError where two extents that are summed over are not the same."""
    if not site.is_equal(a, b):
        raise site.unequal(f"the extents summed over are {a} and {b}", a, b)
