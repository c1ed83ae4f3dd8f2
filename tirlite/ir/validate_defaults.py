"""Defines the rule for the defaults of a function's parameters."""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.diag import Message
from tirlite.ir.expr import Var
from tirlite.ir.func import PrimFunc
from tirlite.show import shown


class WrongDefault(Message):
    """A default stands where no scalar parameter does, or is no value of the parameter's type.

    Example: `PrimFunc("f", (x,), body, defaults=(1,))`, where `x` is a buffer.
    Fix: Give one number, or None, for each parameter, each a value of its type.
    """

    code = "wrong-default"
    title = "`{name}` cannot be {given} by default"
    help = "a scalar parameter has a number of its type as its default, or None"

    name: str
    given: str


def default_violations(func: PrimFunc) -> Iterator[Message]:
    """What is wrong with the defaults of the parameters."""
    names = [param.name for param in func.params]
    for position, value in enumerate(func.defaults):
        param = func.params[position] if position < len(names) else None
        if value is not None and not (isinstance(param, Var) and _fits(value, param)):
            name = names[position] if param is not None else f"parameter {position} of {len(names)}"
            yield WrongDefault(name, shown(value))


def _fits(value: object, param: Var) -> bool:
    dtype = param.dtype
    if dtype.is_handle or dtype.lanes != 1 or not isinstance(value, (bool, int, float)):
        return False
    return dtype.is_float or (isinstance(value, int) and dtype.min <= value <= dtype.max)
