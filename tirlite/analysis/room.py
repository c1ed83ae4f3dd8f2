"""Finds for each extent of a rewritten function a size that it never exceeds, by intervals of its variables.

An extent may mention loop variables and lets: what it can be at most is then worked out from their bounds. What is read
from memory is not below what its type holds, and nothing bounds it above but a minimum with something else. Sums and
products are taken in the integers, though i64 may wrap around: where their bounds fit into i64, which is checked before
storage of that size is had, so does the extent, and modulo 2**64 it is the same. What is divided or compared must not
wrap.
"""

from __future__ import annotations

from collections.abc import Callable

from tirlite.analysis.exactness import stays_exact
from tirlite.analysis.extents import Extents
from tirlite.ir import (
    Add,
    Cast,
    Expr,
    FloorDiv,
    FloorMod,
    For,
    IntImm,
    Let,
    Max,
    Min,
    Mul,
    Neg,
    PrimFunc,
    Steps,
    Sub,
    Var,
    i64,
    run,
    statements,
)
from tirlite.sizes import Proof, Size, maximum, minimum, prove_le

_Interval = tuple["Size | None", "Size | None"]
_ANY: _Interval = (None, None)


class Room:
    """The most that integer expressions of a function can be."""

    def __init__(self, func: PrimFunc, extents: Extents) -> None:
        self._extents = extents
        self._loops = {stmt.var: stmt for stmt in statements(func.body) if isinstance(stmt, For)}
        self._lets = {stmt.var: stmt.value for stmt in statements(func.body) if isinstance(stmt, Let)}
        self._found: dict[Var, _Interval] = {}

    def most(self, expr: Expr) -> Size | None:
        """A size, known on entry to the function, that `expr` never exceeds; None where none is found."""
        return self.ends(expr)[1]

    def ends(self, expr: Expr) -> tuple[Size | None, Size | None]:
        """A size that `expr` never falls below, and one that it never exceeds; None where none is found."""
        found: _Interval = run(self._interval(expr))
        return _ANY if found[0] is None and self._is_sum(expr) else found

    def _interval(self, expr: Expr) -> Steps[_Interval]:
        if expr.dtype != i64:
            return _ANY
        if isinstance(expr, IntImm):
            return expr.value, expr.value
        if isinstance(expr, Var):
            if expr not in self._found:
                self._found[expr] = yield self._variable(expr)
            return self._found[expr]
        if isinstance(expr, Cast):
            source = expr.value.dtype
            return source.min if source.is_integer and source.bits < 64 else None, None
        if isinstance(expr, Neg):
            low, high = yield self._interval(expr.a)
            return _negated((low, high))
        if isinstance(expr, Add | Sub | Mul | FloorDiv | FloorMod | Min | Max):
            a: _Interval = yield self._interval(expr.a)
            b: _Interval = yield self._interval(expr.b)
            if isinstance(expr, Add | Sub | Mul):
                return _combined(expr, a, b)
            return _combined(expr, self._true(expr.a, a), self._true(expr.b, b))
        return _ANY

    def _variable(self, var: Var) -> Steps[_Interval]:
        size = self._extents.size(var)
        if size is not None:
            return size, size
        if var in self._lets:
            value: _Interval = yield self._interval(self._lets[var])
            return value
        if var not in self._loops:
            return _ANY
        loop = self._loops[var]
        start = self._true(loop.start, (yield self._interval(loop.start)))
        stop = self._true(loop.stop, (yield self._interval(loop.stop)))
        if loop.step > 0:
            return start[0], None if stop[1] is None else stop[1] - 1
        return None if stop[0] is None else stop[0] + 1, start[1]

    def _true(self, expr: Expr, interval: _Interval) -> _Interval:
        """The interval of an expression, unless the arithmetic that gives its value may wrap around within it.

        What is known on entry is taken as it is: extents made of it are checked there.
        """
        return interval if not self._is_sum(expr) or _is_number(interval) or stays_exact(*interval) else _ANY

    def _is_sum(self, expr: Expr) -> bool:
        """Whether an expression, or what is named by it, is computed by what may wrap around."""
        while isinstance(expr, Var) and expr in self._lets:
            expr = self._lets[expr]
        return isinstance(expr, Add | Sub | Mul | Neg)


def _combined(expr: Expr, a: _Interval, b: _Interval) -> _Interval:
    match expr:
        case Add():
            return _sum(a[0], b[0]), _sum(a[1], b[1])
        case Sub():
            return _combined(Add(expr.a, expr.b), a, _negated(b))
        case Min():
            return None if a[0] is None or b[0] is None else minimum(a[0], b[0]), _either(minimum, a[1], b[1])
        case Max():
            return _either(maximum, a[0], b[0]), None if a[1] is None or b[1] is None else maximum(a[1], b[1])
        case Mul():
            scale, other = (a, b) if _is_number(a) else (b, a)
            return _scaled(other, scale[0]) if _is_number(scale) else _ANY
        case FloorDiv() if _is_number(b) and isinstance(b[0], int) and b[0] > 0:
            return None if a[0] is None else a[0] // b[0], None if a[1] is None else a[1] // b[0]
        case FloorMod() if b[0] is not None and b[1] is not None and prove_le(1, b[0]) is Proof.YES:
            return 0, b[1] - 1
    return _ANY


def _is_number(interval: _Interval) -> bool:
    return interval[0] is not None and interval[1] is not None and interval[0] == interval[1]


def _scaled(interval: _Interval, scale: Size | None) -> _Interval:
    assert scale is not None
    if prove_le(scale, -1) is Proof.YES:
        interval, scale = _negated(interval), -scale
    if prove_le(0, scale) is not Proof.YES:
        return _ANY
    low, high = interval
    return None if low is None else low * scale, None if high is None else high * scale


def _negated(interval: _Interval) -> _Interval:
    low, high = interval
    return None if high is None else -high, None if low is None else -low


def _sum(a: Size | None, b: Size | None) -> Size | None:
    return None if a is None or b is None else a + b


def _either(pick: Callable[[Size, Size], Size], a: Size | None, b: Size | None) -> Size | None:
    if a is None or b is None:
        return b if a is None else a
    return pick(a, b)
