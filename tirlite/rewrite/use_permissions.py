"""UsePermissions does what `tl.allow` grants, and takes the grants out of the function."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tirlite.ir.demand import pass_call
from tirlite.ir.dtype import f32, f64
from tirlite.ir.expr import Add, Call, Expr, Mul, Neg, Sub
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.stmt import AttrKey, AttrStmt, For, Permission, Stmt
from tirlite.ir.walk import statements_of
from tirlite.record import record

if TYPE_CHECKING:
    from tirlite.ir import Rule


@record
class UsePermissions:
    """Writes products that are added as `tl.fma` under `contract`, and functions in fast forms under `approximate`.

    Under `approximate`, too, quotients by what stays the same in an innermost loop become products with its reciprocal.
    A product that is bound to a name of its own stays one. Halves stay as they are: they are computed in f32 anyhow.
    """

    name: str = "use-permissions"

    @pass_call
    def __call__(self, func: PrimFunc) -> PrimFunc:
        if not any(stmt.key is AttrKey.ALLOW for stmt in statements_of(func.body, AttrStmt)):
            return func
        from tirlite.ir import rewrite

        return rewrite(func, {AttrStmt: partial(_used, func)})


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
    from tirlite.ir import rewrite

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
    return node if node.op.fast is node.op else Call(node.dtype, node.op.fast, node.args)
