"""A function in, what it declares in the storage of others with an extent that may be impossible out.

An Allocate stops the kernel where an extent is negative, or wraps around on the way. What a plan has put into other
storage must do so as well, though that storage may be large enough: a maximum over several buffers knows nothing of one
below zero, and a size that does not differ is no longer computed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tirlite.ir import Buffer, Expr, FloorDiv, FloorMod, IntImm, Let, Max, Min, Var, View, statements, walk

if TYPE_CHECKING:
    from tirlite.analysis.facts import Facts
    from tirlite.sizes import Size

# What gives another value where an operand has wrapped around; sums and products are right modulo 2**64.
_SENSITIVE = (FloorDiv, FloorMod, Min, Max)


def doubtful_buffers(facts: Facts) -> tuple[Buffer, ...]:
    """Fresh views of a function with those extents alone that are known on entry, and not proved to be possible.

    These are over the dims and parameters of the function.
    """
    views = [
        stmt.buffer
        for stmt in statements(facts.func.body)
        if isinstance(stmt, View) and stmt.fresh and not all(isinstance(e, IntImm) for e in stmt.buffer.shape)
    ]
    if not views:
        return ()
    doubts = _Doubts(facts)
    found: list[Buffer] = []
    for view in views:
        if doubtful := [doubt for extent in view.shape if (doubt := doubts.of(extent)) is not None]:
            found.append(replace(view, shape=tuple(doubtful)))
    return tuple(found)


class _Doubts:
    """For extents the expressions over dims and parameters that must be 0 or more, and computed without wrapping."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._extents = facts.extents
        self._lets: dict[Var, Expr] = {}
        self._sensitive: set[Var] = set()
        self._proved: dict[Size, bool] = {}
        for stmt in statements(facts.func.body):
            if isinstance(stmt, Let):
                self._lets[stmt.var] = stmt.value
                if self._is_sensitive(stmt.value):
                    self._sensitive.add(stmt.var)

    def of(self, extent: Expr) -> Expr | None:
        """None where there is no doubt, or nothing is known on entry."""
        from tirlite.sizes.unknown import is_nonnegative

        size = self._extents.size(extent)
        if size is None:
            return None
        if self._is_sensitive(extent) and not self._is_exact(extent, size):
            return self._written(extent)
        if size not in self._proved:
            self._proved[size] = is_nonnegative(size)
        return None if self._proved[size] else self._extents.expr(size)

    def _is_sensitive(self, expr: Expr) -> bool:
        """Whether it matters to the value, or to that of a let in it, that an operand has wrapped around."""
        return any(isinstance(node, _SENSITIVE) or node in self._sensitive for node in walk(expr))

    def _written(self, extent: Expr) -> Expr:
        """The extent as it is computed, without lets."""
        from tirlite.ir import substitute

        while True:
            lets = {node: self._lets[node] for node in walk(extent) if isinstance(node, Var) and node in self._lets}
            if not lets:
                return extent
            extent = substitute(extent, lets)

    def _is_exact(self, extent: Expr, size: Size) -> bool:
        """Whether the extent cannot have wrapped around on the way to its value."""
        return self._facts.space.size(extent) == size
