"""Gives variables and buffers their names in printed text: legal, unique, in order of appearance."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Mapping

from tirlite.ir.expr import Buffer, Var
from tirlite.ir.kernel_call import Function
from tirlite.ir.node import Node

# What the printed text needs for itself.
_RESERVED = frozenset(keyword.kwlist) | {"tl", "range", "min", "max", "abs", "bool", "int", "float", "print"}


def as_python_reads(name: str) -> str:
    """`name` in the form in which Python compares names: a ligature is its letters."""
    if name.isascii():
        return name
    from unicodedata import normalize

    return normalize("NFKC", name)


def is_name(name: str) -> bool:
    """Whether Python takes `name` for one, and as it is."""
    return name == as_python_reads(name) and name.isidentifier() and not keyword.iskeyword(name)


def identifier(name: str) -> str:
    """`name` with `_` for all that cannot stand in an identifier; keywords as they are."""
    cleaned = as_python_reads(name)
    if cleaned.isidentifier():
        return cleaned
    cleaned = "".join(each if f"_{each}".isidentifier() else "_" for each in cleaned)
    return cleaned if cleaned.isidentifier() else f"_{cleaned}"


def legal(name: str) -> str:
    """`name` as an identifier that means nothing else in the text: `local.A` is `local_A`, `in` is `in_`."""
    cleaned = identifier(name)
    return f"{cleaned}_" if cleaned in _RESERVED else cleaned


class Names:
    """The names of one printed text.

    A name belongs to one object for the whole text. Only the variable of a loop gives its name back at the end of the
    loop, so that one `i` serves loop after loop; another loop takes it, nothing else.

    `mark` is a node, or a buffer: what it prints as is framed.
    """

    def __init__(self, mark: Node | Buffer | None = None, functions: Mapping[Function, str] | None = None) -> None:
        """`functions` are those that have names already, as they are printed in front."""
        self.mark = mark
        self.functions = functions or {}
        self._names: dict[Var | Buffer, str] = {}
        self._taken: set[str] = set(self.functions.values())
        self._of_loops: set[str] = set()
        self._next: dict[str, int] = {}

    def of(self, entity: Var | Buffer) -> str:
        """The name of `entity`, which gets one now if it has none: a use without a definition is shown too."""
        known = self._names.get(entity)
        return self._shown(entity, known) if known else self.define(entity)

    def of_function(self, func: Function) -> str:
        """The name of a function that is called."""
        return self.functions.get(func) or legal(func.name)

    def define(self, entity: Var | Buffer) -> str:
        """A new name of `entity`, whose definition is printed now.

        A node that stands twice in the tree defines its names twice; read back, those are different things.
        """
        name = self.fresh(entity.name)
        self._names[entity] = name
        return self._shown(entity, name)

    def reserve(self, names: Iterable[str]) -> None:
        """From here on nothing is given one of these names."""
        self._taken.update(names)

    def _shown(self, entity: Var | Buffer, name: str) -> str:
        if entity is not self.mark:
            return name
        from tirlite.show import framed

        return framed(name)

    def fresh(self, wish: str) -> str:
        """A name like `wish` that nothing has or had."""
        base = name = legal(wish)
        number = self._next.get(base, 0)
        while name in self._taken or name in self._of_loops:
            number += 1
            name = f"{base}_{number}"
        self._next[base] = number
        self._taken.add(name)
        return name

    def open_loop(self, var: Var) -> str:
        """The name of a loop's variable, taken until `close_loop`."""
        base = name = legal(var.name)
        number = 0
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        self._of_loops.add(name)
        self._names[var] = name
        return self._shown(var, name)

    def close_loop(self, var: Var) -> None:
        self._taken.discard(self._names.pop(var))
