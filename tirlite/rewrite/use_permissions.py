"""Uses the permissions that `tl.allow` grants, and removes the grants from the function."""

from __future__ import annotations

from collections.abc import Callable, Set
from functools import partial
from typing import NamedTuple

from tirlite.analysis.facts import Facts
from tirlite.ir.dtype import DType, f32, f64
from tirlite.ir.equal import structural_equal
from tirlite.ir.expr import (
    GT,
    LT,
    Add,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Div,
    Expr,
    FloatImm,
    IntImm,
    LetExpr,
    Load,
    Mul,
    Neg,
    Select,
    Sub,
    Var,
    const,
)
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.rewrite import Rule, rewrite
from tirlite.ir.stmt import AttrKey, AttrStmt, For, Let, Permission, Stmt, Store, While
from tirlite.ir.walk import defined_in, loads_in, statements, statements_of, stored_in, walk
from tirlite.rewrite.approximate_quotients import with_approximate_quotients
from tirlite.target.processor import processor_called

# Exponents written as products: up to three factors, with rounding errors of half an ULP each, or one ULP for large
# mantissas.
_FACTORS = (2, 3, 4)
# For each type, the exponent beyond which a divisor is scaled, and by how much, so that its reciprocal is no denormal.
_SHIFTS = {f32: (100, 24), f64: (900, 60)}
_STEADY = (Var, IntImm, FloatImm, Cast, Load)
# With fewer iterations, a second multiplication in each does not pay.
_FEWEST = 8


def rewritten(facts: Facts, target: str) -> PrimFunc:
    """The function after using all permissions, for a processor, see `UsePermissions`."""
    if not any(stmt.key is AttrKey.ALLOW for stmt in statements_of(facts.func.body, AttrStmt)):
        return facts.func
    slow = processor_called(target).divides_slowly
    return rewrite(facts.func, {AttrStmt: partial(_used, facts.func, slow)})


def _used(func: PrimFunc, divides_slowly: bool, stmt: AttrStmt) -> Stmt:
    """The body of a grant, after applying what it permits."""
    if stmt.key is not AttrKey.ALLOW:
        return stmt
    assert isinstance(stmt.value, tuple)
    rules: dict[type[Node], Rule] = {}
    if Permission.CONTRACT in stmt.value:
        stored = stored_in(stmt.body)
        rules |= {Add: partial(_contracted_sum, stored), Sub: partial(_contracted_difference, stored)}
    if Permission.APPROXIMATE in stmt.value:
        from tirlite.analysis.integers.definitions import Definitions

        rules |= {Call: _approximated, For: partial(_by_reciprocals, Definitions(func).root, divides_slowly)}
    body = rewrite(stmt.body, rules)
    assert isinstance(body, Stmt)
    return body


def _contracted_sum(stored: Set[Buffer], node: Add) -> Expr:
    either = ((node.b, node.a), (node.a, node.b))
    for product, other in reversed(either) if _depends_more(node.a, node.b, stored) else either:
        if isinstance(product, Mul):
            return _fma(node, product.a, product.b, other)
        if isinstance(product, Neg) and isinstance(product.a, Mul):
            return _fma(node, Neg(product.a.a), product.a.b, other)
    return node


def _contracted_difference(stored: Set[Buffer], node: Sub) -> Expr:
    if isinstance(node.b, Mul) and not _depends_more(node.a, node.b, stored):
        return _fma(node, Neg(node.b.a), node.b.b, node.a)
    return _fma(node, node.a.a, node.a.b, Neg(node.b)) if isinstance(node.a, Mul) else node


def _depends_more(product: Expr, other: Expr, stored: Set[Buffer]) -> bool:
    """Whether only the first of two products has a factor that another iteration may have stored.

    As in `a * y[i - 1] + b * x[i]`: the product left out of the fma can then be computed early.
    """
    return _has_stored(product, stored) and not _has_stored(other, stored)


def _has_stored(product: Expr, stored: Set[Buffer]) -> bool:
    factors = (product.a, product.b) if isinstance(product, Mul) else ()
    return any(isinstance(each, Load) and each.buffer in stored for each in factors)


def _fma(node: Expr, a: Expr, b: Expr, c: Expr) -> Expr:
    return Call(node.dtype, Op.FMA, (a, b, c)) if node.dtype.scalar in (f32, f64) else node


def _approximated(node: Call) -> Expr:
    if node.op is Op.POW:
        return _as_product(node)
    return node if node.op.fast is node.op else Call(node.dtype, node.op.fast, node.args)


def _as_product(node: Call) -> Expr:
    """A power with a small whole exponent as products."""
    base, by = node.args
    exponent = by.value if isinstance(by, Broadcast) else by
    if node.dtype.scalar not in (f32, f64) or not isinstance(exponent, FloatImm) or exponent.value not in _FACTORS:
        return node
    value = Var("base", node.dtype)
    square = Mul(value, value)
    power = {2: square, 3: Mul(square, value), 4: Mul(square, square)}[int(exponent.value)]
    return LetExpr(value, base, power)


class _Divisor(NamedTuple):
    """A loop-invariant divisor; a quotient is the dividend times `shift`, times `inverse`."""

    value: Expr
    shift: Var
    inverse: Var

    @property
    def defined(self) -> tuple[Let, Let]:
        """The lets of both factors: dividends are scaled up for tiny divisors, and down for huge ones.

        If the scaled dividend overflows or underflows, so does the quotient.
        """
        dtype = self.value.dtype
        edge, digits = _SHIFTS[dtype]
        size = Call(dtype, Op.ABS, (self.value,))
        small, large = LT(size, const(2.0**-edge, dtype)), GT(size, const(2.0**edge, dtype))
        down = Select(large, const(2.0**-digits, dtype), const(1.0, dtype))
        shift = Select(small, const(2.0**digits, dtype), down)
        return Let(self.shift, shift), Let(self.inverse, Div(const(1.0, dtype), Mul(self.value, self.shift)))


def _by_reciprocals(root: Callable[[Buffer], Buffer], divides_slowly: bool, loop: For) -> Stmt | tuple[Stmt, ...]:
    """An innermost loop after lets for the reciprocals of its invariant divisors. `root` resolves views."""
    inside = [*statements(loop.body)]
    if any(isinstance(stmt, For | While) for stmt in inside):
        return loop
    loop = with_approximate_quotients(loop) if divides_slowly else loop
    if loop.values is not None and len(loop.values) < _FEWEST:
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
    """Whether a value only changes with memory, and can be computed even if there are no iterations."""
    return all(
        isinstance(node, _STEADY)
        and node not in bound
        and not (isinstance(node, Load) and (node.indices or node.buffer.volatile))
        for node in walk(value)
    )


def _wide(value: Var, dtype: DType) -> Expr:
    return Broadcast(value, dtype.lanes) if dtype.lanes > 1 else value
