"""The names that a misspelt one may have meant."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], most: int = 3) -> str:
    """Up to `most` similar names out of `known`, best first, as "`a`, `b`"; empty where none is similar."""
    from difflib import get_close_matches  # for mistakes alone

    names = sorted(dict.fromkeys(known))
    same = [each for each in names if each != name and each.casefold() == name.casefold()]
    close = get_close_matches(name, names, most)
    return ", ".join(f"`{match}`" for match in dict.fromkeys((*same, *close)))
