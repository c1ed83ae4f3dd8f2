"""What every node of the IR is: immutable, compared by identity, with its parts declared once.

A class says in tuples of field names what its fields are, and walking, rewriting, equality and validation follow
from that. A field holds one thing, a tuple of things, or None.

    CHILDREN  nodes below this one, in the order in which they are evaluated or executed
    DEFINES   variables and buffers that begin to exist here
    USES      buffers that are mentioned here
    CALLS     functions that are called here, which no walk enters
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
    FIELDS: ClassVar[tuple[str, ...]] = ()  # all that the constructor takes, in its order

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
        """This node with some fields changed, all others (its span among them) as they are."""
        values = {name: getattr(self, name) for name in self.FIELDS}
        return type(self)(**(values | changes))

    def __str__(self) -> str:
        # What prints nodes knows them all, and so is loaded by its name.
        text: str = import_module("tirlite.ir.printer").text(self)
        return text

    def __repr__(self) -> str:
        # One level only: statements are long.
        data = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.DATA)
        return f"{type(self).__name__}({data})"


N = TypeVar("N", bound=Node)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def node(cls: type[N]) -> type[N]:
    """The class as a record of the IR: frozen, with slots, equal by identity, its fields sorted out."""
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
    """A quicker `Node.children` for the usual classes, given the names and the types of their fields; else None.

    Walking asks each node of a program for its children, and there most of the time goes.
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
