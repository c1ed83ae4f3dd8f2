"""Writes the loop that looks at the elements of an array of which an annotation promises what they are."""

from __future__ import annotations

from tirlite.diag import Span
from tirlite.dsl.parameters import BadOption, ParamType, described
from tirlite.ir.dtype import i64
from tirlite.ir.expr import LE, LT, And, Buffer, Cast, Expr, IntImm, Load, Var, const
from tirlite.ir.printer import text
from tirlite.ir.size import expr_over_dims
from tirlite.ir.stmt import Assert, For, SeqStmt, Stmt
from tirlite.sizes import Dim, Poly


def look_at_elements(array: Buffer, kind: ParamType, span: Span) -> Stmt:
    """Loops over all elements of a parameter, which stop at the first one that is not as `kind` promises."""
    least, below = _bound("least", kind.least, span), _bound("below", kind.below, span)
    dtype = array.dtype
    if not dtype.is_integer or dtype.lanes != 1 or (dtype.bits == 64 and not dtype.is_signed):
        raise BadOption("below", text(below), f"for elements that fit into i64, not tl.{dtype}", span=span).error()
    if kind.is_output:
        raise BadOption("below", text(below), "for arrays that have elements when they are given", span=span).error()
    names = ("place",) if len(array.shape) == 1 else tuple(f"place{axis}" for axis in range(len(array.shape)))
    indices = tuple(Var(name, i64) for name in names)
    element: Expr = Load(array, indices)
    value = element if dtype == i64 else Cast(i64, element)
    told = f"the elements of {array.name} are at least {text(least)} and less than {text(below)}"
    stmt: Stmt = Assert(And(LE(least, value), LT(value, below)), told, span=span)
    for index, extent in reversed([*zip(indices, array.shape, strict=True)]):
        stmt = For(index, const(0, i64), extent, SeqStmt((stmt,), span=span), span=span)
    return stmt


def _bound(option: str, given: object, span: Span) -> Expr:
    """An integer, or arithmetic on dims, as an i64 expression."""
    if isinstance(given, Expr) and given.dtype.is_integer and given.dtype.lanes == 1:
        return given.astype(i64)
    if isinstance(given, Dim | Poly):
        return expr_over_dims(given)
    if hasattr(given, "__index__") and not isinstance(given, bool):
        value = int(given.__index__())
        if i64.min <= value <= i64.max:
            return IntImm(i64, value)
    raise BadOption(option, described(given), "an integer, or an integer expression of dims", span=span).error()
