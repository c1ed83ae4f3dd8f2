"""The names that a misspelt one may have meant, and the question whether it did."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], most: int = 3) -> str:
    """Up to `most` similar names out of `known`, best first, as "`a`, `b`"; empty where none is similar."""
    from difflib import get_close_matches  # for mistakes alone

    names = sorted(dict.fromkeys(known))
    same = [each for each in names if each != name and each.casefold() == name.casefold()]
    close = get_close_matches(name, names, most)
    return ", ".join(f"`{match}`" for match in dict.fromkeys((*same, *close)))


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Asks "did you mean `a`, `b`?", of similar names; `otherwise` where none is similar."""
    near = nearest(name, known)
    return f"did you mean {near}?" if near else otherwise


def hint(name: str, known: Iterable[str]) -> str:
    """The same behind a semicolon, as the end of a sentence: "; did you mean `a`?"; empty where none is similar."""
    question = did_you_mean(name, known)
    return f"; {question}" if question else ""
