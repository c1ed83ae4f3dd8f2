"""Translates a function's syntax tree, given what its parameters stand for, to its body's statements and result."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from tirlite.dsl.assignment import Assignments
from tirlite.dsl.cell_types import CellTypes
from tirlite.dsl.convert import is_literal
from tirlite.dsl.expression import Expressions, Invoke
from tirlite.dsl.local_names import Block, local_names
from tirlite.dsl.loops import LeftLoop
from tirlite.dsl.own_names import with_own_parameters, with_own_variables
from tirlite.dsl.places import Places
from tirlite.dsl.scope import Scope
from tirlite.dsl.signature import annotated_names
from tirlite.dsl.statement import Statements, tail_returns
from tirlite.dsl.surroundings import Surroundings
from tirlite.ir.expr import Expr
from tirlite.ir.stmt import SeqStmt
from tirlite.ir.trampoline import Steps


class Body:
    """The body of one function while it is translated: first `declare` its parameters, then take the `steps`."""

    def __init__(
        self,
        tree: ast.FunctionDef,
        places: Places,
        surroundings: Surroundings,
        types: CellTypes,
        invoker: Callable[[Scope], Invoke],
        *,
        gives_value: bool,
    ) -> None:
        """`invoker` makes what does the calls, of the scope that takes their statements."""
        self.scope = Scope(surroundings.has)
        self.scope.open(Block())
        params = {arg.arg for arg in tree.args.args}
        self.expressions = Expressions(places, surroundings, self.scope, params, invoker(self.scope))
        self._own = with_own_parameters(tree, self.expressions)
        own = with_own_variables(self._own.tree, self.expressions)
        tree = own.tree
        left: Mapping[ast.For, LeftLoop] = {}
        if has_jumps(tree.body):
            from tirlite.dsl.jumps import without_jumps

            made = without_jumps(tree, places, self.expressions, gives_value=gives_value)
            tree, left = made.tree, made.left
            self.scope.vouch(made.sure)
        self.tree = tree
        self.gives_value = gives_value
        self.names = local_names(tree, self.expressions.is_declaration)
        self.assignments = Assignments(self.expressions, self.scope, self.names, types)
        self.dims = {name for name in annotated_names(tree.args.args) if surroundings.has_dim(name)}
        for name in self.dims:
            self.assignments.fix(name, "a dim")
        self.statements = Statements(self.expressions, self.scope, self.names, self.assignments, left)
        self.statements.values = own.values
        self.statements.passed_over = {stmt for _, stmt in self._own.first.values()}

    def declare(self, name: str, value: object, what: str, node: ast.AST) -> None:
        """The parameter `name` stands for `value`, and is called `what` where something assigns to it."""
        if name in self._own.first and (isinstance(value, Expr) or is_literal(value)):
            other, stmt = self._own.first[name]
            self.scope.bind(other, value, self.expressions.span(node))
            self.expressions.local.add(other)
            self.statements.passed_over.remove(stmt)
            return
        self.scope.bind(name, value, self.expressions.span(node))
        self.assignments.fix(name, what)

    def steps(self) -> Steps[SeqStmt]:
        """The statements; the result of a function that gives a value is in `statements.result` after them."""
        self.expressions.local.update(name for name in self.names.kinds if name not in self.dims)
        if self.gives_value:
            self.statements.returns = tail_returns(self.tree.body, self.expressions.is_static)
        body, _ = yield self.statements.body(self.tree, "body")
        first, _ = self.scope.close()
        return SeqStmt((*first, *body.stmts))


def has_jumps(body: Sequence[ast.stmt]) -> bool:
    """Whether there is a `break`, a `continue` or a `return` in `body`, but for a `return` as the last statement."""
    work = list(body[:-1] if body and isinstance(body[-1], ast.Return) else body)
    while work:
        stmt = work.pop()
        if isinstance(stmt, ast.Break | ast.Continue | ast.Return):
            return True
        if isinstance(stmt, ast.If | ast.For | ast.While):
            work += stmt.body
            work += stmt.orelse
        elif isinstance(stmt, ast.With):
            work += stmt.body
    return False
