"""Takes the frames around stretches out of lines, and puts a line of carets under each stretch instead."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator

from tirlite.show.styled import Piece, Role, Styled

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
