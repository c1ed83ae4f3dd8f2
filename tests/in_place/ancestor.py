"""The rule of the ancestor, as it stands in TVM: a function in, the pairs that it takes in place out. It is unsound.

A destination may replace a source at the statement where the one is born and the other dies, if they have the same
scope, element type and size; if that statement is a store, a loop or an if; if it mentions neither by its bare name,
loads the destination nowhere, and nothing inside an index; and if each load of the source stands in the value of a
store to the destination, at the same index. It asks neither how often the loops around come back nor what was stored
before.
"""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.analysis import Extents, linear_sequence
from tirlite.analysis.in_place import in_place_candidates
from tirlite.ir import (
    Buffer,
    BufferRef,
    Expr,
    For,
    IfThenElse,
    Load,
    PrimFunc,
    Stmt,
    Store,
    View,
    statements,
    text,
    walk,
)


def ancestor_in_place(func: PrimFunc) -> list[tuple[Buffer, Buffer]]:
    """Destination and source of each pair that the ancestor would share."""
    views = {each.buffer: each.source for each in statements(func.body) if isinstance(each, View)}
    extents = Extents(func)
    return [
        (proof.destination, proof.source)
        for proof in in_place_candidates(func, linear_sequence(func))
        if proof.destination.dtype == proof.source.dtype
        and extents.bytes(proof.destination) == extents.bytes(proof.source)
        and isinstance(proof.at, Store | For | IfThenElse)
        and _verified(proof.at, proof.destination, proof.source, views)
    ]


def _verified(at: Stmt, destination: Buffer, source: Buffer, views: dict[Buffer, Buffer]) -> bool:
    for stmt in _all(at):
        if isinstance(stmt, View) and stmt.source in (destination, source):
            return False
        stored = stmt if isinstance(stmt, Store) and stmt.buffer is destination else None
        for expr, in_index in _expressions(stmt):
            if isinstance(expr, BufferRef) and expr.buffer in (destination, source):
                return False
            if isinstance(expr, Load):
                if expr.buffer is destination or in_index:
                    return False
                if expr.buffer is source and (stored is None or _text(expr.indices) != _text(stored.indices)):
                    return False
    used = {node.buffer for stmt in _all(at) for node in walk(stmt) if isinstance(node, Load | Store)}
    return not any(view in used for view in views)


def _all(at: Stmt) -> Iterator[Stmt]:
    return statements(at)


def _expressions(stmt: Stmt) -> Iterator[tuple[Expr, bool]]:
    """The expressions that a statement evaluates itself, and whether each stands inside an index."""
    store = stmt if isinstance(stmt, Store) else None
    tops = [
        (child, store is not None and child is not store.value) for child in stmt.children() if isinstance(child, Expr)
    ]
    while tops:
        expr, in_index = tops.pop()
        yield expr, in_index
        tops += [(c, in_index or isinstance(expr, Load)) for c in expr.children() if isinstance(c, Expr)]


def _text(indices: tuple[Expr, ...]) -> list[str]:
    return [text(index) for index in indices]
