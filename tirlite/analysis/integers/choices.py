"""Numbers chosen by a condition: one of two, as in `a if c else b`, or a number or its negative, as in `abs`."""

from __future__ import annotations

from tirlite.ir.dtype import i64
from tirlite.ir.expr import LT, Call, Expr, Neg, Select, const
from tirlite.ir.op import Op
from tirlite.record import record
from tirlite.sizes import Size


@record(eq=False)
class Choice:
    """Two values modulo 2**64, of which a condition picks the first where it holds.

    That is where `sign` is below 0, if there is one.
    """

    condition: Expr
    yes: Size
    no: Size
    sign: Size | None = None


def branches_of(expr: Expr) -> tuple[Expr, ...]:
    """The condition and both values, of a number that is picked by a condition."""
    if expr.dtype != i64:
        return ()
    if isinstance(expr, Select):
        return expr.condition, expr.if_true, expr.if_false
    if is_absolute(expr):
        (value,) = expr.children()
        assert isinstance(value, Expr)
        return LT(value, const(0, i64)), Neg(value), value
    return expr.args if isinstance(expr, Call) and expr.op is Op.IF_THEN_ELSE else ()


def is_absolute(expr: Expr) -> bool:
    """Whether an expression is the absolute value of a number."""
    return isinstance(expr, Call) and expr.op is Op.ABS
