"""Lanes writes what one iteration of a loop computes as vectors of what several compute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from tirlite.ir import (
    Add,
    Allocate,
    And,
    Binary,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    Expr,
    FloorDiv,
    For,
    ForKind,
    IntImm,
    Let,
    Load,
    Max,
    Mul,
    Node,
    Op,
    Or,
    Ramp,
    Select,
    SeqStmt,
    Steps,
    Stmt,
    Store,
    Sub,
    Unary,
    Var,
    const,
    i64,
    run,
)
from tirlite.rewrite.affine_exprs import folded

# Of a buffer that gets an element for each lane.
_MOST_ELEMENTS = 16


class NotVector(Exception):
    """An expression has no vector form."""


class Lanes:
    """Vectors of `lanes` values. `values` says what variables stand for that differ from lane to lane.

    With `neighbours`, what lanes access in memory lies side by side. `wide` are the buffers with an element for each
    lane, in the place of those that each iteration has for itself.
    """

    def __init__(self, lanes: int, values: Mapping[Var, Expr], *, neighbours: bool = False) -> None:
        self.lanes = lanes
        self.values = dict(values)
        self.neighbours = neighbours
        self.wide: dict[Buffer, Buffer] = {}

    def block(self, body: SeqStmt) -> SeqStmt:
        """The statements of a body for all iterations at once, one after the other. Raises NotVector."""
        return SeqStmt(tuple(self.statement(stmt) for stmt in body.stmts))

    def statement(self, stmt: Stmt) -> Stmt:
        """One statement for all iterations at once; what follows sees the vector of a let. Raises NotVector.

        A loop inside stays one, where all iterations run it alike.
        """
        if isinstance(stmt, For) and stmt.kind in (ForKind.SERIAL, ForKind.REDUCE, ForKind.UNROLLED):
            if self.of(stmt.start) is not stmt.start or self.of(stmt.stop) is not stmt.stop:
                raise NotVector
            return stmt.replaced(body=self.block(stmt.body))
        if isinstance(stmt, Allocate):
            return self._widened(stmt)
        if not isinstance(stmt, Let | Store):
            raise NotVector
        if isinstance(stmt, Let):
            value = self.of(stmt.value)
            if value is stmt.value:
                return stmt
            var = Var(stmt.var.name, value.dtype)
            self.values[stmt.var] = var
            return Let(var, value, span=stmt.span)
        indices = self.indices(stmt.buffer, stmt.indices)
        if indices is stmt.indices:
            # All iterations write one element: which is last is not said.
            raise NotVector
        buffer = self.wide.get(stmt.buffer, stmt.buffer)
        return stmt.replaced(buffer=buffer, indices=indices, value=self.spread(self.of(stmt.value)))

    def _widened(self, stmt: Allocate) -> Stmt:
        """The allocation with an element for each lane."""
        buffer = stmt.buffer
        extents = [extent.value for extent in buffer.shape if isinstance(extent, IntImm)]
        if (
            len(extents) < len(buffer.shape)
            or prod(extents) > _MOST_ELEMENTS
            or buffer.dtype.lanes > 1
            or buffer.volatile
        ):
            raise NotVector
        self.wide[buffer] = replace(buffer, shape=(*buffer.shape, const(self.lanes, i64)))
        return stmt.replaced(buffer=self.wide[buffer])

    def of(self, expr: Expr) -> Expr:
        """The vector of the values of `expr`; `expr` itself where these are all the same. Raises NotVector."""
        return run(self._of(expr))

    def spread(self, expr: Expr) -> Expr:
        """A vector: the expression, or it in each lane."""
        return expr if expr.dtype.lanes > 1 else Broadcast(expr, self.lanes)

    def indices(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The indices of an access. Raises NotVector where more than the last differs between lanes."""
        return run(self._indices(buffer, indices))

    def _indices(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Steps[tuple[Expr, ...]]:
        found: list[Expr] = []
        for index in indices:
            vector: Expr = yield self._of(index)
            found.append(vector)
        if buffer in self.wide:
            if any(index.dtype.lanes != 1 for index in found):
                raise NotVector
            return (*found, Ramp(const(0, i64), const(1, i64), self.lanes))
        if _are_same(found, indices):
            return indices
        if self.neighbours and found[-1].dtype.lanes > 1 and not _is_dense(found[-1]):
            raise NotVector
        was_scalar = buffer.dtype.lanes == 1 and all(index.dtype.lanes == 1 for index in indices)
        if not was_scalar or any(index.dtype.lanes != 1 for index in found[:-1]):
            raise NotVector
        return tuple(found)

    def _of(self, expr: Expr) -> Steps[Expr]:
        if isinstance(expr, Var):
            return self.values.get(expr, expr)
        if isinstance(expr, Load):
            indices: tuple[Expr, ...] = yield self._indices(expr.buffer, expr.indices)
            return expr if indices is expr.indices else Load(self.wide.get(expr.buffer, expr.buffer), indices)
        children: list[Expr] = []
        for child in expr.children():
            assert isinstance(child, Expr)
            vector: Expr = yield self._of(child)
            children.append(vector)
        return expr if _are_same(children, expr.children()) else self._combined(expr, children)

    def _combined(self, expr: Expr, children: list[Expr]) -> Expr:
        if expr.dtype.lanes != 1:
            raise NotVector
        if isinstance(expr, Add | Sub | Mul) and (moved := _moved_ramp(expr, *children)) is not None:
            return moved
        if isinstance(expr, Binary | Compare) and not isinstance(expr, And | Or):
            return type(expr)(*map(self.spread, children))
        if isinstance(expr, Unary):
            return type(expr)(children[0])
        if isinstance(expr, Cast):
            return Cast(expr.dtype.with_lanes(self.lanes), children[0])
        if isinstance(expr, Select):
            condition, if_true, if_false = children
            return Select(condition, self.spread(if_true), self.spread(if_false))
        if isinstance(expr, Call) and (expr.op.is_math or expr.op is Op.CHECKED):
            return Call(expr.dtype.with_lanes(self.lanes), expr.op, tuple(map(self.spread, children)))
        raise NotVector


def _are_same(new: list[Expr] | tuple[Expr, ...], old: tuple[Node, ...]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))


