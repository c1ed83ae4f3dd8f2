"""Finds the types of scalars that change and begin as bare literals: those that their first typed values give them.

`total = 0.0` says nothing about the width of `total`, no more than a literal does in an expression. So the first
assignment of a value with a type decides, but that integers of less than 64 bits make it an i64. A function that has
such scalars is translated twice: once to find the types, once with them.
"""

from __future__ import annotations

import ast
from dataclasses import field

from tirlite.dsl.scope import Cell, Origin
from tirlite.ir.dtype import DType, i64, literal_type, promote
from tirlite.ir.expr import Buffer
from tirlite.record import record


@record(frozen=False)
class CellTypes:
    """The type of each scalar, by its first assignment. While `learning`, mistakes of the function are not its own."""

    learning: bool = True
    known: dict[Origin, DType] = field(default_factory=dict)
    undecided: bool = False  # whether there was any such scalar

    def begin(self, name: str, literal: bool | int | float, origin: ast.stmt) -> Cell:
        """A new cell whose first value is a literal."""
        own, place = literal_type(literal, None), (name, origin.lineno, origin.col_offset)
        self.undecided = True
        if not self.learning:
            return Cell(Buffer(name, self.known.get(place, own), (), "local"))
        # A placeholder of the same kind, with which no arithmetic fails.
        return Cell(Buffer(name, own, (), "local"), type(literal)(1), place)

    def settle(self, cell: Cell, given: DType) -> Cell:
        """`cell` when its first value with a type comes, of type `given`."""
        assert cell.placeholder is not None
        assert cell.origin is not None
        given = given.scalar
        dtype = promote(literal_type(cell.placeholder, given), given) or given
        if dtype.is_integer and dtype.bits < i64.bits:
            dtype = i64  # as NumPy sums them: what counts bytes or adds them up soon leaves their range
        self.known.setdefault(cell.origin, dtype)
        return Cell(Buffer(cell.buffer.name, dtype, (), "local"))
