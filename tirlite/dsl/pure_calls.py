"""Calls functions of `math` and NumPy on constants while a kernel is translated: `math.sqrt(2 / math.pi)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tirlite.diag import Span
from tirlite.dsl.convert import is_literal
from tirlite.dsl.operators import LiteralArithmetic
from tirlite.ir.expr import FloatImm, IntImm


def of_constants(function: Callable[..., object], args: Sequence[object], span: Span) -> object | None:
    """The number that `function` gives for constants, as weak as a literal; None where an argument is not constant."""
    values = [each.value if isinstance(each, (IntImm, FloatImm)) else each for each in args]
    if not all(is_literal(each) for each in values):
        return None
    try:
        found = function(*values)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise LiteralArithmetic(str(error), span=span).error() from None
    number = found.item() if hasattr(found, "item") else found
    if not is_literal(number):
        raise LiteralArithmetic("it is not a real number", span=span).error()
    return number
