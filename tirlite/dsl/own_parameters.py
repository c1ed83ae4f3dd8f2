"""Gives functions that assign a parameter a local of its name, which begins with what the caller gave.

def f(x: tl.f32[n], k: tl.i64):              def f(x: tl.f32[n], k_1: tl.i64):
    while k > 0:                 becomes         k = k_1
        k //= 2                                  while k > 0:
                                                     k //= 2
"""

from __future__ import annotations

import ast
from copy import copy
from dataclasses import field

from tirlite.dsl.expression import Expressions
from tirlite.dsl.local_names import names_in
from tirlite.record import record


@record(eq=False)
class OwnParameters:
    """A function in this form: of each parameter that it assigns, the other name and the first assignment."""

    tree: ast.FunctionDef
    first: dict[str, tuple[str, ast.stmt]] = field(default_factory=dict)


def with_own_parameters(tree: ast.FunctionDef, expressions: Expressions) -> OwnParameters:
    """The function `tree` in this form. Whether a parameter may be assigned, being a number, is told by its value."""
    params = {arg.arg: arg for arg in tree.args.args}
    assigned: set[str] = set()
    taken = set(params)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            taken.add(node.id)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if node.value is not None and not expressions.is_declaration(node.value):
                assigned.update(name.id for target in targets for name in names_in(target) if name.id in params)
    if not assigned:
        return OwnParameters(tree)
    first: dict[str, tuple[str, ast.stmt]] = {}
    for name, arg in params.items():
        if name in assigned:
            other = f"{name}_1"
            while other in taken:
                other += "_1"
            taken.add(other)
            target, value = ast.Name(name, ast.Store()), ast.Name(other, ast.Load())
            stmt = ast.Assign([ast.copy_location(target, arg)], ast.copy_location(value, arg))
            first[name] = other, ast.copy_location(stmt, arg)
    made = copy(tree)
    made.body = [*(stmt for _, stmt in first.values()), *tree.body]
    return OwnParameters(made, first)
