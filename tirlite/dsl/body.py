"""Translates the body of a function's syntax tree, given the values of its parameters.

Loops and parameters get variables of their own if the function also assigns their names as local scalars. In Python a
loop assigns its variable as `=` does, and the variable keeps its value after the loop. So if a kernel reads it there,
or uses the name otherwise, a loop over `i` becomes one over another name, whose iterations assign `i`:

    i = -1                               i = -1
    for i in range(n):                   for i_1 in range(n):
        if x[i] == key:     becomes          i = i_1
            break                            if x[i] == key:
    y[0] = i                                     break
                                         y[0] = i

And a parameter that is assigned becomes a local, initialised with the argument:

    def f(x: tl.f32[n], k: tl.i64):              def f(x: tl.f32[n], k_1: tl.i64):
        while k > 0:                 becomes         k = k_1
            k //= 2                                  while k > 0:
                                                         k //= 2
"""

from __future__ import annotations

import ast
from ast import copy_location
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import field
from functools import lru_cache

from tirlite.dsl.assignment import Assignments
from tirlite.dsl.convert import is_literal
from tirlite.dsl.expression import Expressions, Invoke
from tirlite.dsl.local_names import BODIES, KEPT, Suite, assigned_by, binders, local_names, names_in, names_of, read_by
from tirlite.dsl.loops import LeftLoop
from tirlite.dsl.scope import CellTypes, Scope
from tirlite.dsl.signature import annotated_names
from tirlite.dsl.statement import Statements, tail_returns
from tirlite.dsl.surroundings import Surroundings
from tirlite.dsl.syntax import SourceMap
from tirlite.ir.expr import Expr
from tirlite.ir.stmt import SeqStmt
from tirlite.ir.trampoline import Steps, run
from tirlite.names import UniqueNames
from tirlite.record import record


class Body:
    """The translation of one function's body: first `declare` its parameters, then run the `steps`."""

    def __init__(
        self,
        tree: ast.FunctionDef,
        origin: SourceMap,
        surroundings: Surroundings,
        types: CellTypes,
        invoker: Callable[[Scope], Invoke],
        *,
        gives_value: bool,
    ) -> None:
        """`invoker` makes the object that translates calls, given the scope that receives their statements."""
        self.scope = Scope(surroundings.has)
        self.scope.open(Suite())
        params = {arg.arg for arg in tree.args.args}
        self.expressions = Expressions(origin, surroundings, self.scope, params, invoker(self.scope))
        declarations = _declarations(tree, self.expressions)
        self._own = with_own_parameters(tree, declarations)
        own = with_own_variables(self._own.tree, declarations, _ranges(self._own.tree, self.expressions))
        tree = own.tree
        left: Mapping[ast.For, LeftLoop] = {}
        if has_jumps(tree.body):
            from tirlite.dsl.jumps import without_jumps

            made = without_jumps(tree, origin, self.expressions, gives_value=gives_value)
            tree, left = made.tree, made.left
            self.scope.vouch(made.sure)
        self.tree = tree
        self.gives_value = gives_value
        self.names = local_names(tree, declarations)
        self.assignments = Assignments(self.expressions, self.scope, self.names, types)
        self.dims = {name for name in annotated_names(tree.args.args) if surroundings.has_dim(name)}
        for name in self.dims:
            self.assignments.fix(name, "a dim")
        self.statements = Statements(self.expressions, self.scope, self.names, self.assignments, left)
        self.statements.values = own.values
        self.statements.passed_over = {stmt for _, stmt in self._own.first.values()}

    def declare(self, name: str, value: object, what: str, node: ast.AST) -> None:
        """Binds the parameter `name` to `value`; `what` describes it in messages about assignments to it."""
        if name in self._own.first and (isinstance(value, Expr) or is_literal(value)):
            other, stmt = self._own.first[name]
            self.scope.bind(other, value, self.expressions.span(node))
            self.expressions.local.add(other)
            self.statements.passed_over.remove(stmt)
            return
        self.scope.bind(name, value, self.expressions.span(node))
        self.assignments.fix(name, what)

    def steps(self) -> Steps[SeqStmt]:
        """Translates the statements; the result of a function with a value is in `statements.result` afterwards."""
        self.expressions.local.update(name for name in self.names.kinds if name not in self.dims)
        if self.gives_value:
            self.statements.returns = tail_returns(self.tree.body, self.expressions.is_static)
        body, _ = yield self.statements.body(self.tree, "body")
        first, _ = self.scope.close()
        return SeqStmt((*first, *body.stmts))


def has_jumps(body: Sequence[ast.stmt]) -> bool:
    """Whether `body` contains `break`, `continue` or `return`, other than a `return` at its end."""
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


def _declarations(tree: ast.FunctionDef, expressions: Expressions) -> frozenset[ast.expr]:
    """The calls in assignments of `tree` that declare buffers, whose names are not scalars."""
    values = (each.value for each in binders(tree) if isinstance(each, (ast.Assign, ast.AnnAssign)))
    return frozenset(each for each in values if each is not None and expressions.is_declaration(each))


