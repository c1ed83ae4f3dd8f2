"""Collects what there is to say about a class of messages: its code, its cause, an example, the fix.

The docstring of a message says these, in this form:

    What has happened.

    Example: what leads to it.
    Fix: what to do about it; the help of the message, if it has one and no line says more.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tirlite.diag.error import Message
from tirlite.record import record
from tirlite.show import Piece, Role, Styled

K = TypeVar("K")
_CAUSE, _EXAMPLE, _FIX = "Cause", "Example", "Fix"


@record
class Explanation:
    """What there is to say about one code. `raises` is the name of the error that carries it."""

    code: str
    raises: str
    title: str
    cause: str
    example: str
    fix: str

    def styled(self) -> Styled:
        """The entry for a terminal, without a final newline."""
        pieces = [Piece(self.code, Role.STRONG), Piece(f" ({self.raises})", Role.FAINT), Piece(f"\n\n{self.cause}\n")]
        for name, text in (("Reads", self.title), (_EXAMPLE, self.example), (_FIX, self.fix)):
            pieces += [Piece(f"\n{name}", Role.KEYWORD), Piece(f": {text}")]
        return tuple(pieces)


def entry_of(kind: type[Message]) -> Explanation:
    """The entry of a class. Raises ValueError where its docstring lacks a part."""
    parts: dict[str, list[str]] = {_CAUSE: []}
    name = _CAUSE
    for line in inspect.cleandoc(kind.__doc__ or "").splitlines():
        word, colon, rest = line.partition(": ")
        if colon and word in (_EXAMPLE, _FIX):
            name, line = word, rest
        parts.setdefault(name, []).append(line.strip())
    texts = {each: " ".join(lines).strip() for each, lines in parts.items()}
    if kind.help and _FIX not in texts:
        texts[_FIX] = f"{kind.help[0].upper()}{kind.help[1:]}.".format()
    missing = [each for each in (_CAUSE, _EXAMPLE, _FIX) if not texts.get(each)]
    if missing:
        raise ValueError(f"the docstring of {kind.__name__} lacks its {', '.join(missing).lower()}")
    return Explanation(kind.code, kind.raises.__name__, kind.title, texts[_CAUSE], texts[_EXAMPLE], texts[_FIX])


def entries(kinds: Iterable[type[Message]]) -> dict[str, Explanation]:
    """The entries of these classes by code, in the order of the codes."""
    return {kind.code: entry_of(kind) for kind in sorted(kinds, key=lambda kind: kind.code)}


def with_subclasses(kind: type[K]) -> Iterator[type[K]]:
    """A class and all classes below it, each before those."""
    yield kind
    for each in kind.__subclasses__():
        yield from with_subclasses(each)


def message_kinds() -> list[type[Message]]:
    """All classes of messages of tirlite's own whose modules are loaded, in the order of their codes."""
    kinds = with_subclasses(Message)
    found = [kind for kind in kinds if kind.__module__.startswith("tirlite.") and hasattr(kind, "title")]
    return sorted(found, key=lambda kind: (kind.code, kind.__module__))
