"""Gives loops and parameters names of their own where the function assigns their names as local scalars as well.

In Python a loop assigns a name as `=` does, and the name keeps its value behind the loop. So where a kernel reads it
there, or uses it for something else too, a loop over `i` becomes one over another name, whose iterations assign `i`:

    i = -1                               i = -1
    for i in range(n):                   for i_1 in range(n):
        if x[i] == key:     becomes          i = i_1
            break                            if x[i] == key:
    y[0] = i                                     break
                                         y[0] = i

And a parameter that is assigned becomes a local, which begins with what the caller gave:

    def f(x: tl.f32[n], k: tl.i64):              def f(x: tl.f32[n], k_1: tl.i64):
        while k > 0:                 becomes         k = k_1
            k //= 2                                  while k > 0:
                                                         k //= 2
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from copy import copy
from dataclasses import field
from typing import TypeVar

from tirlite.dsl.expression import Expressions
from tirlite.dsl.names import BODIES, assigned_by, binders, fresh, names_in, names_of, read_by
from tirlite.ir.trampoline import Steps, run
from tirlite.record import record

Node = TypeVar("Node", bound=ast.AST)


@record(eq=False)
class OwnParameters:
    """A function in this form: of each parameter that it assigns, the other name and the first assignment."""

    tree: ast.FunctionDef
    first: dict[str, tuple[str, ast.stmt]] = field(default_factory=dict)


def with_own_parameters(tree: ast.FunctionDef, expressions: Expressions) -> OwnParameters:
    """The function `tree` in this form. Whether a parameter may be assigned, being a number, is told by its value."""
    assigned = {name for each in binders(tree) if not _declares(each, expressions) for name in assigned_by(each)}
    own = [arg for arg in tree.args.args if arg.arg in assigned]
    if not own:
        return OwnParameters(tree)
    taken = names_of(tree)
    first: dict[str, tuple[str, ast.stmt]] = {}
    for arg in own:
        other = fresh(arg.arg, taken)
        first[arg.arg] = other, _assignment(_placed(ast.Name(arg.arg, ast.Store()), arg), other)
    made = copy(tree)
    made.body = [*(stmt for _, stmt in first.values()), *tree.body]
    return OwnParameters(made, first)


@record(eq=False)
class OwnVariables:
    """A function whose loops have variables of their own; `values` are the assignments of these, with their loops."""

    tree: ast.FunctionDef
    values: dict[ast.stmt, ast.For] = field(default_factory=dict)


def with_own_variables(tree: ast.FunctionDef, expressions: Expressions) -> OwnVariables:
    """The function `tree` in this form."""
    variables = {_variable(each, expressions) for each in binders(tree) if isinstance(each, ast.For)} - {""}
    shared = _shared(tree, variables, expressions) if variables else set()
    if not shared:
        return OwnVariables(tree)
    made = OwnVariables(copy(tree))
    made.tree.body = run(_renamed(tree.body, shared, names_of(tree), expressions, made.values))
    return made


def _variable(loop: ast.For, expressions: Expressions) -> str:
    """The variable of a loop over a range; empty for other loops."""
    over_range = isinstance(loop.iter, ast.Call) and not expressions.is_static(loop.iter)
    return loop.target.id if over_range and isinstance(loop.target, ast.Name) else ""


def _declares(node: ast.AST, expressions: Expressions) -> bool:
    """Whether a node declares a buffer, whose name is no scalar."""
    return (
        isinstance(node, (ast.Assign, ast.AnnAssign))
        and node.value is not None
        and expressions.is_declaration(node.value)
    )


def _shared(tree: ast.FunctionDef, loops: set[str], expressions: Expressions) -> set[str]:
    """Those variables of loops that are assigned or read outside of these loops, and not assigned in them."""
    outside: set[str] = set()
    inside: set[str] = set()
    work: list[tuple[ast.stmt, frozenset[str]]] = [(stmt, frozenset()) for stmt in tree.body]
    while work:
        stmt, around = work.pop()
        stored = set(assigned_by(stmt))
        inside |= stored if _declares(stmt, expressions) else around & stored
        outside |= (stored | set(read_by(stmt))) & loops - around
        within = around
        if isinstance(stmt, ast.For):
            names = {name.id for name in names_in(stmt.target)}
            within = around | names
            if not _variable(stmt, expressions):
                inside |= names
        work += [(each, within) for each in _block(stmt, "body")]
        work += [(each, around) for each in _block(stmt, "orelse")]
    return outside - inside


def _block(stmt: ast.stmt, name: str) -> Sequence[ast.stmt]:
    block = getattr(stmt, name, None)
    return block if isinstance(block, list) else ()


def _renamed(
    stmts: Sequence[ast.stmt],
    shared: set[str],
    taken: set[str],
    expressions: Expressions,
    values: dict[ast.stmt, ast.For],
) -> Steps[list[ast.stmt]]:
    """Statements where the loops over a name in `shared` have names of their own; `values` takes the assignments."""
    made: list[ast.stmt] = []
    for stmt in stmts:
        if not isinstance(stmt, (ast.For, ast.While, ast.If, ast.With)):
            made.append(stmt)
            continue
        other = copy(stmt)
        for name in BODIES:
            if block := _block(stmt, name):
                setattr(other, name, (yield _renamed(block, shared, taken, expressions, values)))
        if isinstance(stmt, ast.For) and isinstance(other, ast.For) and _variable(stmt, expressions) in shared:
            own = fresh(_variable(stmt, expressions), taken)
            assignment = _assignment(stmt.target, own)
            other.target = _placed(ast.Name(own, ast.Store()), stmt.target)
            other.body = [assignment, *other.body]
            values[assignment] = stmt
        made.append(other)
    return made


def _assignment(target: ast.expr, name: str) -> ast.Assign:
    return _placed(ast.Assign([target], _placed(ast.Name(name, ast.Load()), target)), target)


def _placed(node: Node, place: ast.AST) -> Node:
    return ast.copy_location(node, place)
