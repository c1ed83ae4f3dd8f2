"""Gives variables and buffers their names in printed text: legal, unique, in order of appearance."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Mapping

from tirlite.ir.expr import Buffer, Var
from tirlite.ir.kernel_call import Function
from tirlite.ir.node import Node

# Names with a meaning in the printed text.
_RESERVED = frozenset(keyword.kwlist) | {"tl", "range", "min", "max", "abs", "bool", "int", "float", "print"}


def as_python_reads(name: str) -> str:
    """`name` in the normal form in which Python compares names; ligatures become letters."""
    if name.isascii():
        return name
    from unicodedata import normalize

    return normalize("NFKC", name)


def is_name(name: str) -> bool:
    """Whether `name` is a Python name in normal form."""
    return name == as_python_reads(name) and name.isidentifier() and not keyword.iskeyword(name)


def identifier(name: str) -> str:
    """`name` with `_` for characters that an identifier cannot have; keywords are kept."""
    cleaned = as_python_reads(name)
    if cleaned.isidentifier():
        return cleaned
    cleaned = "".join(each if f"_{each}".isidentifier() else "_" for each in cleaned)
    return cleaned if cleaned.isidentifier() else f"_{cleaned}"


def legal(name: str) -> str:
    """`name` as an identifier without other meaning in the text: `local.A` is `local_A`, `in` is `in_`."""
    cleaned = identifier(name)
    return f"{cleaned}_" if cleaned in _RESERVED else cleaned


class PrintedNames:
    """The names in one printed text.
    A name belongs to one object for the whole text. Only a loop variable releases its name at the end of its loop, for
    use by other loops only. `mark` is a node or a buffer whose text is framed.
    """

    def __init__(self, mark: Node | Buffer | None = None, functions: Mapping[Function, str] | None = None) -> None:
        """`functions`: those printed before, with their names."""
        self.mark = mark
        self.functions = functions or {}
        self._names: dict[Var | Buffer, str] = {}
        self._taken: set[str] = set(self.functions.values())
        self._of_loops: set[str] = set()
        self._next: dict[str, int] = {}

    def of(self, entity: Var | Buffer) -> str:
        """The name of `entity`, which is given one if it has none, as for a use without a definition."""
        known = self._names.get(entity)
        return self._shown(entity, known) if known else self.define(entity)

    def of_function(self, func: Function) -> str:
        """The name of a function that is called."""
        return self.functions.get(func) or legal(func.name)

    def define(self, entity: Var | Buffer) -> str:
        """A new name for `entity`, whose definition is being printed.

        A node that occurs twice in the tree defines its names twice; read back, these are different objects.
        """
        name = self.fresh(entity.name)
        self._names[entity] = name
        return self._shown(entity, name)

    def reserve(self, names: Iterable[str]) -> None:
        """Excludes these names from now on."""
        self._taken.update(names)

    def _shown(self, entity: Var | Buffer, name: str) -> str:
        if entity is not self.mark:
            return name
        from tirlite.show import framed

        return framed(name)

    def fresh(self, wish: str) -> str:
        """An unused name like `wish`."""
        base = name = legal(wish)
        number = self._next.get(base, 0)
        while name in self._taken or name in self._of_loops:
            number += 1
            name = f"{base}_{number}"
        self._next[base] = number
        self._taken.add(name)
        return name

    def open_loop(self, var: Var) -> str:
        """The name of a loop's variable, in use until `close_loop`."""
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
