"""The names in a table of sizes: their texts, facts and values in, what each name stands for out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tirlite.diag import Message, PlanError, nearest
from tirlite.plan.binding import dim_of, refuse_contrary
from tirlite.plan.facts_text import parse_facts
from tirlite.plan.size_text import names_in
from tirlite.record import record
from tirlite.sizes import Dim, Size


class UnknownName(Message):
    """Something is told of a name that no size has.

    Example: `--bind M=4` for a table whose sizes mention `N` alone.
    Fix: Correct the name.
    """

    code = "unknown-dim"
    raises = PlanError
    title = "{what} `{name}`, and no size has such a name"
    help = "the names in sizes are {known}{hint}"

    what: str
    name: str
    known: str
    hint: str


@record
class Names:
    """What the names stand for: in `sizes` dims with their facts, or values; in `plain` any positive integer."""

    plain: Mapping[str, Dim]
    sizes: Mapping[str, Size]


def dims_for(texts: Iterable[str], facts: str | Mapping[str, Dim], bind: Mapping[str, int]) -> Names:
    """A dim for each name in the texts of sizes, with the facts and values that are told of it. Raises PlanError."""
    given = parse_facts(facts) if isinstance(facts, str) else facts
    told = {name: dim for name, each in given.items() if (dim := dim_of(each)) is not None}
    names = dict.fromkeys(name for text in dict.fromkeys(texts) for name in names_in(text))
    free = {name: told.get(name) or Dim(name) for name in names}
    for what, named in (("facts tell of", told), ("a value is given to", bind)):
        for name in named:
            if name not in free:
                raise _unknown(what, name, free).error()
    for name, value in bind.items():
        refuse_contrary(free[name], value)
    sizes: dict[str, Size] = {name: bind.get(name, dim + 0) for name, dim in free.items()}
    return Names({name: Dim(name) for name in free}, sizes)


def _unknown(what: str, name: str, free: Mapping[str, Dim]) -> UnknownName:
    near = nearest(name, free)
    known = ", ".join(f"`{each}`" for each in free) or "none: all are numbers"
    return UnknownName(what, name, known, f"; did you mean {near}?" if near else "")
