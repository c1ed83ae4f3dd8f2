"""Rows runs each part of the body of a loop for several iterations before the next part, in a loop of its own.

It does what Jam does, for more iterations than are written out, as tiles of sums take: dot products are those that they
take. What an iteration allocates has a row for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.analysis.loops.tiled import products_of
from tirlite.ir.dtype import i64
from tirlite.ir.equal import structural_equal
from tirlite.ir.expr import Add, Buffer, Call, Load, Min, Sub, Var, const
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.rewrite import Rule, rewrite, substitute
from tirlite.ir.stmt import Allocate, For, Let, SeqStmt, Stmt, Store
from tirlite.ir.walk import buffers_of, defined_in, is_steady, mentions, statements_of, walk
from tirlite.record import replace
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.vectors.jam import Jam
from tirlite.rewrite.vectors.lanes import NotVector


class Rows(Jam):
    """Up to so many iterations of a loop at once. The iterations must be independent."""

    def __init__(self, loop: For, most: int) -> None:
        super().__init__(loop.var, 1)
        self.loop, self.most, self.first = loop, most, Var(f"{loop.var.name}.first")
        self.own: dict[Buffer, Buffer] = {}  # what an iteration allocates, and what all do
        self.rows: set[Var] = set()

    def all(self) -> For:
        """The loop over the first ones of so many iterations. Raises NotVector where they do not go in parts."""
        made = self.loop.replaced(var=self.first, step=self.most, body=self.block(self.loop.body))
        if any(name in self.own for node in walk(made) for name in buffers_of(node)) or self.is_torn(made):
            raise NotVector
        return made

    def is_torn(self, made: For) -> bool:
        """Whether a part uses what another one has computed for an iteration."""
        parts = [each for each in statements_of(made.body, For) if each.var in self.rows]
        defined = [(each, defined_in(each.body)) for each in parts]
        return any(mentions(each, names) for each in parts for other, names in defined if other is not each)

    def _block(self, body: SeqStmt) -> SeqStmt:
        made, together = list[Stmt](), list[Stmt]()
        for stmt in body.stmts:
            if isinstance(stmt, Allocate):
                shape = (const(self.most, i64), *stmt.buffer.shape)
                self.own[stmt.buffer] = replace(stmt.buffer, shape=shape, scope="global")
                made.append(stmt.replaced(buffer=self.own[stmt.buffer]))
            elif isinstance(stmt, Let) and not self._differs(stmt.value) and is_steady(stmt.value):
                made.append(stmt)
            elif any(isinstance(node, Allocate) or _is_dot(node) for node in walk(stmt)):
                has_own = any(statements_of(stmt, Allocate))
                # Sums that begin at 0 are said to in the part that they are summed up in.
                begun = [together.pop()] if together and not has_own and _is_zero(together[-1]) else []
                made += self._each(together)
                made += self.statement(stmt) if has_own else self._each([*begun, stmt])
                together = []
            else:
                together.append(stmt)
        return SeqStmt((*made, *self._each(together)))

    def _each(self, stmts: list[Stmt]) -> Iterator[Stmt]:
        """A loop over the iterations around a part."""
        if stmts:
            row = Var(self.loop.var.name)
            self.rows.add(row)

            def moved(node: Load | Store) -> Node:
                wide = self.own.get(node.buffer)
                indices = (folded(Sub(row, self.first)), *node.indices)
                return node if wide is None else node.replaced(buffer=wide, indices=indices)

            rules: dict[type[Node], Rule] = {Load: moved, Store: moved}
            part = rewrite(substitute(SeqStmt(tuple(stmts)), {self.loop.var: row}), rules)
            stop = Min(Add(self.first, const(self.most, i64)), self.loop.stop)
            made = For(row, self.first, stop, part, span=self.loop.span)
            if any(map(_is_dot, walk(part))) and products_of(made) is None:
                raise NotVector
            yield made


def _is_zero(stmt: Stmt) -> bool:
    return isinstance(stmt, Store) and bool(structural_equal(stmt.value, const(0, stmt.value.dtype)))


def _is_dot(node: Node) -> bool:
    return isinstance(node, Call) and node.op is Op.DOT
