"""A Message is one thing that went wrong: its fields are the values, its class holds the words.

A subclass stands beside the code that raises it and gives templates over its own fields:

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

from dataclasses import Field, field
from typing import TYPE_CHECKING, Any, ClassVar, Self, dataclass_transform

from tirlite.diag.error import KernelError, TirliteError

if TYPE_CHECKING:
    from tirlite.diag.source import Span
    from tirlite.show import Styled


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Record:
    """A frozen class whose annotated names are its fields; a class attribute is a field's default.

    What `dataclass` gives, without compiling methods for each class: there are hundreds of messages, and a program that
    raises none would pay for all of them at import.
    """

    POSITIONAL: ClassVar[tuple[str, ...]] = ()
    KEYWORDS: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        members = vars(cls)
        own = [name for name, kind in cls.__annotations__.items() if not kind.startswith("ClassVar")]
        keywords = [name for name in own if isinstance(members.get(name), Field)]
        for name in keywords:
            setattr(cls, name, members[name].default)
            own.remove(name)
        cls.POSITIONAL += tuple(own)
        cls.KEYWORDS += tuple(keywords)

    def __init__(self, *values: Any, **named: Any) -> None:
        kind = type(self)
        names = (*kind.POSITIONAL, *kind.KEYWORDS)
        given = dict(zip(kind.POSITIONAL, values, strict=False)) | named
        missing = [name for name in names if name not in given and not hasattr(kind, name)]
        if missing or len(given) != len(values) + len(named) or not given.keys() <= set(names):
            raise TypeError(f"{kind.__name__} takes {', '.join(names)}; it got {values} and {named}")
        self.__dict__.update((name, given[name] if name in given else getattr(kind, name)) for name in names)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


class Message(Record):
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
