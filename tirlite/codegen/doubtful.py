"""Finds the views that share planned storage and whose extents may be invalid.

An Allocate stops the kernel if an extent is negative or its computation overflows. A buffer that a plan has placed in
other storage must do so as well. The size of that storage does not show it: a maximum over several buffers hides a
negative size, and equal sizes are computed only once.
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

# Operations whose result is wrong if an operand has overflowed; sums and products stay right modulo 2**64.
_SENSITIVE = (FloorDiv, FloorMod, Min, Max)


def doubtful_buffers(facts: Facts, on_entry: OnEntry) -> tuple[Buffer, ...]:
    """The fresh views of a function with extents that are known on entry but not proved valid.

    Each is returned with only those extents, as expressions over dims and parameters.
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
    """Rewrites extents over dims and parameters, without lets, as far as they are known on entry."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._proved: dict[Size, bool] = {}

    def extent(self, extent: Expr) -> Expr | None:
        """An expression over dims and parameters with the value of `extent`; None if it is not known on entry."""
        size = self._facts.extents.size(extent)
        if size is None:
            return None
        if self._is_sensitive(extent) and not self._is_exact(extent, size):
            return self._written(extent)
        return self._facts.extents.expr(size)

    def doubt(self, extent: Expr) -> Expr | None:
        """The same if the extent may be negative or overflow; None if it is proved valid or not known on entry."""
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
        """Whether an overflow of an operand would change the value of the extent, or of a let that it uses."""
        return _is_sensitive(extent, self._sensitive)

    def _written(self, extent: Expr) -> Expr:
        """The extent with its lets substituted, computed as in the source."""
        from tirlite.ir import substitute

        while True:
            lets = {node: self._lets[node] for node in variables_in(extent) if node in self._lets}
            if not lets:
                return extent
            extent = substitute(extent, lets)

    def _is_exact(self, extent: Expr, size: Size) -> bool:
        """Whether no operand of the extent can overflow."""
        return self._facts.space.size(extent) == size


def _is_sensitive(expr: Expr, lets: Set[Var]) -> bool:
    return any(isinstance(node, _SENSITIVE) or node in lets for node in walk(expr))
