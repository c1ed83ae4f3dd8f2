"""Does what `tl.allow` grants, and takes the grants out of the function."""

from __future__ import annotations

from functools import partial

from tirlite.analysis.facts import Facts
from tirlite.ir.dtype import f32, f64
from tirlite.ir.expr import Add, Broadcast, Call, Expr, FloatImm, LetExpr, Mul, Neg, Sub, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.rewrite import Rule, rewrite
from tirlite.ir.stmt import AttrKey, AttrStmt, For, Permission, Stmt
from tirlite.ir.walk import statements_of

# Powers that are products: of up to three, each of which is off by half an ULP, or by one where the mantissa is long.
_FACTORS = (2, 3, 4)


def rewritten(facts: Facts) -> PrimFunc:
    """The function with what is granted done, see `UsePermissions`."""
    if not any(stmt.key is AttrKey.ALLOW for stmt in statements_of(facts.func.body, AttrStmt)):
        return facts.func
    return rewrite(facts.func, {AttrStmt: partial(_used, facts.func)})


def _used(func: PrimFunc, stmt: AttrStmt) -> Stmt:
    if stmt.key is not AttrKey.ALLOW:
        return stmt
    assert isinstance(stmt.value, tuple)
    rules: dict[type[Node], Rule] = {}
    if Permission.CONTRACT in stmt.value:
        rules |= {Add: _contracted_sum, Sub: _contracted_difference}
    if Permission.APPROXIMATE in stmt.value:
        from tirlite.analysis.integers.definitions import Definitions
        from tirlite.rewrite.reciprocals import by_reciprocals

        rules |= {Call: _approximated, For: partial(by_reciprocals, Definitions(func).root)}
    body = rewrite(stmt.body, rules)
    assert isinstance(body, Stmt)
    return body


def _contracted_sum(node: Add) -> Expr:
    for product, other in ((node.b, node.a), (node.a, node.b)):
        if isinstance(product, Mul):
            return _fma(node, product.a, product.b, other)
        if isinstance(product, Neg) and isinstance(product.a, Mul):
            return _fma(node, Neg(product.a.a), product.a.b, other)
    return node


def _contracted_difference(node: Sub) -> Expr:
    if isinstance(node.b, Mul):
        return _fma(node, Neg(node.b.a), node.b.b, node.a)
    return _fma(node, node.a.a, node.a.b, Neg(node.b)) if isinstance(node.a, Mul) else node


def _fma(node: Expr, a: Expr, b: Expr, c: Expr) -> Expr:
    return Call(node.dtype, Op.FMA, (a, b, c)) if node.dtype.scalar in (f32, f64) else node


def _approximated(node: Call) -> Expr:
    if node.op is Op.POW:
        return _as_product(node)
    return node if node.op.fast is node.op else Call(node.dtype, node.op.fast, node.args)


def _as_product(node: Call) -> Expr:
    """A power by a small whole number as products."""
    base, by = node.args
    exponent = by.value if isinstance(by, Broadcast) else by
    if node.dtype.scalar not in (f32, f64) or not isinstance(exponent, FloatImm) or exponent.value not in _FACTORS:
        return node
    value = Var("base", node.dtype)
    square = Mul(value, value)
    power = {2: square, 3: Mul(square, value), 4: Mul(square, square)}[int(exponent.value)]
    return LetExpr(value, base, power)
