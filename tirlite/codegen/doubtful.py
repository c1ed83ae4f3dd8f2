"""Finds the views that share planned storage and whose extents may be invalid.

An Allocate stops the kernel where an extent is negative, or its computation overflows. A buffer that a plan has placed
in other storage must do so as well, though that storage may be large enough: a maximum over several buffers does not
show that one is negative, and equal sizes are computed only once.
"""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

from tirlite.ir import Buffer, Expr, FloorDiv, FloorMod, IntImm, Let, Max, Min, Var, View, walk
from tirlite.ir.walk import statements_of, variables_in
from tirlite.record import cached_property, replace

if TYPE_CHECKING:
    from tirlite.analysis.facts import Facts
    from tirlite.sizes import Size

# What gives another value where an operand has wrapped around; sums and products are right modulo 2**64.
_SENSITIVE = (FloorDiv, FloorMod, Min, Max)


def doubtful_buffers(facts: Facts, on_entry: OnEntry) -> tuple[Buffer, ...]:
    """Fresh views of a function with those extents alone that are known on entry, and not proved to be possible.

    These are over the dims and parameters of the function.
    """
    views = [
        stmt.buffer
        for stmt in statements_of(facts.func.body, View)
        if stmt.fresh and not all(isinstance(e, IntImm) for e in stmt.buffer.shape)
    ]
    if not views:
        return ()
    found: list[Buffer] = []
    for view in views:
        if doubtful := [doubt for extent in view.shape if (doubt := on_entry.doubt(extent)) is not None]:
            found.append(replace(view, shape=tuple(doubtful)))
    return tuple(found)


class OnEntry:
    """What extents are over dims and parameters, without lets; to be computed with an eye on what wraps around."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._proved: dict[Size, bool] = {}

    def extent(self, extent: Expr) -> Expr | None:
        """An expression with the value of `extent`; None where that is not known on entry."""
        size = self._facts.extents.size(extent)
        if size is None:
            return None
        if self._is_sensitive(extent) and not self._is_exact(extent, size):
            return self._written(extent)
        return self._facts.extents.expr(size)

    def doubt(self, extent: Expr) -> Expr | None:
        """The same where it must be 0 or more and may be less, or wrap around; None where there is no doubt."""
        from tirlite.sizes.unknown import is_nonnegative

        size = self._facts.extents.size(extent)
        if size is None:
            return None
        if size not in self._proved:
            self._proved[size] = is_nonnegative(size)
        certain = self._proved[size] and (not self._is_sensitive(extent) or self._is_exact(extent, size))
        return None if certain else self.extent(extent)

    @cached_property
    def _lets(self) -> dict[Var, Expr]:
        return {stmt.var: stmt.value for stmt in statements_of(self._facts.func.body, Let)}

    @cached_property
    def _sensitive(self) -> set[Var]:
        found: set[Var] = set()
        for var, value in self._lets.items():
            if _is_sensitive(value, found):
                found.add(var)
        return found

    def _is_sensitive(self, extent: Expr) -> bool:
        """Whether it matters to the value, or to that of a let in it, that an operand has wrapped around."""
        return _is_sensitive(extent, self._sensitive)

    def _written(self, extent: Expr) -> Expr:
        """The extent as it is computed, without lets."""
        from tirlite.ir import substitute

        while True:
            lets = {node: self._lets[node] for node in variables_in(extent) if node in self._lets}
            if not lets:
                return extent
            extent = substitute(extent, lets)

    def _is_exact(self, extent: Expr, size: Size) -> bool:
        """Whether the extent cannot have wrapped around on the way to its value."""
        return self._facts.space.size(extent) == size


def _is_sensitive(expr: Expr, lets: Set[Var]) -> bool:
    return any(isinstance(node, _SENSITIVE) or node in lets for node in walk(expr))
