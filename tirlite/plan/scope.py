"""Reads the rank and the tag of a storage scope from its text."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType

from tirlite.diag import PlanMessage, hint
from tirlite.record import record


class Rank(IntEnum):
    """How far a memory is from the processor; a higher rank is nearer, and belongs to fewer threads."""

    GLOBAL = 0
    SHARED = 1
    WARP = 2
    LOCAL = 3


_RANKS = {rank.name.lower(): rank for rank in Rank}


class UnknownScope(PlanMessage):
    """A storage scope does not exist.

    Example: `Request("a", 4, (0, 2), scope="locl")`.
    Fix: Write a rank, and a tag after it if need be: `local`, `local.UB`.
    """

    title = "there is no storage scope `{scope}`"
    help = "a scope is a rank, one of {ranks}, and perhaps a tag after a dot, as in `local.UB`{hint}"

    scope: str
    hint: str = ""
    ranks: str = ", ".join(f"`{name}`" for name in _RANKS)


@record
class StorageScope:
    """A rank and a tag; equal means the same memory."""

    rank: Rank
    tag: str = ""

    @classmethod
    def parse(cls, text: str) -> StorageScope:
        """The scope that `text` spells, as "global" or "local.UB". Raises PlanError for any other rank or no tag."""
        if (plain := _PLAIN.get(text)) is not None:
            return plain
        name, dot, tag = str(text).partition(".")
        rank = _RANKS.get(name)
        if rank is None or (dot and not tag):
            raise UnknownScope(str(text), hint(name, _RANKS) if rank is None else "").error()
        return cls(rank, tag)

    @property
    def is_special(self) -> bool:
        """Whether this is tagged memory with rules of its own; `dyn` and `workspace` are ordinary."""
        return self.tag not in ("", "dyn", "workspace")

    def __str__(self) -> str:
        name = self.rank.name.lower()
        return f"{name}.{self.tag}" if self.tag else name


# Those without a tag, which most are.
_PLAIN: Mapping[str, StorageScope] = MappingProxyType({name: StorageScope(rank) for name, rank in _RANKS.items()})
