"""Jam writes several iterations of a loop as one: each statement for all of them, before the next one.

Loops inside stay one loop each, so that what they load serves all of these iterations; and what is the same in all of
them is done once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tirlite.ir import (
    Add,
    Allocate,
    Buffer,
    Expr,
    For,
    ForKind,
    IfThenElse,
    Let,
    Load,
    Node,
    SeqStmt,
    Stmt,
    Store,
    Substitution,
    Var,
    const,
    i64,
    rewrite,
    statements,
    walk,
)
from tirlite.rewrite.lanes import NotVector


class Jam:
    """So many iterations of a loop over `var`, from its value on. The iterations must be independent."""

    def __init__(self, var: Var, iterations: int) -> None:
        images: list[Expr] = [var, *(Add(var, const(place, i64)) for place in range(1, iterations))]
        self.copies = [Substitution({var: image}, {}) for image in images]
        # What may differ between the iterations.
        self.differing: set[Var | Buffer] = {var}

    def block(self, body: SeqStmt) -> SeqStmt:
        """The body for all iterations. Raises NotVector where loops inside differ, or for other statements."""
        self._find_differing(body)
        return self._block(body)

    def _find_differing(self, body: SeqStmt) -> None:
        """Follows what differs through lets and stores; memory from outside is each iteration's own."""
        stmts = [*statements(body)]
        own = {stmt.buffer for stmt in stmts if isinstance(stmt, Allocate)}
        known = -1
        while known < len(self.differing):
            known = len(self.differing)
            for stmt in stmts:
                if isinstance(stmt, Let) and self._differs(stmt.value):
                    self.differing.add(stmt.var)
                elif isinstance(stmt, Store) and (
                    stmt.buffer not in own or any(map(self._differs, (stmt.value, *stmt.indices)))
                ):
                    self.differing.add(stmt.buffer)

    def _differs(self, expr: Expr) -> bool:
        names = (node.buffer if isinstance(node, Load) else node for node in walk(expr))
        return any(name in self.differing for name in names)

    def _block(self, body: SeqStmt) -> SeqStmt:
        return SeqStmt(tuple(each for stmt in body.stmts for each in self.statement(stmt)))

    def statement(self, stmt: Stmt) -> Iterator[Stmt]:
        if isinstance(stmt, For) and stmt.kind in (ForKind.SERIAL, ForKind.REDUCE, ForKind.UNROLLED):
            if self._differs(stmt.start) or self._differs(stmt.stop):
                raise NotVector
            yield stmt.replaced(body=self._block(stmt.body))
        elif isinstance(stmt, IfThenElse):
            if self._differs(stmt.condition):
                raise NotVector
            then_body, else_body = self._block(stmt.then_body), self._block(stmt.else_body)
            yield stmt.replaced(then_body=then_body, else_body=else_body)
        elif isinstance(stmt, Allocate | Let | Store):
            name = stmt.var if isinstance(stmt, Let) else stmt.buffer
            copies = self.copies if name in self.differing else self.copies[:1]
            yield from (self.copied(stmt, copy, place) for place, copy in enumerate(copies))
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
