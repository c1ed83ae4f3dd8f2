"""A tree and replacements for variables and buffers in, the tree with them put in out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar, cast

from tirlite.ir.expr import Buffer, BufferRef, Expr, Load, Var
from tirlite.ir.node import Node
from tirlite.ir.rewrite import Rule, rewrite
from tirlite.ir.stmt import Allocate, AttrStmt, Store, View
from tirlite.ir.walk import walk

N = TypeVar("N", bound=Node)


def substitute(root: N, variables: Mapping[Var, Expr], buffers: Mapping[Buffer, Buffer] | None = None) -> N:
    """`root` with variables and buffers replaced.

    A buffer declared inside whose shape mentions a replaced variable becomes a new buffer of the new shape.
    """
    known: dict[Buffer, Buffer] = dict(buffers or {})

    def declared(buffer: Buffer) -> Buffer:
        if buffer not in known and any(v in variables for e in buffer.shape for v in walk(e)):
            shape = tuple(substitute(extent, variables) for extent in buffer.shape)
            known[buffer] = replace(buffer, shape=shape)
        return known.get(buffer, buffer)

    def used(node: Load | Store | BufferRef | AttrStmt) -> Node:
        new = known.get(node.buffer, node.buffer) if node.buffer is not None else None
        return node if new is node.buffer else node.replaced(buffer=new)

    def view(node: View) -> Node:
        source, buffer = known.get(node.source, node.source), declared(node.buffer)
        same = source is node.source and buffer is node.buffer
        return node if same else node.replaced(source=source, buffer=buffer)

    def allocate(node: Allocate) -> Node:
        buffer = declared(node.buffer)
        return node if buffer is node.buffer else node.replaced(buffer=buffer)

    rules: dict[type[Node], Rule] = {
        Var: lambda var: variables.get(var, var),
        Load: used,
        Store: used,
        BufferRef: used,
        AttrStmt: used,
        View: view,
        Allocate: allocate,
    }
    return cast(N, rewrite(root, rules))
