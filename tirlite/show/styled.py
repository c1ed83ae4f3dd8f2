"""Text in pieces, each with its role, and lines of carets under what is to be marked in it: what renderers give.

`coloured` writes pieces for terminals, `html` for pages."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterable, Iterator
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


# Of Unicode's private use area: what prints a program escapes them inside of texts, so they mean nothing else there.
BEGIN, END = "\ue000", "\ue001"


def framed(text: str) -> str:
    """`text` as a stretch to be marked. Frames may stand in frames."""
    return f"{BEGIN}{text}{END}"


def unframed(text: str) -> str:
    """`text` without its frames."""
    return text.replace(BEGIN, "").replace(END, "")


def carets(line: str) -> str:
    """A line of carets, to stand under `unframed(line)`; empty where nothing is framed."""
    marks, open_frames = "", 0
    for letter in line:
        if letter == BEGIN:
            open_frames += 1
        elif letter == END:
            open_frames -= 1
        else:
            marks += "^" if open_frames else " "
    return marks.rstrip()


def marked_text(text: str, missing: str = "") -> Styled:
    """Python source with carets under what is framed; `missing` stands below it where nothing is."""

    pieces: list[Piece] = []
    for line in text.split("\n"):
        pieces += [*([Piece("\n")] if pieces else []), *python_text(unframed(line))]
        marks = carets(line)
        if marks:
            pieces += [Piece("\n"), Piece(marks, Role.MAIN_MARK)]
    if missing and BEGIN not in text:
        pieces += [Piece("\n"), Piece(missing, Role.FAINT)]
    return tuple(pieces)


# Compiled when first used: most programs print nothing.
_TOKEN = r"""(?P<FAINT>\#[^\n]*)
      | (?P<TEXT>"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)
      | (?P<NUMBER>(?<![\w.])\d[\w.]*(?:(?<=[eE])[+-]\d+)?)
      | (?P<WORD>@?\b[A-Za-z_]\w*(?:\.\w+)*)"""
_KEYWORDS = frozenset(keyword.kwlist)


def python_text(text: str) -> Styled:
    """`text` with its comments, texts, numbers, keywords, and names behind `tl.` told apart."""
    return tuple(_pieces(text))


def _pieces(text: str) -> Iterator[Piece]:
    done = 0
    for token in re.finditer(_TOKEN, text, re.VERBOSE):
        role = _role(token)
        if role is not Role.PLAIN:
            if token.start() > done:
                yield Piece(text[done : token.start()])
            yield Piece(token[0], role)
            done = token.end()
    if done < len(text):
        yield Piece(text[done:])


def _role(token: re.Match[str]) -> Role:
    kind = token.lastgroup or "WORD"
    if kind != "WORD":
        return Role[kind]
    if token[0] in _KEYWORDS:
        return Role.KEYWORD
    return Role.WORD if token[0].startswith(("tl.", "@")) else Role.PLAIN