def _ranges(tree: ast.FunctionDef, expressions: Expressions) -> frozenset[ast.For]:
    """The loops of `tree` that remain loops: those over ranges."""
    loops = (each for each in binders(tree) if isinstance(each, ast.For) and isinstance(each.target, ast.Name))
    return frozenset(each for each in loops if isinstance(each.iter, ast.Call) and not expressions.is_static(each.iter))


@record(eq=False)
class OwnParameters:
    """A function in this form: for each parameter that it assigns, the local's name and the first assignment."""

    tree: ast.FunctionDef
    first: Mapping[str, tuple[str, ast.stmt]] = field(default_factory=dict)


@lru_cache(KEPT)
def with_own_parameters(tree: ast.FunctionDef, declarations: frozenset[ast.expr]) -> OwnParameters:
    """The function `tree` in this form. Whether a parameter is an assignable number is known by its value later."""
    assigned = {name for each in binders(tree) if not _declares(each, declarations) for name in assigned_by(each)}
    own = [arg for arg in tree.args.args if arg.arg in assigned]
    if not own:
        return OwnParameters(tree)
    names = UniqueNames(names_of(tree))
    first: dict[str, tuple[str, ast.stmt]] = {}
    for arg in own:
        other = names.unique(arg.arg)
        first[arg.arg] = other, _assignment(copy_location(ast.Name(arg.arg, ast.Store()), arg), other)
    made = copy(tree)
    made.body = [*(stmt for _, stmt in first.values()), *tree.body]
    return OwnParameters(made, first)


@record(eq=False)
class OwnVariables:
    """A function whose loops have their own variables; `values` maps the assignments from these to their loops."""

    tree: ast.FunctionDef
    values: dict[ast.stmt, ast.For] = field(default_factory=dict)


@lru_cache(KEPT)
def with_own_variables(
    tree: ast.FunctionDef, declarations: frozenset[ast.expr], ranges: frozenset[ast.For]
) -> OwnVariables:
    """The function `tree` in this form."""
    variables = {_variable(each) for each in ranges}
    shared = _shared(tree, variables, declarations, ranges) if variables else set()
    if not shared:
        return OwnVariables(tree)
    own = {loop for loop in ranges if _variable(loop) in shared}
    made = OwnVariables(copy(tree))
    made.tree.body = run(_renamed(tree.body, own, UniqueNames(names_of(tree)), made.values))
    return made


def _variable(loop: ast.For) -> str:
    assert isinstance(loop.target, ast.Name)
    return loop.target.id


def _declares(node: ast.AST, declarations: frozenset[ast.expr]) -> bool:
    """Whether a node declares a buffer, whose name is not a scalar."""
    return isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value in declarations


def _shared(
    tree: ast.FunctionDef, variables: set[str], declarations: frozenset[ast.expr], ranges: frozenset[ast.For]
) -> set[str]:
    """The loop variables that are assigned or read outside of their loops, and not assigned in them."""
    outside: set[str] = set()
    inside: set[str] = set()
    work: list[tuple[ast.stmt, frozenset[str]]] = [(stmt, frozenset()) for stmt in tree.body]
    while work:
        stmt, around = work.pop()
        stored = set(assigned_by(stmt))
        inside |= stored if _declares(stmt, declarations) else around & stored
        outside |= (stored | set(read_by(stmt))) & variables - around
        within = around
        if isinstance(stmt, ast.For):
            names = {name.id for name in names_in(stmt.target)}
            within = around | names
            if stmt not in ranges:
                inside |= names
        work += [(each, within) for each in _block(stmt, "body")]
        work += [(each, around) for each in _block(stmt, "orelse")]
    return outside - inside


def _block(stmt: ast.stmt, name: str) -> Sequence[ast.stmt]:
    block = getattr(stmt, name, None)
    return block if isinstance(block, list) else ()


def _renamed(
    stmts: Sequence[ast.stmt], own: set[ast.For], names: UniqueNames, values: dict[ast.stmt, ast.For]
) -> Steps[list[ast.stmt]]:
    """The statements with own variables for the loops in `own`; adds their assignments to `values`."""
    made: list[ast.stmt] = []
    for stmt in stmts:
        if not isinstance(stmt, (ast.For, ast.While, ast.If, ast.With)):
            made.append(stmt)
            continue
        other = copy(stmt)
        for part in BODIES:
            if block := _block(stmt, part):
                setattr(other, part, (yield _renamed(block, own, names, values)))
        if isinstance(stmt, ast.For) and isinstance(other, ast.For) and stmt in own:
            name = names.unique(_variable(stmt))
            assignment = _assignment(stmt.target, name)
            other.target = copy_location(ast.Name(name, ast.Store()), stmt.target)
            other.body = [assignment, *other.body]
            values[assignment] = stmt
        made.append(other)
    return made


def _assignment(target: ast.expr, name: str) -> ast.Assign:
    return copy_location(ast.Assign([target], copy_location(ast.Name(name, ast.Load()), target)), target)
