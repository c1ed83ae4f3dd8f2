"""What needs other things, behind these."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Reversible
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def needs_first(wanted: Iterable[T], needs: Callable[[T], Reversible[T]]) -> list[T]:
    """What is wanted and all that it needs, each once, behind what it needs; nothing needs itself."""
    done: dict[T, None] = {}
    stack = [(each, False) for each in reversed([*wanted])]
    while stack:
        each, is_ready = stack.pop()
        if is_ready:
            done[each] = None
        elif each not in done:
            stack.append((each, True))
            stack += [(one, False) for one in reversed(needs(each)) if one not in done]
    return list(done)
