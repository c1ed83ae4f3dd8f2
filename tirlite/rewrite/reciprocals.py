"""Writes quotients in a loop by what stays the same in it as products with a reciprocal, computed once before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tirlite.ir.dtype import DType, f32, f64
from tirlite.ir.equal import structural_equal
from tirlite.ir.expr import (
    GT,
    LT,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Div,
    Expr,
    FloatImm,
    IntImm,
    Load,
    Mul,
    Select,
    Var,
    const,
)
from tirlite.ir.op import Op
from tirlite.ir.rewrite import rewrite
from tirlite.ir.stmt import For, Let, Stmt, Store, While
from tirlite.ir.walk import defined_in, loads_in, statements, walk

# What a divisor is multiplied by where it is smaller or larger than that, so that its reciprocal has all of its digits.
_SHIFTS = {f32: (100, 24), f64: (900, 60)}
_PLAIN = (Var, IntImm, FloatImm, Cast, Load)
# So few iterations are not worth a product more for each.
_FEWEST = 8


class _Divisor(NamedTuple):
    """One that stays the same; `shift` and `inverse` are what the quotient is the product with, one after the other."""

    value: Expr
    shift: Var
    inverse: Var

    @property
    def defined(self) -> tuple[Let, Let]:
        """Dividends grow with divisors that are too small, and shrink with those that are too large.

        What overflows or becomes too small by that does so in the quotient, too.
        """
        dtype = self.value.dtype
        edge, digits = _SHIFTS[dtype]
        size = Call(dtype, Op.ABS, (self.value,))
        small, large = LT(size, const(2.0**-edge, dtype)), GT(size, const(2.0**edge, dtype))
        down = Select(large, const(2.0**-digits, dtype), const(1.0, dtype))
        shift = Select(small, const(2.0**digits, dtype), down)
        return Let(self.shift, shift), Let(self.inverse, Div(const(1.0, dtype), Mul(self.value, self.shift)))


def by_reciprocals(root: Callable[[Buffer], Buffer], loop: For) -> Stmt | tuple[Stmt, ...]:
    """An innermost loop, behind the reciprocals of what stays the same in it. `root` tells what views are of."""
    inside = [*statements(loop.body)]
    is_short = loop.values is not None and len(loop.values) < _FEWEST
    if is_short or any(isinstance(stmt, For | While) for stmt in inside):
        return loop
    stored = {root(stmt.buffer) for stmt in inside if isinstance(stmt, Store)}
    bound = defined_in(loop)
    found: list[_Divisor] = []

    def product(node: Div) -> Expr:
        value = node.b.value if isinstance(node.b, Broadcast) else node.b
        if value.dtype not in _SHIFTS or isinstance(value, FloatImm) or not _stays(value, bound):
            return node
        if any(root(each.buffer) in stored for each in loads_in(value)):
            return node
        divisor = next((each for each in found if structural_equal(each.value, value)), None)
        if divisor is None:
            divisor = _Divisor(value, Var("shift", value.dtype), Var("inverse", value.dtype))
            found.append(divisor)
        return Mul(Mul(node.a, _wide(divisor.shift, node.dtype)), _wide(divisor.inverse, node.dtype))

    result = rewrite(loop, {Div: product})
    assert isinstance(result, For)
    return (*(let for each in found for let in each.defined), result) if found else loop


def _stays(value: Expr, bound: set[object]) -> bool:
    """Whether a value is the same as long as memory is, and may be computed where there are no iterations."""
    return all(
        isinstance(node, _PLAIN)
        and node not in bound
        and not (isinstance(node, Load) and (node.indices or node.buffer.volatile))
        for node in walk(value)
    )


def _wide(value: Var, dtype: DType) -> Expr:
    return Broadcast(value, dtype.lanes) if dtype.lanes > 1 else value
