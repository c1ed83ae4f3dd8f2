"""Checks routines, and raises an error that names what is used where it has no value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tirlite.diag import GraphError, Message
from tirlite.graph.explicit.instructions import (
    AllocStorage,
    AllocTensor,
    Body,
    Branch,
    Instruction,
    Invoke,
    InvokeRoutine,
    LetSize,
    ReadSize,
    Routine,
    sizes_in,
    tensor_named,
    tensors_read,
)
from tirlite.ir import Steps, run
from tirlite.sizes import Dim, dims_of
from tirlite.sizes.poly import atom_of


class UnnamedOperand(Message):
    """An instruction of a program with explicit allocation uses what is not there.

    Example: `alloc_tensor(s, ...)` in one branch, where only the other branch allocates `s`.
    Fix: Allocate it before, in the same body or one around it.
    """

    code = "no-such-operand"
    raises = GraphError
    title = "the {kind} `{name}` is not there where `{routine}` uses it"
    help = "allocate it before, in the same body or in one around it"

    kind: str
    name: str
    routine: str


class NamedTwice(Message):
    """Two instructions of a program with explicit allocation give a value to one name.

    Example: Two `alloc_storage` with the name `s`.
    Fix: Each name has one value: take another name.
    """

    code = "named-twice"
    raises = GraphError
    title = "`{routine}` gives `{name}` a value twice"
    help = "each name has one value: take another name"

    name: str
    routine: str


def verify(routines: Sequence[Routine]) -> None:
    """Raises GraphError where a name is used that has no value there, or where one is given a value twice."""
    known: set[str] = set()
    for routine in routines:
        if routine.name in known:
            raise NamedTwice(routine.name, routine.name).error()
        run(_Walk(routine, known).routine())
        known.add(routine.name)


class _Walk:
    """One routine. `taken` are all names so far, `scopes` what each open body has given values to."""

    def __init__(self, routine: Routine, routines: Iterable[str]) -> None:
        self.name = routine.name
        self.of = routine
        self.taken: set[object] = set()
        self.visible: set[tuple[str, object]] = {("routine", name) for name in routines}
        self.scopes: list[list[tuple[str, object]]] = [[]]

    def routine(self) -> Steps[None]:
        for param in self.of.params:
            for name, of in param.leaves:
                self.define("tensor", name)
                for extent in of.shape:
                    self.visible.update(("size", dim) for dim in atom_of(extent, Dim))
        yield self.body(self.of.body)
        self.use("tensor", self.of.results)

    def body(self, body: Body) -> Steps[None]:
        for step in body:
            self.step(step)
            if isinstance(step, Branch):
                for part in (step.then, step.other):
                    self.scopes.append([])
                    yield self.body(part)
                    self.visible.difference_update(self.scopes.pop())

    def step(self, step: Instruction) -> None:
        for size in sizes_in(step):
            self.use("size", dims_of(size))
        self.use("tensor", tensors_read(step))
        if isinstance(step, Invoke):
            self.use("tensor", step.outs)
        if isinstance(step, InvokeRoutine):
            self.use("routine", (step.routine,))
        if isinstance(step, AllocTensor):
            self.use("storage", (step.storage,))
        if isinstance(step, AllocStorage):
            self.define("storage", step.name)
        elif isinstance(step, LetSize | ReadSize):
            self.define("size", step.dim)
        elif (name := tensor_named(step)) is not None:
            self.define("tensor", name)

    def use(self, kind: str, names: Iterable[object]) -> None:
        for name in names:
            if (kind, name) not in self.visible:
                raise UnnamedOperand(kind, _text(name), self.name).error()

    def define(self, kind: str, name: object) -> None:
        if name in self.taken:
            raise NamedTwice(_text(name), self.name).error()
        self.taken.add(name)
        self.visible.add((kind, name))
        self.scopes[-1].append((kind, name))


def _text(name: object) -> str:
    return name.name if isinstance(name, Dim) else str(name)
