"""Finds upper bounds of extents, and of the bytes of buffers, from the bounds of variables.

A value read from memory is bounded below by its type, and above only by a minimum with something else. Sums and
products are computed in the integers, though i64 may wrap around: if their bounds fit into i64, which is checked before
storage of that size is allocated, so does the extent, and modulo 2**64 it is the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tirlite.analysis.facts import Facts
from tirlite.analysis.integers.definitions import Definition
from tirlite.analysis.integers.extents import Extents
from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.ir import Buffer, Expr, PrimFunc
from tirlite.sizes import Size, is_at_most, maximum
from tirlite.sizes.poly import bare, varies
from tirlite.sizes.unknown import Ends, ends, linear, unknowns_in


class ExtentBounds(IndexSpace):
    """Bounds of integer expressions of a function, by sizes that are known on entry."""

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


class MostBytes:
    """Bounds on the bytes of buffers, for allocations that are to leave the loops that their extents depend on."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._extents = facts.extents
        self._bounds: ExtentBounds | None = None

    def of(self, buffer: Buffer) -> Size | None:
        """The bytes of a buffer if they are known on entry, else a size that they never exceed; None without one.

        What is read from memory has no bound but one that it is held to by a minimum: its type may have one, but that
        would be much, as a rule. What may be negative has none: the allocation is to stop the kernel then. A bound that
        the check of the rewritten program would not find is none.
        """
        known = self._extents.bytes(buffer)
        if known is not None:
            return known
        extents = list(self._most(buffer))
        return prod(extents, start=buffer.dtype.bytes) if len(extents) == len(buffer.shape) else None

    def _most(self, buffer: Buffer) -> Iterator[Size]:
        for extent in buffer.shape:
            size = self._extents.size(extent)
            most = self._bound(extent) if size is None else size
            if most is None:
                return
            yield most if is_at_most(0, most) else maximum(0, most)

    def _bound(self, extent: Expr) -> Size | None:
        if self._bounds is None:
            self._bounds = ExtentBounds(self._facts.func, self._extents)
        size = self._facts.space.size(extent)
        low, high = ends(size)
        least, checked = self._bounds.ends(extent)
        if not all(each.counts for each in unknowns_in(size)):
            high = checked  # which knows of no types
        if high is None or checked is None or not any(_is_no_less(each, 0) for each in (low, least)):
            return None
        return high if _is_no_less(high, checked) else None


def _is_no_less(size: Size | None, than: Size) -> bool:
    return size is not None and is_at_most(than, size)
