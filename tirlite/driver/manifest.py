"""Keeps what a translation found out of a kernel, in front of the cache of code: a later process need not translate.

An entry stands for the text of a function. It holds variants: what was asked of the names around the function, as
tokens, and the parameters, the content and the printed form of the kernel that came of it. A variant serves where the
same names give the same tokens.
"""

from __future__ import annotations

import sys
from _blake2 import blake2b
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

from tirlite.diag import TirliteError
from tirlite.driver.tokens import Token, Tokens, Untold, asked_by, source_token
from tirlite.dsl.lookups import ABSENT, Asked, Lookups
from tirlite.record import record
from tirlite.runtime.cache.entries import find, folder, keep
from tirlite.runtime.cache.stamp import compiler_stamp
from tirlite.runtime.head import Head

if TYPE_CHECKING:
    from tirlite.ir import Permission

# A function that is defined again and again, with other numbers around it, has so many variants.
_MOST_VARIANTS = 8


@record
class Known:
    """What a translation would give, and the names that it would ask for."""

    head: Head
    content: bytes
    text: str
    asked: tuple[str, ...]


def manifest_key(function: FunctionType, granted: Sequence[Permission]) -> bytes | None:
    """The key of a function's entry; None where there is no cache, and for a function without a text."""
    if folder() is None:
        return None
    try:
        told = repr((source_token(function), [each.value for each in granted]))
    except Untold:
        return None
    return blake2b(told.encode("utf-8", "surrogatepass"), key=compiler_stamp(language=True), digest_size=20).digest()


def known(key: bytes, function: FunctionType, frame_locals: Mapping[str, object]) -> Known | None:
    """What is kept under the key and holds for the names as they are now, or None."""
    found = find(key)
    for variant in found if isinstance(found, tuple) else ():
        try:
            tokens, head, content, text = variant
            is_same = _holds(tokens, function, frame_locals)
            plain = Head.of_plain(head) if is_same else None
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, RecursionError, TirliteError):
            return None
        if plain is not None and isinstance(content, bytes) and isinstance(text, str):
            return Known(plain, content, text, tuple(name for name, _, _ in tokens[2]))
    return None


def keep_known(
    key: bytes, function: FunctionType, frame_locals: Mapping[str, object], lookups: Lookups, made: Callable[[], Known]
) -> None:
    """Keeps what a translation has given, unless nobody could tell later whether it still holds."""
    if lookups.is_open:
        return
    try:
        tokens = _tokens(Tokens(asked_by(lookups)), function, frame_locals, _members(lookups))
        told = made()  # takes a good part of a translation's time
        plain = told.head.plain()
    except (Untold, RecursionError):
        return
    if plain is None:
        return
    found = find(key)
    kept = found if isinstance(found, tuple) else ()
    others = [each for each in kept if isinstance(each, tuple) and each[:1] != (tokens,)]
    keep(key, ((tokens, plain, told.content, told.text), *others[: _MOST_VARIANTS - 1]))


def _members(lookups: Lookups) -> dict[tuple[str, str], object]:
    # What is asked of tirlite itself is the same for the same files.
    return {where: value for where, value in sorted(lookups.members.items()) if where[0] != "tirlite"}


def _tokens(
    tokens: Tokens,
    function: FunctionType,
    frame_locals: Mapping[str, object],
    members: Mapping[tuple[str, str], object],
) -> Token:
    annotations = tuple((name, tokens.of(value)) for name, value in function.__annotations__.items())
    names = tuple(tokens.names(function, frame_locals))
    attributes = tuple((*where, tokens.of(value)) for where, value in members.items())
    return annotations, tokens.of(function.__defaults__ or ()), names, attributes


def _holds(kept: Token, function: FunctionType, frame_locals: Mapping[str, object]) -> bool:
    """Whether the names around the function give the tokens that were kept."""

    _, _, names, attributes = kept
    own = [(name, Asked(asked)) for name, asked, _ in names]
    inside = dict(_inline_names([token for *_, token in (*names, *attributes)]))
    members = {(module, name): getattr(sys.modules.get(module), name, ABSENT) for module, name, _ in attributes}

    def asked_of(each: FunctionType) -> Sequence[tuple[str, Asked]]:
        return own if each is function else inside.get(source_token(each), ())

    try:
        return bool(_tokens(Tokens(asked_of), function, frame_locals, members) == kept)
    except Untold:
        return False


def _inline_names(tokens: list[Any]) -> Iterator[tuple[Token, Sequence[tuple[str, Asked]]]]:
    """The names that each inline function in the tokens asks for."""
    while tokens:
        token = tokens.pop()
        if token[0] == "tuple":
            tokens += token[1]
        elif token[0] == "inline":
            yield token[1], [(name, Asked(asked)) for name, asked, _ in token[3]]
            tokens += [inner for *_, inner in token[3]]
