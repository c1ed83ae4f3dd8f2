"""Finds the definitions and uses, in program order, that do not fit together.

A definition holds to the end of its block, and every use stands in such a stretch. One statement object may stand
several times in a program, even in one block (an unrolled body): then it defines its name afresh each time. Otherwise
a name is not defined again while it is defined. A name that an inner block defines again has gone after that block.
"""

from __future__ import annotations

from tirlite.diag import Message, Span
from tirlite.ir.expr import Buffer, Var
from tirlite.ir.node import Node
from tirlite.ir.validate_buffers import UndeterminedDim
from tirlite.ir.walk import distinct


class Undefined(Message):
    """A variable or buffer is used, and nothing in the function defines it.

    Example: `Store(y, (i,), v)` with a `Var("i")` of its own making.
    Fix: Use the object that the loop, the `Let` or the parameters define: names alone make no identity.
    """

    code = "undefined"
    title = "{kind} `{name}` is used, and nothing defines it"

    kind: str
    name: str


class UsedBeforeDefinition(Message):
    """A variable or buffer is used by a statement before the one that defines it.

    Example: A `Load` of a buffer ahead of its `Allocate`.
    Fix: Put the definition first.
    """

    code = "used-before-definition"
    title = "{kind} `{name}` is used before it is defined"
    related_label = "defined here"

    kind: str
    name: str


class OutOfScope(Message):
    """A variable or buffer is used behind the end of the block that defines it.

    Example: A `Load` behind a loop of a buffer that is allocated inside.
    Fix: Move the definition out of the block.
    """

    code = "out-of-scope"
    title = "{kind} `{name}` is used after the end of the block that defines it"
    related_label = "defined here"

    kind: str
    name: str


class DefinedTwice(Message):
    """One object is defined a second time.

    Example: The same `Allocate` statement twice in a row.
    Fix: Make a second object: a buffer and a variable are defined once.
    """

    code = "defined-twice"
    title = "{kind} `{name}` is defined again"
    related_label = "first defined here"

    kind: str
    name: str


def kind_of(name: Var | Buffer) -> str:
    return "variable" if isinstance(name, Var) else "buffer"


class Names:
    """The names that are defined at one point of the program `root`, while a walk goes through it."""

    def __init__(self, root: Node) -> None:
        self._root = root
        self._defined: dict[Var | Buffer, Node] = {}
        self._ever: dict[Var | Buffer, Span | None] = {}
        self._blocks: list[list[Var | Buffer]] = []

    def open(self) -> None:
        """A block begins."""
        self._blocks.append([])

    def close(self) -> None:
        """The innermost block ends, and with it what it defined."""
        for name in self._blocks.pop():
            self._defined.pop(name, None)

    def define(self, name: Var | Buffer, by: Node, span: Span | None) -> Message | None:
        """`name` is defined in the innermost block by the node `by`."""
        earlier = self._defined.get(name)
        if earlier is not None and earlier is not by:
            return DefinedTwice(kind_of(name), name.name, related=self._ever[name])
        self._defined[name] = by
        self._ever[name] = span
        self._blocks[-1].append(name)
        return None

    def use(self, name: Var | Buffer) -> Message | None:
        """`name` is mentioned."""
        if name in self._defined:
            return None
        if name in self._ever:
            return OutOfScope(kind_of(name), name.name, related=self._ever[name])
        later = next((node for node in distinct(self._root) if _defines(node, name)), None)
        if later is None:
            is_dim = isinstance(name, Var) and name.dim is not None
            return UndeterminedDim(name.name) if is_dim else Undefined(kind_of(name), name.name)
        return UsedBeforeDefinition(kind_of(name), name.name, related=getattr(later, "span", None))


def _defines(node: Node, name: Var | Buffer) -> bool:
    return any(getattr(node, field) is name for field in node.DEFINES)
