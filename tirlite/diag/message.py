"""A Message is one thing that went wrong: its fields are the values, its class holds the words.

A subclass stands beside the code that raises it and gives templates over its own fields:

    @dataclass(frozen=True)
    class UnknownName(Message):
        code = "unknown-name"
        raises = KernelError
        title = "`{name}` is not defined"
        label = "no such name here"
        help = "did you mean `{nearest}`?"

        name: str
        nearest: str

and is raised by `raise UnknownName("colour", "color", span=span).error()`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import ClassVar

from tirlite.diag.error import KernelError, TirliteError
from tirlite.diag.render import Place, render
from tirlite.diag.source import Span


@dataclass(frozen=True)
class Message:
    """One report. `span` is the main place, `related` a second place that explains it."""

    code: ClassVar[str]
    raises: ClassVar[type[TirliteError]] = KernelError
    title: ClassVar[str]
    label: ClassVar[str] = ""
    related_label: ClassVar[str] = ""
    help: ClassVar[str] = ""

    span: Span | None = field(default=None, kw_only=True)
    related: Span | None = field(default=None, kw_only=True)

    def say(self, template: str) -> str:
        """`template` with this message's values in it."""
        return template.format(**{f.name: getattr(self, f.name) for f in fields(self)})

    def __str__(self) -> str:
        """The rendered text: heading, source lines with carets, help."""
        places = tuple(
            Place(span, self.say(label), mark)
            for span, label, mark in (
                (self.span, self.label, "^"),
                (self.related, self.related_label, "-"),
            )
            if span is not None
        )
        return render(self.code, self.say(self.title), places, self.say(self.help))

    def error(self) -> TirliteError:
        """The exception that carries this message."""
        return self.raises(self)
