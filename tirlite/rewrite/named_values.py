"""Names each value of a local scalar that is set one after the other in one block: `v = x[i]; v = v * 2; y[i] = v`."""

from __future__ import annotations

from collections import Counter

from tirlite.ir.expr import Buffer, Load, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.rewrite import rewrite
from tirlite.ir.stmt import Allocate, Let, SeqStmt, Stmt, Store
from tirlite.ir.walk import aliased_in, statements_of, walk


def rewritten(func: PrimFunc) -> PrimFunc:
    """The function with a name for each value of such a scalar, where some scalar is set more than once."""
    scalars = {stmt.buffer for stmt in statements_of(func.body, Allocate) if _is_scalar(stmt.buffer)}
    stored = Counter(stmt.buffer for stmt in statements_of(func.body, Store) if stmt.buffer in scalars)
    scalars = {each for each in scalars if stored[each] > 1}
    if not scalars or not (scalars := scalars - aliased_in(func.body)):
        return func
    return rewrite(func, {SeqStmt: lambda block: _named(block, scalars, stored)})


def _is_scalar(buffer: Buffer) -> bool:
    return not (buffer.shape or buffer.volatile) and buffer.dtype.lanes == 1 and buffer.scope in ("global", "local")


def _named(block: SeqStmt, scalars: set[Buffer], stored: Counter[Buffer]) -> SeqStmt:
    own = {stmt.buffer for stmt in block.stmts if isinstance(stmt, Allocate)} & scalars
    set_here = Counter(stmt.buffer for stmt in block.stmts if isinstance(stmt, Store) and stmt.buffer in own)
    own = {buffer for buffer in own if set_here[buffer] == stored[buffer] and _begins_set(block, buffer)}
    if not own:
        return block
    values: dict[Buffer, Var] = {}

    def value(load: Load) -> Node:
        return values.get(load.buffer, load)

    made: list[Stmt] = []
    for stmt in block.stmts:
        if isinstance(stmt, Allocate) and stmt.buffer in own:
            continue
        current = rewrite(stmt, {Load: value}) if values else stmt
        if isinstance(current, Store) and current.buffer in own:
            values[current.buffer] = Var(current.buffer.name, current.buffer.dtype)
            current = Let(values[current.buffer], current.value, span=stmt.span)
        made.append(current)
    return SeqStmt((*made,))


def _begins_set(block: SeqStmt, buffer: Buffer) -> bool:
    """Whether the first statement that uses a scalar sets it."""
    for stmt in block.stmts:
        if any(isinstance(node, Load) and node.buffer is buffer for node in walk(stmt)):
            return False
        if isinstance(stmt, Store) and stmt.buffer is buffer:
            return True
    return False
