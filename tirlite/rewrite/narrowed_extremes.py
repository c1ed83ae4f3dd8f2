"""Takes minima and maxima in the type that their result is stored in: `tl.i32(min(tl.i64(a) + 1, tl.i64(b)))`.

In a table where each element waits for the one before, as edit distances do, widening takes as long as the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tirlite.ir.dtype import DType, i32, i64
from tirlite.ir.expr import Add, Buffer, Call, Cast, Expr, IntImm, Load, Max, Min, Select, Sub, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.op import Op
from tirlite.ir.rewrite import rewrite
from tirlite.ir.stmt import Allocate, Let, Store
from tirlite.ir.walk import aliased_in, statements_of

# What a name stands for, and what is stored in a local scalar.
_Values: TypeAlias = dict[Expr | Buffer, list[Expr]]

_EXTREMES = (Min, Max)
_MOST_OPERANDS = 16
# What is computed in more steps than this is not looked through.
_DEPTH = 8
# Sums of numbers up to this one do not wrap around.
_FAR = 1 << 60


def rewritten(func: PrimFunc) -> PrimFunc:
    """The function with such minima and maxima in i32."""
    names: _Values = {let.var: [let.value] for let in statements_of(func.body, Let) if let.var.dtype == i64}
    scalars = {stmt.buffer for stmt in statements_of(func.body, Allocate) if not stmt.buffer.shape} - aliased_in(
        func.body
    )
    for store in statements_of(func.body, Store):
        if store.buffer in scalars and store.buffer.dtype == i64 and not store.buffer.volatile:
            names.setdefault(store.buffer, []).append(store.value)

    def rule(cast: Cast) -> Expr:
        if cast.dtype != i32 or not isinstance(cast.value, _EXTREMES) or cast.value.dtype != i64:
            return cast
        operands = _operands(cast.value)
        # Only what has been widened gains by that.
        if len(operands) > _MOST_OPERANDS or not any(_is_widened(each) for each in operands):
            return cast
        low, high = _ends(cast.value, names)
        return _clamped(cast.value, i32, names) if i32.min <= low and high <= i32.max else cast

    return rewrite(func, {Cast: rule})


def _operands(expr: Expr) -> list[Expr]:
    found, todo = list[Expr](), [expr]
    while todo and len(found) <= _MOST_OPERANDS:
        each = todo.pop()
        if isinstance(each, _EXTREMES):
            todo += (each.a, each.b)
        else:
            found.append(each)
    return found


def _is_widened(expr: Expr) -> bool:
    return isinstance(expr, Cast) and expr.value.dtype == i32


def _ends(expr: Expr, names: _Values, depth: int = _DEPTH) -> tuple[int, int]:
    """The least and the greatest value of an integer."""
    own = expr.dtype.min, expr.dtype.max
    if depth == 0:
        return own
    if (values := names.get(expr.buffer if isinstance(expr, Load) else expr)) is not None:
        return _around(values, names, depth - 1)
    if isinstance(expr, IntImm):
        return expr.value, expr.value
    if isinstance(expr, Cast) and expr.value.dtype.is_integer and expr.value.dtype.bits < i64.bits:
        return expr.value.dtype.min, expr.value.dtype.max
    if isinstance(expr, Add | Sub | Min | Max):
        (low, high), (least, most) = _ends(expr.a, names, depth - 1), _ends(expr.b, names, depth - 1)
        if isinstance(expr, Min | Max):
            pick = min if isinstance(expr, Min) else max
            return pick(low, least), pick(high, most)
        found = (low + least, high + most) if isinstance(expr, Add) else (low - most, high - least)
        return found if all(abs(end) < _FAR for end in found) else own
    if isinstance(expr, Select) or (isinstance(expr, Call) and expr.op is Op.IF_THEN_ELSE):
        sides = expr.args[1:] if isinstance(expr, Call) else (expr.if_true, expr.if_false)
        return _around(sides, names, depth - 1)
    return own


def _around(exprs: Sequence[Expr], names: _Values, depth: int) -> tuple[int, int]:
    ends = [_ends(each, names, depth) for each in exprs]
    return min(low for low, _ in ends), max(high for _, high in ends)


def _clamped(expr: Expr, target: DType, names: _Values) -> Expr:
    """The integer in a narrower type; the least or the greatest of that for what it does not hold."""
    if isinstance(expr, _EXTREMES):
        return type(expr)(_clamped(expr.a, target, names), _clamped(expr.b, target, names))
    if isinstance(expr, IntImm):
        return const(min(max(expr.value, target.min), target.max), target)
    if _is_widened(expr):
        assert isinstance(expr, Cast)
        return expr.value
    low, high = _ends(expr, names)
    held = expr if high <= target.max else Min(expr, const(target.max, i64))
    return Cast(target, held if low >= target.min else Max(held, const(target.min, i64)))
