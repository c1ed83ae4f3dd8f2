"""Finds the bytes that each buffer of a function never exceeds, where they depend on loops."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

from tirlite.analysis.facts import Facts
from tirlite.ir import Buffer, Expr
from tirlite.sizes import Proof, Size, maximum, prove_le
from tirlite.sizes.unknown import ends, unknowns_in

if TYPE_CHECKING:
    from tirlite.analysis.integers.room import Room


class MostBytes:
    """Bounds on the bytes of buffers, for allocations that are to leave the loops that their extents depend on."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._extents = facts.extents
        self._room: Room | None = None

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
            yield most if prove_le(0, most) is Proof.YES else maximum(0, most)

    def _bound(self, extent: Expr) -> Size | None:
        from tirlite.analysis.integers.room import Room

        if self._room is None:
            self._room = Room(self._facts.func, self._extents)
        size = self._facts.space.size(extent)
        low, high = ends(size)
        least, checked = self._room.ends(extent)
        if not all(each.counts for each in unknowns_in(size)):
            high = checked  # which knows of no types
        if high is None or checked is None or not any(_is_no_less(each, 0) for each in (low, least)):
            return None
        return high if _is_no_less(high, checked) else None


def _is_no_less(size: Size | None, than: Size) -> bool:
    return size is not None and prove_le(than, size) is Proof.YES
