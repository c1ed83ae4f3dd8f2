"""A function in, its canonical form out: each definition an object of its own, buffers' attributes in their fields.

A statement object may stand in a program twice; passes that keep a table by buffer want two. What the attributes
`storage_scope` and `volatile_scope` say is a field of Buffer.
"""

from __future__ import annotations

from dataclasses import replace

from tirlite.ir import (
    Allocate,
    AttrKey,
    AttrStmt,
    Buffer,
    FloatImm,
    For,
    IntImm,
    Let,
    LetExpr,
    Node,
    PrimFunc,
    Stmt,
    Substitution,
    Var,
    View,
    rewrite,
    statements_of,
    substitute,
)
from tirlite.ir.demand import pass_call
from tirlite.record import record

_MOVED = (AttrKey.STORAGE_SCOPE, AttrKey.VOLATILE_SCOPE)

# What defines: told apart by one look, as most nodes define nothing.
_OF_BUFFERS: frozenset[type[Node]] = frozenset((Allocate, View))
_OF_VARIABLES: frozenset[type[Node]] = frozenset((Let, LetExpr, For))
_ATOMS: frozenset[type[Node]] = frozenset((IntImm, FloatImm, Var))


@record
class Normalize:
    """Makes definitions unique, and storage_scope and volatile_scope fields of their buffers."""

    name: str = "normalize"

    @pass_call
    def __call__(self, func: PrimFunc) -> PrimFunc:
        return _attributes_to_fields(_unique_definitions(func))


def _attributes_to_fields(func: PrimFunc) -> PrimFunc:
    changed: dict[Buffer, Buffer] = {}
    for node in statements_of(func.body, AttrStmt):
        if node.buffer is not None:
            buffer = changed.get(node.buffer, node.buffer)
            if node.key is AttrKey.STORAGE_SCOPE:
                changed[node.buffer] = replace(buffer, scope=str(node.value))
            elif node.key is AttrKey.VOLATILE_SCOPE:
                changed[node.buffer] = replace(buffer, volatile=True)
    if not changed:
        return func

    def drop(attr: AttrStmt) -> Stmt:
        return attr.body if attr.key in _MOVED else attr

    renamed = substitute(func, {}, changed)
    result = rewrite(renamed, {AttrStmt: drop})
    assert isinstance(result, PrimFunc)
    return result


def _definitions(root: Node) -> list[Buffer | Var]:
    """What is defined below `root`, as often as it is, in no order."""
    found: list[Buffer | Var] = []
    stack = [root]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind in _ATOMS:
            continue
        if kind in _OF_BUFFERS:
            found.append(node.buffer)  # type: ignore[attr-defined]
        elif kind in _OF_VARIABLES:
            found.append(node.var)  # type: ignore[attr-defined]
        stack += node.children()
    return found


def _unique_definitions(func: PrimFunc) -> PrimFunc:
    defined = _definitions(func.body)
    return func if len(set(defined)) == len(defined) else _Renamer().rename(func)


class _Renamer(Substitution):
    """From its second definition on, a variable or buffer is a new object in all that follows.

    The scopes of definitions nest, so the last definition met is the one that a use means.
    """

    def __init__(self) -> None:
        super().__init__({}, {})
        self.defined: set[Buffer | Var] = set()

    def rename(self, func: PrimFunc) -> PrimFunc:
        rules = self.rules() | {Let: self.let, LetExpr: self.bound, For: self.bound}
        result = rewrite(func, rules, enter={For: self.bind, LetExpr: self.bind})
        assert isinstance(result, PrimFunc)
        return result

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
        shape = tuple(substitute(extent, self.variables) for extent in buffer.shape)
        moved = any(new is not old for new, old in zip(shape, buffer.shape, strict=True))
        if moved or buffer in self.defined:
            self.buffers[buffer] = replace(buffer, shape=shape)
        self.defined.add(buffer)
        return self.buffers.get(buffer, buffer)
