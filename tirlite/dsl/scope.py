"""Keeps the values of names, as they are bound and read in program order, and explains missing ones."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import TypeAlias

from tirlite.diag import Message, Span, TirliteError
from tirlite.dsl.local_names import Suite
from tirlite.ir.dtype import DType, i64, literal_type, promote
from tirlite.ir.expr import Buffer, Load, Var
from tirlite.ir.stmt import Stmt
from tirlite.record import record


class PossiblyUnassigned(Message):
    """A name is read where nothing was assigned to it before, or not on every path.

    Example: `if x[i] > 0: t = 1.0`, and then `y[i] = t`; or `width += 1`, where `width` is a constant from outside.
    Fix: Assign the name before, on every path that leads to its use; or give what is assigned another name.
    """

    title = "`{name}` may have no value here"
    label = "read here"
    help = "{advice}"

    advice: str = "assign it before, on every way that leads here: a loop may run zero times, a branch may not be taken"


class OutOfBlock(Message):
    """A name is read after the block in which it was bound.

    Example: A buffer that is allocated inside of a loop and read after it.
    Fix: Allocate, or assign, before the block.
    """

    title = "`{name}` has no value here: it was bound in a block that has ended"
    label = "read here"
    related_label = "bound here"
    help = "{advice}"


class AlreadyReported(Exception):
    """Raised for a statement that depends on a wrong one, which is reported already."""


# A name, and the line and column of its assignment.
Origin: TypeAlias = tuple[str, int, int]


@record
class Cell:
    """A scalar that changes: a buffer without axes.
    While types of cells are being inferred, a cell that was only assigned literals so far is read as `placeholder`;
    `origin` is its first assignment.
    """

    buffer: Buffer
    placeholder: bool | int | float | None = None
    origin: Origin | None = None


@record
class Wrong:
    """The value of a name that a wrong statement should have bound."""


@record(frozen=False)
class _Frame:
    """A block that is being translated."""

    block: Suite
    stmts: list[Stmt] = field(default_factory=list)
    bound: dict[str, None] = field(default_factory=dict)  # in order
    assigned: list[str] = field(default_factory=list)


class Scope:
    """The names of a kernel at the current point of the translation."""

    def __init__(self, is_outside: Callable[[str], bool]) -> None:
        """`is_outside` tells whether a name also exists outside of the kernel."""
        self._is_outside = is_outside
        self._frames: list[_Frame] = []
        self._values: dict[str, object] = {}
        self._places: dict[str, Span] = {}
        self._gone: dict[str, object] = {}
        self._assigned: set[str] = set()
        self._sure: set[str] = set()

    def vouch(self, names: Iterable[str]) -> None:
        """Declares that these names have a value wherever they are read, even if an analysis of paths cannot see it."""
        self._sure.update(names)

    def open(self, block: Suite) -> None:
        """Begins a block."""
        self._frames.append(_Frame(block))

    def close(self) -> tuple[tuple[Stmt, ...], list[str]]:
        """Ends the innermost block; returns its statements, and the cells that it surely assigns."""
        frame = self._frames.pop()
        for name in frame.assigned:
            self._assigned.discard(name)
        for name in frame.bound:
            self._gone[name] = self._values.pop(name, None)
        return tuple(frame.stmts), [name for name in frame.assigned if name in self._values]

    def add(self, stmt: Stmt) -> None:
        """Adds a statement to the innermost block."""
        self._frames[-1].stmts.append(stmt)

    def bind(self, name: str, value: object, span: Span) -> None:
        """Binds `name` to `value` until the end of the innermost block."""
        self._bind(self._frames[-1], name, value, span)

    def bind_cell(self, name: str, cell: Cell, home: Suite, declaration: Stmt, span: Span) -> None:
        """Binds `name` to a cell until the end of the open block `home`, and adds its declaration there."""
        frame = next(each for each in self._frames if each.block is home)
        frame.stmts.append(declaration)
        self._bind(frame, name, cell, span)

    def settle(self, name: str, cell: Cell) -> None:
        """Replaces the cell called `name` by one whose type is known."""
        self._values[name] = cell

    def bind_wrong(self, name: str, span: Span) -> None:
        """Binds `name` as wrong, if the statement that should have bound it was wrong."""
        if self.cell(name) is not None:
            self.assigned([name])
        elif name not in self._values:
            self.bind(name, Wrong(), span)

    def _bind(self, frame: _Frame, name: str, value: object, span: Span) -> None:
        frame.bound[name] = None
        self._values[name] = value
        self._places[name] = span
        self._assigned.discard(name)

    def assigned(self, names: Iterable[str]) -> None:
        """Declares that these cells have a value from here on."""
        for name in names:
            if name not in self._assigned:
                self._assigned.add(name)
                self._frames[-1].assigned.append(name)

    def cell(self, name: str) -> Cell | None:
        """The cell called `name`, if it is declared."""
        value = self._values.get(name)
        return value if isinstance(value, Cell) else None

    def constant(self, name: str) -> object:
        """The value of the local `name`; None if it has none, or is wrong."""
        return self._values.get(name)

    def read(self, name: str, span: Span) -> object:
        """The value of the local `name` here."""
        value = self._values.get(name)
        if isinstance(value, Wrong):
            raise AlreadyReported
        if isinstance(value, Cell):
            if name not in self._assigned and name not in self._sure:
                raise self.unassigned(name, span)
            return Load(value.buffer, ()) if value.placeholder is None else value.placeholder
        if value is not None:
            return value
        if isinstance(self._gone.get(name), Wrong):
            raise AlreadyReported
        if name not in self._gone:
            raise self.unassigned(name, span)
        raise OutOfBlock(name, _advice(name, self._gone[name]), span=span, related=self._places[name]).error()

    def unassigned(self, name: str, span: Span) -> TirliteError:
        """The error for reading the local `name` where it may have no value."""
        if not self._is_outside(name):
            return PossiblyUnassigned(name, span=span).error()
        rule = "in Python a name that a function assigns is local to all of it"
        remedy = "give one of the two another name, or assign it on every way that leads here"
        advice = f"{rule}, and `{name}` from outside is not meant: {remedy}"
        return PossiblyUnassigned(name, advice, span=span).error()


def _advice(name: str, value: object) -> str:
    if isinstance(value, Buffer):
        return f"allocate `{name}` before that block"
    if isinstance(value, Var) and value.dim is None:
        return f"assign `{name}`, or another name, before that block too"
    return f"assign `{name}` before that block"


@record(frozen=False)
class CellTypes:
    """Infers the types of cells whose first value is a bare literal: the type of their first typed value.
    `total = 0.0` says nothing about the width of `total`, just as a literal in an expression. Integers of less than 64
    bits make it an i64. A function with such cells is translated twice: first `learning` the types, when its mistakes
    do not count, and then with them.
    """

    learning: bool = True
    known: dict[Origin, DType] = field(default_factory=dict)
    undecided: bool = False  # whether there was any such cell

    def begin(self, name: str, literal: bool | int | float, origin: ast.stmt) -> Cell:
        """A new cell whose first value is a literal."""
        own, place = literal_type(literal, None), (name, origin.lineno, origin.col_offset)
        self.undecided = True
        if not self.learning:
            return Cell(Buffer(name, self.known.get(place, own), (), "local"))
        # The placeholder is 1, with which no arithmetic fails.
        return Cell(Buffer(name, own, (), "local"), type(literal)(1), place)

    def settle(self, cell: Cell, given: DType) -> Cell:
        """The cell with its type, when its first typed value, of type `given`, is assigned."""
        assert cell.placeholder is not None
        assert cell.origin is not None
        given = given.scalar
        dtype = promote(literal_type(cell.placeholder, given), given) or given
        if dtype.is_integer and dtype.bits < i64.bits:
            dtype = i64  # as in NumPy's sums, since counts and sums soon exceed narrow types
        self.known.setdefault(cell.origin, dtype)
        return Cell(Buffer(cell.buffer.name, dtype, (), "local"))
