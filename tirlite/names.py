"""Names that are each given once."""

from __future__ import annotations

from collections.abc import Iterable


class UniqueNames:
    """The names that are taken, each with the last number that stands behind it in another."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._last = dict.fromkeys(taken, 0)

    def unique(self, name: str) -> str:
        """The name, from now on taken, with a number behind it where it was taken before."""
        made = name
        while made in self._last:
            self._last[name] += 1
            made = f"{name}_{self._last[name]}"
        self._last[made] = 0
        return made
