"""Makes styled text of Python source. Takes fragments and outlines as they are: nothing has to parse."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator

from tirlite.show.styled import Piece, Role, Styled

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
