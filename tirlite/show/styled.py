"""Text in pieces, each with its role: what renderers give, and what becomes plain text, ANSI or HTML."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple, TypeAlias


class Role(Enum):
    """What a piece of text is; how that looks is the business of `ansi` and `html`."""

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
