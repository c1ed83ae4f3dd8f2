"""Makes an object for each definition of a function with objects that are defined twice."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar, cast

from tirlite.ir import Buffer, For, Let, LetExpr, Node, Substitution, Var, rewrite
from tirlite.ir.rewrite import Rule
from tirlite.record import replace

N = TypeVar("N", bound=Node)


class Renamer(Substitution):
    """From its second definition on, a variable or buffer is a new object in all that follows.

    The scopes of definitions nest, so the last definition met is the one that a use means.
    """

    def __init__(self, before: Collection[Buffer | Var] = ()) -> None:
        """`before` are those that have been defined so far."""
        super().__init__({}, {})
        self.defined: set[Buffer | Var] = {*before}

    def rename(self, root: N) -> N:
        rules: dict[type[Node], Rule] = {**self.rules(), Let: self.let, LetExpr: self.bound, For: self.bound}
        return cast(N, rewrite(root, rules, enter={For: self.bind, LetExpr: self.bind}))

    def bind(self, node: For | LetExpr | Let) -> None:
        if node.var in self.defined:
            self.variables[node.var] = Var(node.var.name, node.var.dtype, node.var.dim)
        self.defined.add(node.var)

    def bound(self, node: For | LetExpr | Let) -> Node:
        var = self.variable(node.var)
        return node if var is node.var else node.replaced(var=var)

    def let(self, node: Let) -> Node:
        self.bind(node)
        return self.bound(node)

    def declare(self, buffer: Buffer) -> Buffer:
        shape = self.shape(buffer)
        moved = any(new is not old for new, old in zip(shape, buffer.shape, strict=True))
        if moved or buffer in self.defined:
            self.buffers[buffer] = replace(buffer, shape=shape)
        self.defined.add(buffer)
        return self.buffers.get(buffer, buffer)
