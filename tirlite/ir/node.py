"""The base class of IR nodes: immutable, compared by identity, with fields classified once.

A class lists its fields in tuples, and walking, rewriting, equality and validation follow from these. A field holds one
value, a tuple of values, or None.

    CHILDREN  nodes below this one, in the order in which they are evaluated or executed
    DEFINES   variables and buffers that are defined here
    USES      buffers that are used here
    CALLS     functions that are called here, which walks do not enter
    DATA      the rest: plain data, compared with ==
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, field
from importlib import import_module
from operator import attrgetter
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

from tirlite.record import parts_of, record


class Node:
    """A node of the IR. Subclasses with fields are made by `@node`."""

    __slots__ = ()
    CHILDREN: ClassVar[tuple[str, ...]] = ()
    DEFINES: ClassVar[tuple[str, ...]] = ()
    USES: ClassVar[tuple[str, ...]] = ()
    CALLS: ClassVar[tuple[str, ...]] = ()
    DATA: ClassVar[tuple[str, ...]] = ()
    FIELDS: ClassVar[tuple[str, ...]] = ()  # the constructor's parameters, in order

    def children(self) -> tuple[Node, ...]:
        """The nodes directly below, in order."""
        found: list[Node] = []
        for name in self.CHILDREN:
            value = getattr(self, name)
            if type(value) is tuple:
                found += value
            elif value is not None:
                found.append(value)
        return tuple(found)

    def replaced(self, **changes: object) -> Self:
        """A copy of this node with some fields changed; all others, including its span, are kept."""
        values = {name: getattr(self, name) for name in self.FIELDS}
        return type(self)(**(values | changes))

    def __str__(self) -> str:
        # Imported by name, as the printer depends on all node classes.
        text: str = import_module("tirlite.ir.printer").text(self)
        return text

    def __repr__(self) -> str:
        # Without children, as statements are long.
        data = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.DATA)
        return f"{type(self).__name__}({data})"


N = TypeVar("N", bound=Node)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def node(cls: type[N]) -> type[N]:
    """Makes the class a record of the IR: frozen, with slots, equal by identity, its fields classified."""
    made = record(eq=False, repr=False)(cls)
    named = {*made.CHILDREN, *made.DEFINES, *made.USES, *made.CALLS, "span"}
    parts = parts_of(made)
    made.FIELDS = tuple(n for n, (_, part) in parts.items() if not isinstance(part, Field) or part.init)
    made.DATA = tuple(name for name in made.FIELDS if name not in named)
    kinds = {name: str(kind) for name, (kind, _) in parts.items()}
    reader = _reader([(name, kinds[name]) for name in made.CHILDREN]) or Node.children
    setattr(made, "children", reader)  # noqa: B010  # a method is not assigned to, says mypy
    return made


def _reader(children: list[tuple[str, str]]) -> Callable[[Any], tuple[Any, ...]] | None:
    """A faster `Node.children` for the usual kinds of fields, given their names and types; else None.

    Walks spend most of their time asking nodes for their children.
    """
    if not children:
        return lambda _: ()
    if any("None" in kind for _, kind in children):
        return None
    are_tuples = [kind.startswith("tuple[") for _, kind in children]
    read: Callable[[Any], Any] = attrgetter(*(name for name, _ in children))
    if are_tuples == [True]:
        return lambda node: read(node)
    if are_tuples == [False]:
        return lambda node: (read(node),)
    if not any(are_tuples):
        return lambda node: read(node)
    if are_tuples == [True, False]:
        several, one = (attrgetter(name) for name, _ in children)
        return lambda node: (*several(node), one(node))
    return None
