"""A function and two of its buffers in, the function with both at one address out: what a plan makes of it."""

from __future__ import annotations

from collections.abc import Callable

from tirlite.ir.dtype import i64, u8
from tirlite.ir.expr import Add, Buffer, Expr, Mul, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.rewrite import rewrite
from tirlite.ir.stmt import Allocate, For, ForKind, Stmt, View, seq


def merged(func: PrimFunc, destination: Buffer, source: Buffer) -> PrimFunc:
    """`func` with both buffers as views of one arena, at offset 0. They are allocated in one body."""
    arena = Buffer("arena", u8, (Add(_bytes(destination), _bytes(source)),), source.scope, 64)
    made: list[Buffer] = []

    def allocate(node: Allocate) -> Stmt:
        if node.buffer is not destination and node.buffer is not source:
            return node
        view = View(node.buffer, arena, const(0, i64))
        made.append(node.buffer)
        return seq(Allocate(arena), view) if len(made) == 1 else view

    result = rewrite(func, {Allocate: allocate})
    assert isinstance(result, PrimFunc)
    assert len(made) == 2
    return result


def _bytes(buffer: Buffer) -> Expr:
    total: Expr = const(buffer.dtype.bytes, i64)
    for extent in buffer.shape:
        total = Mul(total, extent)
    return total


def forwards(func: PrimFunc) -> PrimFunc:
    """`func` with the iterations of its loops without order run from the first to the last."""
    return _in_order(func, lambda loop: loop.replaced(kind=ForKind.SERIAL))


def backwards(func: PrimFunc) -> PrimFunc:
    """`func` with the iterations of its loops without order run from the last to the first."""

    def turn(loop: For) -> Stmt:
        assert loop.step == 1
        one = const(1, i64)
        return loop.replaced(kind=ForKind.SERIAL, start=loop.stop - one, stop=loop.start - one, step=-1)

    return _in_order(func, turn)


def _in_order(func: PrimFunc, change: Callable[[For], Stmt]) -> PrimFunc:
    unordered = (ForKind.PARALLEL, ForKind.VECTORIZED)
    result = rewrite(func, {For: lambda loop: change(loop) if loop.kind in unordered else loop})
    assert isinstance(result, PrimFunc)
    return result
