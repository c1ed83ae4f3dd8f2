"""Guards public functions that take a PrimFunc: anything else is refused with a message."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

from tirlite.diag import CallTypeError, Message, boundary
from tirlite.diag.error import an
from tirlite.ir.func import PrimFunc

P = ParamSpec("P")
R = TypeVar("R")
Call = TypeVar("Call", bound=Callable[..., object])


class NoPrimFunc(Message):
    """A pass or an analysis is given something other than a function of the IR.

    Example: `tl.allocations(smooth)`, where `smooth` is a kernel.
    Fix: Give its function: `smooth.ir` as it was written, `smooth.lowered` as it is after the passes.
    """

    code = "no-primfunc"
    raises = CallTypeError
    title = "{name} takes a PrimFunc, and is given {given}"
    help = "{advice}"


def demand_prim_func(given: object, name: str) -> None:
    """Raises CallTypeError, with what `name` takes, unless `given` is a PrimFunc."""
    # Ask the type: an object may return anything for `__class__`.
    if issubclass(type(given), PrimFunc):
        return
    advice = "a kernel has one in `.ir`; `tl.parse` makes one of text"
    if isinstance(getattr(given, "ir", None), PrimFunc):
        advice = "give its `.ir`, or `.lowered` for what the passes made of it"
    raise NoPrimFunc(name, an(type(given).__name__), advice).error()


def of_prim_func(function: Callable[Concatenate[PrimFunc, P], R]) -> Callable[Concatenate[PrimFunc, P], R]:
    """Decorates an analysis of its first argument with the guard and the error boundary."""

    @wraps(function)
    def bounded(func: PrimFunc, *args: P.args, **options: P.kwargs) -> R:
        with boundary:
            demand_prim_func(func, f"{function.__name__}()")
            return function(func, *args, **options)

    return cast(Callable[Concatenate[PrimFunc, P], R], bounded)


def pass_call(method: Call) -> Call:
    """Decorates the call method of a pass with the guard and the error boundary."""

    @wraps(method)
    def bounded(self: object, func: PrimFunc) -> object:
        with boundary:
            demand_prim_func(func, f"the pass {type(self).__name__}")
            return method(self, func)

    return cast(Call, bounded)
