"""The names that a misspelt one may have meant."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], most: int = 3) -> str:
    """Up to `most` similar names out of `known`, best first, as "`a`, `b`"; empty where none is similar."""
    from difflib import get_close_matches  # for mistakes alone

    return ", ".join(f"`{match}`" for match in get_close_matches(name, sorted(dict.fromkeys(known)), most))
