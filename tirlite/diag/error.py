"""The tree of errors, told apart by who must act, and the messages that they carry.

A Message is one thing that went wrong: its fields are the values, its class holds the words.

A subclass stands beside the code that raises it and gives templates, whose names are its fields, in order:

    class UnknownName(Message):
        title = "`{name}` is not defined"
        label = "no such name here"
        help = "did you mean `{nearest}`?"

and is raised by `raise UnknownName("colour", "color", span=span).error()`, as a KernelError where no `raises` says
otherwise. Its code is its name, `unknown-name`, where no `code` gives another one. A field is declared that code reads,
that has a default, or that no template names: those declared come last.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, ParamSpec, Self, TypeVar

from tirlite.record import Parts, Record, dashed

if TYPE_CHECKING:
    from tirlite.diag.source import Span
    from tirlite.show import Piece, Styled

_NAMED = re.compile(r"(?<!{){(\w+)")


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


class _Code:
    """The code of a message that has none of its own: its name."""

    def __get__(self, instance: object, owner: type[Message]) -> str:
        return dashed(owner.__name__)


_CODE = _Code()


class Message(Record):
    """One report. `span` is the main place, `related` a second place that explains it."""

    code: ClassVar[str]
    raises: ClassVar[type[TirliteError]] = KernelError
    title: ClassVar[str]
    label: ClassVar[str] = ""
    related_label: ClassVar[str] = ""
    help: ClassVar[str] = ""

    span: Span | None = field(default=None, kw_only=True, repr=False)
    related: Span | None = field(default=None, kw_only=True, repr=False)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "code" not in vars(cls):
            setattr(cls, "code", _CODE)  # noqa: B010

    @classmethod
    def _annotate(cls, inherited: Parts) -> None:
        own = cls.__annotations__
        templates = (cls.title, cls.label, cls.related_label, cls.help) if hasattr(cls, "title") else ()
        named = dict.fromkeys(name for each in templates for name in _NAMED.findall(each))
        cls.__annotations__ = {name: "object" for name in named if name not in inherited and name not in own} | own

    def say(self, template: str) -> str:
        """`template` with this message's values in it."""
        return template.format_map(vars(self))

    def __str__(self) -> str:
        """The rendered text: heading, source lines with carets, help."""
        from tirlite.show import plain

        return plain(self.styled())

    def styled(self) -> Styled:
        """The rendered text in pieces with roles, for terminals and notebooks."""
        from tirlite.diag.render import Annotation, render

        annotations = tuple(
            Annotation(span, self.say(label), is_main)
            for span, label, is_main in (
                (self.span, self.label, True),
                (self.related, self.related_label, False),
            )
            if span is not None
        )
        return render(self.code, self.say(self.title), annotations, self.say(self.help))

    def replaced(self, **changes: object) -> Self:
        """This message with some of its values changed."""
        return type(self)(**(vars(self) | changes))

    def error(self) -> TirliteError:
        """The exception that carries this message."""
        return self.raises(self)


class GraphMessage(Message):
    """What is wrong with a graph of operators."""

    raises = GraphError


class PlanMessage(Message):
    """What is wrong with a problem of placing buffers, or a plan."""

    raises = PlanError


class WrongArgument(Message):
    """A function is given something of a kind that it does not take.

    Example: `tl.graph.memory_order(f)`, where `f` is the function of a graph.
    Fix: Give what the message asks for: here `tl.graph.program(f)`.
    """

    code = "argument-kind"
    raises = CallTypeError
    title = "{function}() takes {wanted}, and is given {given}"


def demand_kind(function: str, given: object, kind: type) -> None:
    """Returns if `given` is of this class; raises CallTypeError, which names it, otherwise."""
    # By its type: a class may say anything of `__class__`.
    if not issubclass(type(given), kind):
        raise WrongArgument(function, an(kind.__name__), an(type(given).__name__)).error()


def an(name: str) -> str:
    """A name behind its article, as in "a list" and "an int"."""
    return f"{'an' if name[:1] in 'aeioAEIO' else 'a'} {name}"


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
