"""Rewrites a function by what becomes of its buffers and of the indices of their accesses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from tirlite.ir import Allocate, Buffer, Expr, Load, Node, PrimFunc, Rule, Stmt, Store, rewrite

# From an index, rewritten already, to the one that takes its place.
Reindex: TypeAlias = Callable[[Expr], Expr]


class Accesses:
    """Buffers that get another shape, and the indices that change with it."""

    def __init__(self) -> None:
        self.buffers: dict[Buffer, Buffer] = {}
        self.indices: dict[Load | Store, Mapping[int, Reindex]] = {}
        self.pending: list[Load | Store] = []  # for each Load and Store on the way down, what it was

    def reshape(self, old: Buffer, new: Buffer, indices: Mapping[Load | Store, Mapping[int, Reindex]]) -> None:
        """Put `new` in the place of `old`, with other indices, by access and axis."""
        self.buffers[old] = new
        self.indices |= indices

    def apply(self, func: PrimFunc) -> PrimFunc:
        if not self.buffers:
            return func
        note = self.pending.append
        rules: dict[type[Node], Rule] = {Allocate: self.allocate, Load: self.access, Store: self.access}
        return rewrite(func, rules, enter={Load: note, Store: note})

    def allocate(self, node: Allocate) -> Stmt:
        new = self.buffers.get(node.buffer)
        return node if new is None else node.replaced(buffer=new)

    def access(self, node: Load | Store) -> Node:
        original = self.pending.pop()
        new = self.buffers.get(node.buffer)
        if new is None:
            return node
        changed = self.indices.get(original, {})
        indices = tuple(changed[axis](index) if axis in changed else index for axis, index in enumerate(node.indices))
        return node.replaced(buffer=new, indices=indices)
