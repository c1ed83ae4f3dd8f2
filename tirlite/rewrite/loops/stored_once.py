"""Splits a loop after the iteration that stores the element which all iterations load: each part loads it once.

`for j in range(n): d[i, j] = min(d[i, j], d[i, k] + d[k, j])` only stores `d[i, k]` in iteration `k`. Iterations up to
that one load the old value, as it loads before it stores; later ones load the new value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.patterns import moved_by
from tirlite.ir.checked import has_check
from tirlite.ir.dtype import i64
from tirlite.ir.equal import are_equal
from tirlite.ir.expr import LT, Add, Expr, Load, Max, Min, Sub, Var, const
from tirlite.ir.node import Node
from tirlite.ir.rewrite import rewrite, substitute
from tirlite.ir.stmt import For, IfThenElse, Let, SeqStmt, Stmt, Store
from tirlite.ir.walk import defined_in, own_exprs, statements, statements_of, walk
from tirlite.rewrite.affine_exprs import folded


def parted(loop: For, facts: Facts) -> tuple[Stmt, ...] | None:
    """The two loops that replace one which loads from the array that it stores to; None if it stays.

    Apart from the loads of the fixed element, its iterations are independent.
    """
    stores = list(statements_of(loop.body, Store))
    root = facts.definitions.root(stores[0].buffer)
    if has_check(loop) or any(_is_other(node, stores[0], root, facts) for node in walk(loop.body)):
        return None
    found = [load for load in _steady(loop, stores[0]) if _comes_first(load, loop)]
    if not found or not are_equal(found[0].indices, found[-1].indices):
        return None
    meeting = _meeting(found[0], stores, loop)
    alike = {load for load in found if are_equal(load.indices, found[0].indices)}
    if meeting is None or len(alike) < len(found) or not _is_certain(alike, loop):
        return None
    carried = [*facts.carried_by(loop)]
    if not carried or any({each.source.node, each.sink.node}.isdisjoint(alike) for each in carried):
        return None
    behind = folded(Add(meeting, const(1, i64)))
    middle = Min(Max(behind, loop.start), loop.stop)
    return (*_part(loop, alike, loop.start, middle), *_part(loop, alike, middle, loop.stop))


def _steady(loop: For, store: Store) -> Iterator[Load]:
    """The loads that are the same in all iterations, from the array that `store` writes."""
    moving = defined_in(loop)
    for node in walk(loop.body):
        if isinstance(node, Load) and node.buffer is store.buffer and node.indices and node.dtype.lanes == 1:
            inside = [*walk(*node.indices)]
            if not any(each in moving or isinstance(each, Load) for each in inside):
                yield node


def _is_other(node: Node, store: Store, root: object, facts: Facts) -> bool:
    """Whether an access may be to the array under another name, or is volatile or a vector."""
    if not isinstance(node, Load | Store):
        return False
    is_under_other_name = node.buffer is not store.buffer and facts.definitions.root(node.buffer) is root
    return is_under_other_name or node.buffer.volatile or node.buffer.dtype.lanes > 1


def _comes_first(load: Load, loop: For) -> bool:
    """Whether no iteration stores before it loads."""
    for stmt in statements(loop.body):
        if any(node is load for node in walk(*own_exprs(stmt))):
            return True
        if isinstance(stmt, Store):
            return False
    return False


def _meeting(load: Load, stores: Sequence[Store], loop: For) -> Expr | None:
    """The only iteration that may store the loaded element, equal for all stores."""
    for axis, index in enumerate(load.indices):
        stored = [store.indices[axis] for store in stores]
        if all(moved_by(each, loop.var) == 1 and are_equal((each,), (stored[0],)) for each in stored):
            first = substitute(stored[0], {loop.var: const(0, i64)})
            nodes = [*walk(first)]
            inside = {stmt.var for stmt in statements_of(loop.body, Let)}
            if index.dtype == i64 and not any(isinstance(node, Load) or node in inside for node in nodes):
                return folded(Sub(index, first))
    return None


def _is_certain(loads: set[Load], loop: For) -> bool:
    """Whether each iteration makes one of these loads, whatever it tests."""
    from tirlite.rewrite.vectors.columns import loads_of

    return any(load in loads and is_certain for load, is_certain in loads_of(loop.body))


def _part(loop: For, loads: set[Load], start: Expr, stop: Expr) -> Iterator[Stmt]:
    """A part of the iterations, with the common load before the loop."""
    (first, *_) = loads
    value = Var(first.buffer.name, first.dtype)

    def replaced(load: Load) -> Node:
        return value if load in loads else load

    body = rewrite(loop.body, {Load: replaced})
    assert isinstance(body, SeqStmt)
    inside = (Let(value, Load(first.buffer, first.indices)), loop.replaced(start=start, stop=stop, body=body))
    yield IfThenElse(LT(start, stop), SeqStmt(inside), SeqStmt(), span=loop.span)
