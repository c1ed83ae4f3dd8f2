"""Selects the proofs of pairs in place that TVM's rule takes too: what strategy `tvm` may do.

A destination may replace a source at the statement where the one is born and the other dies, if that is a store, a
loop or an if; if it mentions neither by its bare name, loads the destination nowhere, and nothing inside an index; and
if each load of the source stands in the value of a store to the destination, at the same index. The rule asks neither
how often the loops around come back nor what was stored before, and so proves nothing.
Source: storage_rewrite.cc (2017).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

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
)
from tirlite.ir.equal import are_equal

if TYPE_CHECKING:
    from tirlite.analysis.in_place.prover import InPlaceProof


def taken_by_tvm(func: PrimFunc, proofs: Iterable[InPlaceProof]) -> Iterator[InPlaceProof]:
    """Those of `proofs`, allowed or not, of which the rule holds. Types and sizes are not compared."""
    views = {each.buffer for each in statements(func.body) if isinstance(each, View)}
    return (
        proof
        for proof in proofs
        if proof.at is proof.until
        and isinstance(proof.at, Store | For | IfThenElse)
        and _holds(proof.at, proof.destination, proof.source, views)
    )


def _holds(at: Stmt, destination: Buffer, source: Buffer, views: set[Buffer]) -> bool:
    for stmt in statements(at):
        if isinstance(stmt, View) and stmt.source in (destination, source):
            return False
        if isinstance(stmt, Store) and stmt.buffer in views:
            return False
        stored = stmt if isinstance(stmt, Store) and stmt.buffer is destination else None
        for expr, in_index in _expressions(stmt):
            if isinstance(expr, BufferRef) and expr.buffer in (destination, source):
                return False
            if isinstance(expr, Load):
                if expr.buffer is destination or expr.buffer in views or in_index:
                    return False
                if expr.buffer is source and (stored is None or not are_equal(expr.indices, stored.indices)):
                    return False
    return True


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
