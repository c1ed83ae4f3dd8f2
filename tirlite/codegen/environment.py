"""Variables and buffers in, the operands that stand for them out."""

from __future__ import annotations

from tirlite.codegen.memory import Place
from tirlite.codegen.types import register_type
from tirlite.ir import Buffer, Var
from tirlite.record import record


@record(guarded=False)
class Named:
    """An LLVM value that outlives its statement: its type, its number in order of definition, and for a pointer the
    pointer to the allocation or parameter that it leads into."""

    kind: str
    number: int
    root: str
    fact: str  # what a function that takes it as a parameter is told of it: an attribute after a blank, or nothing


class Environment:
    """What each variable and buffer is at the point that is being written."""

    def __init__(self) -> None:
        self.variables: dict[Var, str] = {}
        self.places: dict[Buffer, Place] = {}
        self.names: dict[str, Named] = {}  # everything that the operands of those mention
        self.notes: dict[Buffer, str] = {}  # what ends the accesses of a buffer in the loop nest that is open

    def bind(self, var: Var, operand: str, fact: str = "") -> None:
        self.variables[var] = operand
        self.keep(operand, register_type(var.dtype), fact=fact)

    def put(self, place: Place, root: str) -> None:
        """A buffer at a place that leads into the allocation at `root`."""
        self.places[place.buffer] = place
        self.lead(place.pointer, root)
        for number in (*place.strides, *place.extents):
            self.keep(number, "i64")

    def lead(self, pointer: str, root: str) -> None:
        """Says that a pointer leads into the allocation at `root`."""
        self.keep(pointer, "ptr", root)

    def root(self, buffer: Buffer) -> str:
        return self.names[self.places[buffer].pointer].root

    def keep(self, operand: str, kind: str, root: str = "", fact: str = "") -> None:
        """Says that a value is used after its statement, perhaps by another function that the statement is cut into."""
        if operand.startswith("%") and operand not in self.names:
            self.names[operand] = Named(kind, len(self.names), root, fact)
