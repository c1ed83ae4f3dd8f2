"""The tree of errors, told apart by who must act. `str(error)` is the whole rendered text."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, Self, TypeVar

if TYPE_CHECKING:
    from tirlite.diag.message import Message
    from tirlite.diag.source import Span
    from tirlite.show import Piece, Styled


class TirliteError(Exception):
    """The base of all errors of tirlite. Carries one message or several, in source order."""

    def __init__(self, *messages: Message) -> None:
        super().__init__(*messages)
        self.messages = messages

    @property
    def code(self) -> str:
        """The code of the first message."""
        return self.messages[0].code

    def at(self, span: Span | None) -> Self:
        """The same error about another place."""
        return type(self)(*(each.replaced(span=span) for each in self.messages))

    def styled(self) -> Styled:
        """The text in pieces with roles: `tirlite.show.write` prints it with colours where the terminal has them."""
        from tirlite.show import Piece

        pieces: list[Piece] = []
        for message in self.messages:
            pieces += [*([Piece("\n\n")] if pieces else []), *message.styled()]
        return tuple(pieces)

    def __str__(self) -> str:
        return "\n\n".join(str(message) for message in self.messages)

    def __repr__(self) -> str:
        """One line for logs: the codes and the first heading."""
        first = str(self).partition("\n")[0]
        more = f" and {len(self.messages) - 1} more" if len(self.messages) > 1 else ""
        return f"<{type(self).__name__} {first}{more}>"

    def _repr_html_(self) -> str:
        from tirlite.show import block

        return block(self.styled())


class KernelError(TirliteError):
    """The kernel is wrong: its author must change it."""


class GraphError(TirliteError):
    """The operator graph is wrong: its author must change it."""


class CallError(TirliteError):
    """The kernel was called wrongly: the caller must change the arguments. Nothing was written."""


class CallTypeError(CallError, TypeError):
    """An argument has the wrong type."""


class CallValueError(CallError, ValueError):
    """An argument has the right type and a wrong value."""


class KernelRunError(TirliteError):
    """A fault of the kernel while it ran: its author or its caller must act."""


class KernelIndexError(KernelRunError, IndexError):
    """An index was out of bounds."""


class KernelAssertionError(KernelRunError, AssertionError):
    """An assert of the kernel did not hold."""


class PlanError(TirliteError, ValueError):
    """A storage problem is ill-formed or has no plan: the planner's client must act."""


class CapacityError(PlanError):
    """The buffers do not fit into their memory."""


class InternalError(TirliteError):
    """An internal error of tirlite: its developers must act."""


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
