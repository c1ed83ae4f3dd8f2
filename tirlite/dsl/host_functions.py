"""Python functions used in kernels: those of `math` and NumPy on constants, and C functions of ctypes."""

from __future__ import annotations

import ctypes
from _ctypes import CFuncPtr
from collections.abc import Callable, Sequence

from tirlite.diag import Span
from tirlite.dsl.convert import is_literal
from tirlite.dsl.operators import LiteralArithmetic
from tirlite.ir.expr import FloatImm, IntImm


def of_constants(function: Callable[..., object], args: Sequence[object], span: Span) -> object | None:
    """The result of `function` on constants, as a weak literal; None if an argument is not constant."""
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


def native_address(function: object) -> int:
    """The address of a C function, which the caller must keep alive."""
    assert isinstance(function, CFuncPtr)
    return ctypes.cast(function, ctypes.c_void_p).value or 0
