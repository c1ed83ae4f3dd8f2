"""Removes the frames inside of tirlite from an error on its way out, where tirlite meets its users.

    def compile(func):
        with boundary:
            ...

The traceback then ends at the line of the user's own that called `compile`. Errors that are tirlite's own fault keep
their frames, and with TIRLITE_FULL_TRACEBACK=1 in the environment all do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import ParamSpec, TypeVar

from tirlite.diag.error import InternalError, TirliteError

P = ParamSpec("P")
R = TypeVar("R")


class Boundary:
    """A context for the body of a public function. Boundaries may stand in one another."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None:
        if not isinstance(error, TirliteError) or isinstance(error, InternalError):
            return
        from tirlite.show import full_traceback

        if not full_traceback():
            # Python raises the error again with the frames that it then has, and adds those of the callers.
            error.__traceback__ = None
            error.__suppress_context__ = True


boundary = Boundary()


def public(function: Callable[P, R]) -> Callable[P, R]:
    """The function with a boundary around its body: a decorator for those that do not look at their caller's frame."""

    @wraps(function)
    def bounded(*args: P.args, **named: P.kwargs) -> R:
        with boundary:
            return function(*args, **named)

    return bounded
