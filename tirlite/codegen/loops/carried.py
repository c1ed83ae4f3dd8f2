"""Reorders minima and maxima so that the value carried from the previous iteration comes last.

`d[j + 1] = min(min(d[j] + 1, a), b)` has two comparisons on the carried dependence, `min(min(a, b), d[j] + 1)` one. On
integers the order does not change the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from tirlite.ir.checked import has_check
from tirlite.ir.equal import are_equal
from tirlite.ir.expr import Binary, Expr, Load, Max, Min
from tirlite.ir.faults import trap_of
from tirlite.ir.node import Node
from tirlite.ir.stmt import For, Store, While
from tirlite.ir.walk import allocated_in, nodes_of, statements_of, walk


def carried_last(value: Expr, loop: For | While) -> Expr:
    """An integer value stored in a loop, with its minima and maxima reordered."""
    if value.dtype.lanes > 1 or not any(map(_is_of_integers, nodes_of((value,), Min, Max))):
        return value
    from tirlite.ir import rewrite  # most kernels need none

    own = allocated_in(loop.body)
    stores = [stmt for stmt in statements_of(loop.body, Store) if stmt.buffer not in own]

    def ordered(node: Binary) -> Expr:
        kind = type(node)
        parts = [*_parts(node, kind)]
        if len(parts) < 3 or not _is_of_integers(node) or not all(map(_is_harmless, parts)):
            return node
        free = [part for part in parts if not any(_is_carried(each, stores) for each in walk(part))]
        if len(free) in (0, len(parts)):
            return node
        return reduce(kind, [*free, *(part for part in parts if part not in free)])

    made = rewrite(value, {Min: ordered, Max: ordered})
    assert isinstance(made, Expr)
    return made


def _is_of_integers(extremum: Binary) -> bool:
    return extremum.dtype.is_integer


def _parts(expr: Expr, kind: type[Binary]) -> list[Expr]:
    """The operands of nested minima or maxima, from left to right."""
    found: list[Expr] = []
    todo = [expr]
    while todo:
        each = todo.pop()
        if type(each) is kind:
            todo += (each.b, each.a)
        else:
            found.append(each)
    return found


def _is_carried(node: Node, stores: Sequence[Store]) -> bool:
    """Whether a load is from a row that the loop stores to, at any element."""
    return isinstance(node, Load) and any(are_in_one_row(node, store) for store in stores)


def are_in_one_row(load: Load, other: Load | Store) -> bool:
    return load.buffer is other.buffer and are_equal(load.indices[:-1], other.indices[:-1])


def _is_harmless(expr: Expr) -> bool:
    """Whether an expression cannot fault, so that the order of evaluation does not matter."""
    traps = (node for node in walk(expr) if isinstance(node, Binary) and trap_of(type(node), node.dtype) is not None)
    return not has_check(expr) and next(traps, None) is None
