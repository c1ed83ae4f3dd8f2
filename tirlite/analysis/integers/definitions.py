"""Finds the definition of each variable and view of a function."""

from __future__ import annotations

from typing import TypeAlias

from tirlite.ir.expr import Buffer, Expr, LetExpr, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.stmt import Allocate, AttrStmt, For, Let, SeqStmt, Stmt, Store, View, While
from tirlite.ir.walk import walk
from tirlite.record import record

Loop: TypeAlias = For | While

# What most programs are made of, and what defines neither a variable nor a view.
_LEAVES: frozenset[type[Stmt]] = frozenset((Allocate, Store))


@record
class Definition:
    """What a variable is: the variable of `loop`, or bound to `value`.

    `owner` is the innermost loop around the definition. A `let` inside an expression is not a statement: it is
    evaluated wherever that expression is.
    """

    owner: Loop | None
    value: Expr | None = None
    loop: For | None = None
    is_statement: bool = True


class Definitions:
    """The definitions of a function in normal form, found in one walk over its statements."""

    def __init__(self, func: PrimFunc) -> None:
        self._func = func
        self._found: dict[Var, Definition] = {}
        self._within_expressions: dict[Var, Expr] | None = None
        self.views: dict[Buffer, View] = {}
        self.remarked: set[Buffer] = set()
        self._collect(func.body)

    def of(self, var: Var) -> Definition | None:
        """The definition of a variable; None for what the caller gives."""
        found = self._found.get(var)
        if found is not None or var in self._func.params or var.dim is not None:
            return found
        if self._within_expressions is None:
            self._within_expressions = {e.var: e.value for e in walk(self._func.body) if isinstance(e, LetExpr)}
        value = self._within_expressions.get(var)
        return None if value is None else Definition(None, value, is_statement=False)

    def value(self, expr: Expr) -> Expr:
        """The value of the variable that an expression is, else the expression."""
        named = self.of(expr) if isinstance(expr, Var) else None
        return expr if named is None or named.value is None else named.value

    def path(self, buffer: Buffer) -> tuple[View, ...]:
        """The views that lead from a buffer to the storage that it lies in, from the buffer on."""
        found = []
        while buffer in self.views:
            found.append(self.views[buffer])
            buffer = found[-1].source
        return tuple(found)

    def root(self, buffer: Buffer) -> Buffer:
        """The buffer whose storage this one lies in."""
        path = self.path(buffer)
        return path[-1].source if path else buffer

    def _collect(self, body: SeqStmt) -> None:
        stack: list[tuple[Stmt, Loop | None]] = [(body, None)]
        while stack:
            stmt, owner = stack.pop()
            if isinstance(stmt, SeqStmt):
                if not stmt.kinds <= _LEAVES:
                    stack += [(each, owner) for each in stmt.stmts[::-1] if type(each) not in _LEAVES]
            elif isinstance(stmt, For):
                self._found[stmt.var] = Definition(owner, loop=stmt)
                stack.append((stmt.body, stmt))
            elif isinstance(stmt, Let):
                self._found[stmt.var] = Definition(owner, stmt.value)
            elif isinstance(stmt, View):
                self.views[stmt.buffer] = stmt
            else:
                if isinstance(stmt, AttrStmt) and stmt.buffer is not None:
                    self.remarked.add(stmt.buffer)
                owner = stmt if isinstance(stmt, While) else owner
                stack += [(body, owner) for body in stmt.bodies[::-1]]
