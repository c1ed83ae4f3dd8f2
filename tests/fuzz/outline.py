"""A function in, the same with each loop at its top made a function out, which it calls on all that the loop uses."""

from __future__ import annotations

from tirlite.ir.expr import Buffer, BufferRef, LetExpr, Load, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import KernelCall
from tirlite.ir.node import Node
from tirlite.ir.stmt import Allocate, For, ForKind, Let, Stmt, View, seq
from tirlite.ir.walk import walk


def outlined(func: PrimFunc) -> PrimFunc:
    """`func` with each loop at its top in a function of its own."""
    stmts = [_called(stmt, number) for number, stmt in enumerate(func.body.stmts)]
    return func.replaced(body=seq(*stmts))


def _called(stmt: Stmt, number: int) -> Stmt:
    if not isinstance(stmt, For) or stmt.kind is ForKind.THREAD:
        return stmt
    names = _free(stmt)
    if any(
        isinstance(node, Load) for name in names if isinstance(name, Buffer) for e in name.shape for node in walk(e)
    ):
        return stmt
    # Scalars first: an extent may be one of them.
    params = (*(name for name in names if isinstance(name, Var)), *(name for name in names if isinstance(name, Buffer)))
    args = tuple(BufferRef(param) if isinstance(param, Buffer) else param for param in params)
    return KernelCall(PrimFunc(f"part_{number}", params, seq(stmt)), args)


def _free(stmt: Stmt) -> list[Var | Buffer]:
    """What a statement uses and does not define, in order."""
    defined: set[Var | Buffer] = set()
    used: dict[Var | Buffer, None] = {}
    todo: list[Node] = [stmt]
    while todo:
        for node in walk(todo.pop()):
            if isinstance(node, For | Let | LetExpr):
                defined.add(node.var)
            elif isinstance(node, Allocate | View):
                defined.add(node.buffer)
            mentioned = [getattr(node, name) for name in (*node.USES, *node.DEFINES)]
            buffers = [each for each in mentioned if isinstance(each, Buffer)]
            todo += (extent for buffer in buffers if buffer not in used for extent in buffer.shape)
            used.update(dict.fromkeys(buffers))
            if isinstance(node, Var):
                used[node] = None
    return [name for name in used if name not in defined]
