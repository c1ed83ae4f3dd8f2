"""Gives loops a variable of their own where the name that they assign is a local scalar of the function as well.

In Python a loop assigns a name as `=` does, and the name keeps its value behind the loop. So where a kernel reads it
there, or uses it for something else too, a loop over `i` becomes one over another name, whose iterations assign `i`:

    i = -1                               i = -1
    for i in range(n):                   for i_1 in range(n):
        if x[i] == key:     becomes          i = i_1
            break                            if x[i] == key:
    y[0] = i                                     break
                                         y[0] = i
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from copy import copy

from tirlite.dsl.expression import Expressions
from tirlite.dsl.local_names import names_in
from tirlite.ir.trampoline import Steps, run
from tirlite.record import record

_BODIES = ("body", "orelse")


@record(eq=False)
class OwnVariables:
    """A function whose loops have variables of their own; `values` are the assignments of these, with their loops."""

    tree: ast.FunctionDef
    values: dict[ast.stmt, ast.For]


def with_own_variables(tree: ast.FunctionDef, expressions: Expressions) -> OwnVariables | None:
    """The function `tree` in this form; None where it is in it already."""
    loops = [
        each.target.id
        for each in ast.walk(tree)
        if isinstance(each, ast.For) and isinstance(each.target, ast.Name) and _goes_over_range(each, expressions)
    ]
    shared = _shared(tree, set(loops), expressions) if loops else set()
    if not shared:
        return None
    taken = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)} | {arg.arg for arg in tree.args.args}
    renaming = _Renaming(shared, taken, expressions)
    made = copy(tree)
    made.body = run(renaming.block(tree.body))
    return OwnVariables(made, renaming.values)


def _goes_over_range(loop: ast.For, expressions: Expressions) -> bool:
    return isinstance(loop.iter, ast.Call) and not expressions.is_static(loop.iter)


def _shared(tree: ast.FunctionDef, loops: set[str], expressions: Expressions) -> set[str]:
    """Those variables of loops that are assigned or read outside of these loops, and not assigned in them."""
    outside: set[str] = set()
    inside: set[str] = set()
    work: list[tuple[ast.stmt, frozenset[str]]] = [(stmt, frozenset()) for stmt in tree.body]
    while work:
        stmt, around = work.pop()
        stored = _assigned(stmt)
        inside |= around & stored
        if isinstance(stmt, (ast.Assign, ast.AnnAssign)) and stmt.value and expressions.is_declaration(stmt.value):
            inside |= stored  # a buffer of that name is something else
        outside |= (stored | _reads(stmt)) & loops - around
        within = around
        if isinstance(stmt, ast.For):
            names = {name.id for name in names_in(stmt.target)}
            within = around | names
            if not (isinstance(stmt.target, ast.Name) and _goes_over_range(stmt, expressions)):
                inside |= names
        work += [(each, within) for each in _block(stmt, "body")]
        work += [(each, around) for each in _block(stmt, "orelse")]
    return outside - inside


def _block(stmt: ast.stmt, field: str) -> Sequence[ast.stmt]:
    block = getattr(stmt, field, None)
    return block if isinstance(block, list) else ()


def _assigned(stmt: ast.stmt) -> set[str]:
    """The names that a statement assigns, loops apart."""
    targets: Sequence[ast.expr] = ()
    if isinstance(stmt, ast.Assign):
        targets = stmt.targets
    elif isinstance(stmt, (ast.AnnAssign, ast.AugAssign)):
        targets = (stmt.target,)
    return {name.id for target in targets for name in names_in(target)}


def _reads(stmt: ast.stmt) -> set[str]:
    """The names that a statement itself reads, without its bodies."""
    parts = [value for name, value in ast.iter_fields(stmt) if name not in _BODIES]
    nodes = [each for part in parts for each in (part if isinstance(part, list) else [part])]
    return {
        name.id
        for node in nodes
        if isinstance(node, ast.AST)
        for name in ast.walk(node)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load)
    }


class _Renaming:
    """The rewriting of one function."""

    def __init__(self, shared: set[str], taken: set[str], expressions: Expressions) -> None:
        self._shared, self._taken, self._expressions = shared, taken, expressions
        self.values: dict[ast.stmt, ast.For] = {}

    def block(self, stmts: Sequence[ast.stmt]) -> Steps[list[ast.stmt]]:
        made = []
        for stmt in stmts:
            made.append((yield self._statement(stmt)))
        return made

    def _statement(self, stmt: ast.stmt) -> Steps[ast.stmt]:
        if not isinstance(stmt, (ast.For, ast.While, ast.If, ast.With)):
            return stmt
        made = copy(stmt)
        for field in _BODIES:
            if block := _block(stmt, field):
                setattr(made, field, (yield self.block(block)))
        is_renamed = isinstance(made, ast.For) and isinstance(made.target, ast.Name) and made.target.id in self._shared
        if is_renamed and isinstance(stmt, ast.For) and _goes_over_range(stmt, self._expressions):
            assert isinstance(made, ast.For)
            target = made.target
            assert isinstance(target, ast.Name)
            own = self._fresh(target.id)
            made.target = ast.copy_location(ast.Name(own, ast.Store()), target)
            value = ast.copy_location(ast.Name(own, ast.Load()), target)
            assignment = ast.copy_location(ast.Assign([target], value), target)
            made.body = [assignment, *made.body]
            self.values[assignment] = stmt
        return made

    def _fresh(self, name: str) -> str:
        number, made = 1, f"{name}_1"
        while made in self._taken:
            number += 1
            made = f"{name}_{number}"
        self._taken.add(made)
        return made
