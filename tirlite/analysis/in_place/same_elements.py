"""Two accesses in, whether it is plain to see that both touch some element: without a proof, and without its cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tirlite.analysis.access import Allocation, Region, Touch
from tirlite.analysis.regions import regions_around
from tirlite.ir import Binary, Broadcast, Expr, For, IntImm, Load, Neg, Ramp, Store, Var

# Indices that are longer, with the bounds of the loops that they mention, are not compared.
_LONGEST = 64
# What one access touches: parts that are equal where the elements are.
_Form: TypeAlias = "tuple[object, ...]"


class PlainMeetings:
    """Compares accesses to allocations, each looked at once."""

    def __init__(self) -> None:
        self._firsts: dict[Touch, tuple[int, ...] | None] = {}
        self._forms: dict[Touch, _Form | None] = {}

    def meet(self, one: Touch, its: Allocation, other: Touch, others: Allocation) -> bool:
        """Whether both begin with one element, or go over the same ones by loops that are alike; if not empty ones.

        Both are accesses to the allocations themselves, at one place. What is said of whole loops is said without the
        conditions in them.
        """
        a, b = one.node, other.node
        if not isinstance(a, Load | Store) or not isinstance(b, Load | Store):
            return False
        if a.buffer is not its.buffer or b.buffer is not others.buffer or len(a.indices) != len(b.indices):
            return False
        for touch, node in ((one, a), (other, b)):
            if touch not in self._firsts:
                self._firsts[touch] = _first_element(touch.region, node.indices)
        first, second = self._firsts[one], self._firsts[other]
        is_alike = a.buffer.dtype.bytes == b.buffer.dtype.bytes
        if first is not None and second is not None:
            # The first element of all is at one place in whatever type and shape.
            return first == second and (not any(first) or is_alike)
        return is_alike and self._form(one, a) is not None and self._form(one, a) == self._form(other, b)

    def _form(self, touch: Touch, node: Load | Store) -> _Form | None:
        if touch not in self._forms:
            self._forms[touch] = _form_of(touch.region, node.indices)
        return self._forms[touch]


def _first_element(region: Region, indices: Sequence[Expr]) -> tuple[int, ...] | None:
    """The element at which the loops around an access begin, as far as they stand in the index by themselves."""
    loops = _loops_around(region)
    found = [loops[index].start if isinstance(index, Var) and index in loops else index for index in indices]
    first = [each.value for each in found if isinstance(each, IntImm)]
    return tuple(first) if len(first) == len(found) else None


def _form_of(region: Region, indices: Sequence[Expr]) -> _Form | None:
    """Indices, the loops that they mention, by numbers, and the bounds of these."""
    loops = _loops_around(region)
    numbers: dict[Var, int] = {}
    parts: list[object] = []
    todo: list[Expr] = [*reversed(indices)]
    pending: list[For] = []
    while todo or pending:
        if not todo:
            loop = pending.pop()
            parts.append(loop.step)
            todo += (loop.stop, loop.start)
        expr = todo.pop()
        if isinstance(expr, Var) and expr in loops:
            if expr not in numbers:
                numbers[expr] = len(numbers)
                pending.append(loops[expr])
            parts.append(("loop", numbers[expr]))
        elif isinstance(expr, Var):
            parts.append(expr)
        elif isinstance(expr, IntImm):
            parts.append(expr.value)
        elif isinstance(expr, Binary | Neg | Ramp | Broadcast) and len(parts) < _LONGEST:
            parts.append((type(expr), expr.dtype))
            todo += (each for each in reversed(expr.children()) if isinstance(each, Expr))
        else:
            return None
    return tuple(parts)


def _loops_around(region: Region) -> dict[Var, For]:
    loops = (each.composite for each in regions_around(region) if isinstance(each.composite, For))
    return {loop.var: loop for loop in loops}
