"""Text in pieces, each with its role: what renderers give, as plain text and for terminals; see `html` for pages."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple, TextIO, TypeAlias

from tirlite.show.environment import colour_is_forced, colour_is_refused, terminal_is_dumb


class Role(Enum):
    """What a piece of text is; how that looks is told by `coloured` here, and by `html`."""

    PLAIN = "plain"
    ERROR = "error"
    STRONG = "strong"
    FAINT = "faint"
    MAIN_MARK = "main mark"
    RELATED_MARK = "related mark"
    KEYWORD = "keyword"
    WORD = "word"
    NUMBER = "number"
    TEXT = "text"


class Piece(NamedTuple):
    """A stretch of text of one role; may hold several lines."""

    text: str
    role: Role = Role.PLAIN


Styled: TypeAlias = tuple[Piece, ...]


def plain(pieces: Iterable[Piece]) -> str:
    """The text without its roles."""
    return "".join(piece.text for piece in pieces)


# The sixteen colours alone: those a user has chosen to be readable on the background of the terminal.
_CODES = {
    Role.ERROR: "1;31",
    Role.STRONG: "1",
    Role.FAINT: "2",
    Role.MAIN_MARK: "31",
    Role.RELATED_MARK: "34",
    Role.KEYWORD: "35",
    Role.WORD: "36",
    Role.NUMBER: "33",
    Role.TEXT: "32",
}


def wants_colour(stream: TextIO) -> bool:
    """Whether text for `stream` is to be coloured: a terminal's, unless NO_COLOR is set; any, if FORCE_COLOR is."""
    if colour_is_refused():
        return False
    return colour_is_forced() or (stream.isatty() and not terminal_is_dumb())


def coloured(pieces: Iterable[Piece]) -> str:
    """The text with the escape sequences of its colours. None spans the end of a line, so that pagers may cut there."""
    return "".join(_painted(piece) for piece in pieces)


def _painted(piece: Piece) -> str:
    code = _CODES.get(piece.role)
    if code is None:
        return piece.text
    return "\n".join(f"\x1b[{code}m{line}\x1b[0m" if line else "" for line in piece.text.split("\n"))


def write(pieces: Iterable[Piece], stream: TextIO | None = None) -> None:
    """Prints styled text and the end of its line, to standard output unless told otherwise, if there is any."""
    stream = stream or sys.stdout
    if stream is not None:
        print(coloured(pieces) if wants_colour(stream) else plain(pieces), file=stream)
