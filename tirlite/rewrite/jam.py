"""Jam writes several iterations of a loop as one: each statement for all of them, before the next one.

Loops inside stay one loop each, so that what they load serves all of these iterations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tirlite.ir import (
    Add,
    Allocate,
    Expr,
    For,
    ForKind,
    IfThenElse,
    Let,
    Node,
    SeqStmt,
    Stmt,
    Store,
    Substitution,
    Var,
    const,
    i64,
    rewrite,
    substitute,
)
from tirlite.rewrite.lanes import NotVector


class Jam:
    """So many iterations of a loop over `var`, from its value on. The iterations must be independent."""

    def __init__(self, var: Var, iterations: int) -> None:
        images: list[Expr] = [var, *(Add(var, const(place, i64)) for place in range(1, iterations))]
        self.copies = [Substitution({var: image}, {}) for image in images]

    def block(self, body: SeqStmt) -> SeqStmt:
        """The body for all iterations. Raises NotVector where loops inside differ, or for other statements."""
        return SeqStmt(tuple(each for stmt in body.stmts for each in self.statement(stmt)))

    def statement(self, stmt: Stmt) -> Iterator[Stmt]:
        if isinstance(stmt, For) and stmt.kind in (ForKind.SERIAL, ForKind.REDUCE, ForKind.UNROLLED):
            variables = self.copies[1].variables
            if substitute(stmt.start, variables) is not stmt.start or substitute(stmt.stop, variables) is not stmt.stop:
                raise NotVector
            yield stmt.replaced(body=self.block(stmt.body))
        elif isinstance(stmt, IfThenElse):
            if substitute(stmt.condition, self.copies[1].variables) is not stmt.condition:
                raise NotVector
            yield stmt.replaced(then_body=self.block(stmt.then_body), else_body=self.block(stmt.else_body))
        elif isinstance(stmt, Allocate | Let | Store):
            yield from (self.copied(stmt, copy, place) for place, copy in enumerate(self.copies))
        else:
            raise NotVector

    def copied(self, stmt: Allocate | Let | Store, copy: Substitution, place: int) -> Stmt:
        """A statement of one of the iterations, with names of its own for what it defines."""
        if place and isinstance(stmt, Allocate):
            copy.buffers[stmt.buffer] = replace(stmt.buffer, shape=copy.shape(stmt.buffer))
        made: Node = rewrite(stmt, copy.rules())
        assert isinstance(made, Stmt)
        if place and isinstance(made, Let):
            var = Var(made.var.name, made.var.dtype)
            copy.variables[made.var] = var
            made = made.replaced(var=var)
        return made
