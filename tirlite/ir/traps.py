"""Tells what the operands of an operation on integers must not be: the message where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tirlite.diag import Message, Span
from tirlite.ir.dtype import DType
from tirlite.ir.expr import Binary, FloorDiv, FloorMod, ShiftLeft, ShiftRight, TruncDiv, TruncMod
from tirlite.ir.faults import DivisionByZero, DivisionOverflow, ShiftOutOfRange

Trap: TypeAlias = Callable[[int, int, Span | None], Message | None]

SHIFTS = (ShiftLeft, ShiftRight)
QUOTIENTS = (FloorDiv, TruncDiv)
_SPELLING = {FloorDiv: "//", FloorMod: "%", TruncDiv: "truncdiv", TruncMod: "truncmod"}


def trap_of(kind: type[Binary], dtype: DType) -> Trap | None:
    """What looks at two integer lanes and says what is wrong with them; None if nothing ever is."""
    if not dtype.is_integer:
        return None
    if kind in SHIFTS:
        return lambda _, count, span: (
            None if 0 <= count < dtype.bits else ShiftOutOfRange(dtype.scalar.name, count, dtype.bits, span=span)
        )
    if kind not in _SPELLING:
        return None
    operator, divides = _SPELLING[kind], kind in QUOTIENTS

    def division(a: int, b: int, span: Span | None) -> Message | None:
        if b == 0:
            return DivisionByZero(a, operator, span=span)
        if divides and b == -1 and a == dtype.min:
            return DivisionOverflow(a, operator, dtype.scalar.name, span=span)
        return None

    return division