def _is_dense(index: Expr) -> bool:
    return isinstance(index, Ramp) and isinstance(index.stride, IntImm) and index.stride.value == 1


def _moved_ramp(expr: Add | Sub | Mul, a: Expr, b: Expr) -> Expr | None:
    """A ramp plus, minus or times a scalar, as a ramp: such an index reads neighbours in memory."""
    if expr.dtype != i64:
        return None
    if isinstance(a, Ramp) and b.dtype.lanes == 1:
        stride = Mul(a.stride, b) if isinstance(expr, Mul) else a.stride
        return Ramp(folded(type(expr)(a.base, b)), folded(stride), a.lanes)
    if isinstance(b, Ramp) and a.dtype.lanes == 1:
        strides = {Add: b.stride, Sub: Mul(b.stride, const(-1, i64)), Mul: Mul(a, b.stride)}
        return Ramp(folded(type(expr)(a, b.base)), folded(strides[type(expr)]), b.lanes)
    return None


def iterations(loop: For) -> Expr:
    """How many iterations a loop of step 1 has; never below 0, and never above where i64 ends."""
    start, stop = loop.start, loop.stop
    if isinstance(start, IntImm) and isinstance(stop, IntImm):
        return const(max(stop.value - start.value, 0), i64)
    if isinstance(start, IntImm) and start.value == 0:
        return stop if isinstance(stop, Var) and stop.dim is not None and stop.dim.low >= 0 else Max(stop, start)
    return Max(Sub(Max(stop, start), start), const(0, i64))


def last_whole(loop: For, count: Expr, lanes: int) -> Expr:
    """Where the last whole vector of so many lanes ends, of a loop with `count` iterations."""
    if isinstance(count, IntImm):
        return folded(Add(loop.start, const(count.value // lanes * lanes, i64)))
    covered = Mul(FloorDiv(count, const(lanes, i64)), const(lanes, i64))
    return covered if isinstance(loop.start, IntImm) and loop.start.value == 0 else Add(loop.start, covered)
