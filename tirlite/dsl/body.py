"""Translates a function's syntax tree, given what its parameters stand for, to its body's statements and result."""

from __future__ import annotations

import ast
from collections.abc import Callable

from tirlite.dsl.assignment import Assignments
from tirlite.dsl.cell_types import CellTypes
from tirlite.dsl.expression import Expressions, Invoke
from tirlite.dsl.local_names import Block, local_names
from tirlite.dsl.places import Places
from tirlite.dsl.scope import Scope
from tirlite.dsl.signature import annotated_names
from tirlite.dsl.statement import Statements
from tirlite.dsl.surroundings import Surroundings
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
    ) -> None:
        """`invoker` makes what does the calls, of the scope that takes their statements."""
        self.tree = tree
        self.scope = Scope(surroundings.has)
        self.scope.open(Block())
        params = {arg.arg for arg in tree.args.args}
        self.expressions = Expressions(places, surroundings, self.scope, params, invoker(self.scope))
        self.names = local_names(tree, self.expressions.is_declaration)
        self.assignments = Assignments(self.expressions, self.scope, self.names, types)
        self.dims = {name for name in annotated_names(tree.args.args) if surroundings.has_dim(name)}
        for name in self.dims:
            self.assignments.fix(name, "a dim")
        self.statements = Statements(self.expressions, self.scope, self.names, self.assignments)

    def declare(self, name: str, value: object, what: str, node: ast.AST) -> None:
        """The parameter `name` stands for `value`, and is called `what` where something assigns to it."""
        self.scope.bind(name, value, self.expressions.span(node))
        self.assignments.fix(name, what)

    def steps(self, *, gives_value: bool) -> Steps[SeqStmt]:
        """The statements; the result, where the function `gives_value`, is in `statements.result` after them."""
        self.expressions.local.update(name for name in self.names.kinds if name not in self.dims)
        if gives_value:
            self.statements.returns = tail_returns(self.tree.body, self.expressions.is_static)
        body, _ = yield self.statements.body(self.tree, "body")
        first, _ = self.scope.close()
        return SeqStmt((*first, *body.stmts))


def tail_returns(body: list[ast.stmt], is_static: Callable[[ast.expr], bool]) -> set[ast.Return]:
    """The `return` that ends a body; where an `if tl.static(...)` ends it, those that end its branches."""
    found: set[ast.Return] = set()
    work = [body]
    while work:
        last = next(iter(work.pop()[-1:]), None)
        if isinstance(last, ast.Return):
            found.add(last)
        elif isinstance(last, ast.If) and is_static(last.test):
            work += [last.body, last.orelse]
    return found
