"""Lanes writes what one iteration of a loop computes as vectors of what several compute."""

from __future__ import annotations

from collections.abc import Mapping

from tirlite.ir import (
    Add,
    And,
    Binary,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    Expr,
    Let,
    Load,
    Mul,
    Node,
    Or,
    Ramp,
    Select,
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


class NotVector(Exception):
    """An expression has no vector form."""


class Lanes:
    """Vectors of `lanes` values. `values` says what variables stand for that differ from lane to lane."""

    def __init__(self, lanes: int, values: Mapping[Var, Expr]) -> None:
        self.lanes = lanes
        self.values = dict(values)

    def statement(self, stmt: Stmt) -> Stmt:
        """A store or a let for all iterations at once; what follows sees the let's vector. Raises NotVector."""
        if isinstance(stmt, Let):
            value = self.of(stmt.value)
            if value is stmt.value:
                return stmt
            var = Var(stmt.var.name, value.dtype)
            self.values[stmt.var] = var
            return Let(var, value, span=stmt.span)
        assert isinstance(stmt, Store)
        indices = self.indices(stmt.buffer, stmt.indices)
        if indices is stmt.indices:
            # All iterations write one element: which is last is not said.
            raise NotVector
        return stmt.replaced(indices=indices, value=self.spread(self.of(stmt.value)))

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
        if _are_same(found, indices):
            return indices
        was_scalar = buffer.dtype.lanes == 1 and all(index.dtype.lanes == 1 for index in indices)
        if not was_scalar or any(index.dtype.lanes != 1 for index in found[:-1]):
            raise NotVector
        return tuple(found)

    def _of(self, expr: Expr) -> Steps[Expr]:
        if isinstance(expr, Var):
            return self.values.get(expr, expr)
        if isinstance(expr, Load):
            indices: tuple[Expr, ...] = yield self._indices(expr.buffer, expr.indices)
            return expr if indices is expr.indices else Load(expr.buffer, indices)
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
        if isinstance(expr, Call) and expr.op.is_math:
            return Call(expr.dtype.with_lanes(self.lanes), expr.op, tuple(map(self.spread, children)))
        raise NotVector


def _are_same(new: list[Expr] | tuple[Expr, ...], old: tuple[Node, ...]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))


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
