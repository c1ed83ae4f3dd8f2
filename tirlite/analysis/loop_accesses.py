"""LoopAccesses tells which buffers from outside of a loop its iterations share."""

from __future__ import annotations

from typing import TypeAlias

from tirlite.analysis.definitions import Definitions
from tirlite.analysis.param_uses import ParamUses, Use
from tirlite.ir import (
    Allocate,
    Buffer,
    Expr,
    For,
    IntImm,
    Load,
    Node,
    PrimFunc,
    SeqStmt,
    Stmt,
    Store,
    View,
    statements,
    structural_equal,
    walk,
)
from tirlite.record import record


@record(eq=False)
class Access:
    """That `stmt` reads or writes a buffer, by `node`: a Load, a Store or a bare mention."""

    stmt: Stmt
    buffer: Buffer
    node: Node
    is_write: bool

    @property
    def indices(self) -> tuple[Expr, ...] | None:
        return self.node.indices if isinstance(self.node, Load | Store) else None

    @property
    def place(self) -> tuple[int, ...] | None:
        """The element, by numbers, where constants tell it."""
        if self.indices is None:
            return None
        numbers = tuple(index.value for index in self.indices if isinstance(index, IntImm))
        return numbers if len(numbers) == len(self.indices) else None


# A buffer, and the place of an element in it where all its accesses have constant indices.
Key: TypeAlias = "tuple[Buffer, tuple[int, ...] | None]"


class LoopAccesses:
    """The accesses of a loop's body to buffers from outside of it, in order."""

    def __init__(self, loop: For, definitions: Definitions) -> None:
        self.loop = loop
        self.definitions = definitions
        inside = [*statements(loop.body)]
        within = {stmt.buffer for stmt in inside if isinstance(stmt, Allocate)}
        uses = ParamUses()
        self.found = [
            Access(stmt, buffer, node, bool(use & Use.WRITE))
            for stmt in inside
            for root in _parts(stmt)
            for buffer, use, node in uses.touched(root)
            if definitions.root(buffer) not in within
        ]
        self.by_root: dict[Buffer, list[Access]] = {}
        for access in self.found:
            self.by_root.setdefault(definitions.root(access.buffer), []).append(access)
        self.fixed = {
            root
            for root, accesses in self.by_root.items()
            if all(each.buffer is root and each.place is not None for each in accesses)
        }

    def key(self, access: Access) -> Key:
        """What an access may touch: accesses with different ones lie apart."""
        root = self.definitions.root(access.buffer)
        return root, access.place if root in self.fixed else None

    def are_apart(self, buffer: Buffer) -> bool:
        """Whether all accesses to its storage have the loop's variable as their index along one axis."""
        axes = {*range(len(buffer.shape))}
        for access in self.by_root[self.definitions.root(buffer)]:
            if access.indices is None or access.buffer in self.definitions.views:
                return False
            axes &= {axis for axis, index in enumerate(access.indices) if index is self.loop.var}
        return bool(axes)

    def are_own(self) -> bool:
        """Whether each iteration writes elements that no other one touches, and nothing else."""
        written = [access for access in self.found if access.is_write]
        return bool(written) and all(self.are_apart(access.buffer) for access in written)

    def are_of_parameters(self, func: PrimFunc) -> bool:
        """Whether nothing but parameters is written."""
        return all(self.definitions.root(access.buffer) in func.params for access in self.found if access.is_write)


def _parts(stmt: Stmt) -> tuple[Node, ...]:
    """What a statement computes itself: all of it, or the bounds and conditions of one with a body."""
    if isinstance(stmt, Allocate | View):
        return (*stmt.children(), *stmt.buffer.shape)
    children = stmt.children()
    has_body = any(isinstance(child, SeqStmt) for child in children)
    return tuple(child for child in children if isinstance(child, Expr)) if has_body else (stmt,)


def is_same_element(store: Store, access: Access) -> bool:
    """Whether an access touches the element that a store writes, told by equal indices that no memory decides."""
    if store.buffer is not access.buffer or access.indices is None:
        return False
    pairs = [*zip(store.indices, access.indices, strict=True)]
    is_plain = not any(isinstance(node, Load) for index in store.indices for node in walk(index))
    return is_plain and all(a is b or bool(structural_equal(a, b)) for a, b in pairs)
