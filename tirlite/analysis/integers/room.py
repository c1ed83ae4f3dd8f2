"""Finds for each extent of a rewritten function a size that it never exceeds, from the bounds of its variables.

What is read from memory is not below what its type holds, and nothing bounds it above but a minimum with something
else. Sums and products are taken in the integers, though i64 may wrap around: where their bounds fit into i64, which is
checked before storage of that size is had, so does the extent, and modulo 2**64 it is the same.
"""

from __future__ import annotations

from tirlite.analysis.integers.definitions import Definition
from tirlite.analysis.integers.extents import Extents
from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.ir import Expr, PrimFunc
from tirlite.sizes import Size
from tirlite.sizes.poly import bare, varies
from tirlite.sizes.unknown import Ends, ends, linear


class Room(IndexSpace):
    """The most that integer expressions of a function can be."""

    def __init__(self, func: PrimFunc, extents: Extents) -> None:
        super().__init__(func, extents)
        # What is known on entry is taken as it is: extents made of it are checked there.
        self._values |= extents.sizes

    def most(self, expr: Expr) -> Size | None:
        """A size, known on entry to the function, that `expr` never exceeds; None where none is found."""
        return self.ends(expr)[1]

    def ends(self, expr: Expr) -> Ends:
        """A size that `expr` never falls below, and one that it never exceeds; None where none is found."""
        size = self.size(expr)
        low, high = ends(size)
        is_any = low is None and varies(size) and bare(size) is None
        return (None, None) if is_any or linear(size) is None else (low, high)

    def opaque(self, expr: Expr, owner: Definition | None) -> Size:
        narrow = expr.dtype.is_integer and expr.dtype.bits < 64
        return self.unknown("a value", expr.dtype.min if narrow else None) + 0
