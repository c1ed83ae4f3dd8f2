"""The calls that print: their place in a function, and the text they make of their values.

The first argument of such a call is a text for `str.format`: a placeholder `{}` or `{:spec}` for each value, all other
braces doubled, and the line end if any.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from string import Formatter
from typing import TypeGuard

from tirlite.ir.dtype import DType, float_text
from tirlite.ir.expr import Call, Expr, StringImm
from tirlite.ir.op import Op
from tirlite.ir.stmt import Evaluate, Stmt
from tirlite.ir.walk import statements_of
from tirlite.record import record

# The use of a value in the message that it was never written.
PRINTED = "a value that is printed"


def is_print(node: object) -> TypeGuard[Evaluate]:
    return isinstance(node, Evaluate) and isinstance(node.value, Call) and node.value.op is Op.PRINT


def prints_in(root: Stmt) -> Iterator[Evaluate]:
    """The statements that print, in program order."""
    return (each for each in statements_of(root, Evaluate) if is_print(each))


def text_and_values(stmt: Evaluate) -> tuple[str, tuple[Expr, ...]]:
    """The text and the values of a statement that prints."""
    assert isinstance(stmt.value, Call)
    text, *values = stmt.value.args
    assert isinstance(text, StringImm)
    return text.value, tuple(values)


@record
class _Shown:
    """A value formatted as Python formats its kind; floats as NumPy formats their width."""

    value: bool | int | float
    dtype: DType

    def __format__(self, spec: str) -> str:
        if self.dtype.is_float:
            return format(float(self.value), spec) if spec else float_text(float(self.value), self.dtype)
        return format(bool(self.value) if self.dtype.is_bool else int(self.value), spec)


def printed(text: str, values: Sequence[bool | int | float], types: Sequence[DType]) -> str:
    return text.format(*(_Shown(value, dtype) for value, dtype in zip(values, types, strict=True)))


def put(text: str) -> None:
    """Writes a text to the current `sys.stdout` in one piece, so that threads do not mix lines."""
    if sys.stdout is not None:
        sys.stdout.write(text)


def fits(text: str, types: Sequence[DType]) -> bool:
    """Whether a text has one placeholder per value, and only formats that fit the values' types."""
    try:
        places = [part for part in Formatter().parse(text) if part[1] is not None]
        if any(name or conversion or "{" in (spec or "") for _, name, spec, conversion in places):
            return False
        printed(text, [1] * len(types), types)
    except (ValueError, IndexError):
        return False
    return len(places) == len(types)
