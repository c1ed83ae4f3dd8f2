"""Puts replacements for variables and buffers into a tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar, cast

from tirlite.ir.expr import Buffer, BufferRef, Expr, Load, Var
from tirlite.ir.node import Node
from tirlite.ir.rewrite import Rule, rewrite
from tirlite.ir.stmt import Allocate, AttrStmt, Stmt, Store, View

N = TypeVar("N", bound=Node)


def substitute(root: N, variables: Mapping[Var, Expr], buffers: Mapping[Buffer, Buffer] | None = None) -> N:
    """`root` with variables and buffers replaced.

    A buffer declared inside whose shape mentions what is replaced becomes a new buffer of the new shape.
    """
    return cast(N, rewrite(root, Substitution(variables, buffers or {}).rules()))


class Substitution:
    """Rules that put replacements in, in program order, and keep track of the buffers that are new for that reason."""

    def __init__(self, variables: Mapping[Var, Expr], buffers: Mapping[Buffer, Buffer]) -> None:
        self.variables = dict(variables)
        self.buffers = dict(buffers)

    def rules(self) -> dict[type[Node], Rule]:
        return {
            Var: self.variable,
            Load: self.use,
            Store: self.use,
            BufferRef: self.use,
            AttrStmt: self.use,
            View: self.view,
            Allocate: self.allocate,
        }

    def shape(self, buffer: Buffer) -> tuple[Expr, ...]:
        """The extents of a buffer, which may be loads, with the replacements put in."""
        return tuple(substitute(extent, self.variables, self.buffers) for extent in buffer.shape)

    def declare(self, buffer: Buffer) -> Buffer:
        """The buffer that a definition of `buffer` defines now."""
        if buffer not in self.buffers:
            shape = self.shape(buffer)
            if any(new is not old for new, old in zip(shape, buffer.shape, strict=True)):
                self.buffers[buffer] = replace(buffer, shape=shape)
        return self.buffers.get(buffer, buffer)

    def variable(self, var: Var) -> Expr:
        return self.variables.get(var, var)

    def use(self, node: Load | Store | BufferRef | AttrStmt) -> Node:
        buffer = self.buffers.get(node.buffer, node.buffer) if node.buffer is not None else None
        return node if buffer is node.buffer else node.replaced(buffer=buffer)

    def view(self, node: View) -> Stmt:
        source = self.buffers.get(node.source, node.source)
        buffer = self.declare(node.buffer)
        same = source is node.source and buffer is node.buffer
        return node if same else node.replaced(source=source, buffer=buffer)

    def allocate(self, node: Allocate) -> Stmt:
        buffer = self.declare(node.buffer)
        return node if buffer is node.buffer else node.replaced(buffer=buffer)
