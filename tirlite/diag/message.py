"""A Message is one thing that went wrong: its fields are the values, its class holds the words.

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
from dataclasses import field
from typing import TYPE_CHECKING, ClassVar, Self

from tirlite.diag.error import CallTypeError, GraphError, KernelError, PlanError, TirliteError
from tirlite.record import Parts, Record, dashed

if TYPE_CHECKING:
    from tirlite.diag.source import Span
    from tirlite.show import Styled

_NAMED = re.compile(r"(?<!{){(\w+)")


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
        from tirlite.diag.render import Place, render

        places = tuple(
            Place(span, self.say(label), is_main)
            for span, label, is_main in (
                (self.span, self.label, True),
                (self.related, self.related_label, False),
            )
            if span is not None
        )
        return render(self.code, self.say(self.title), places, self.say(self.help))

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
