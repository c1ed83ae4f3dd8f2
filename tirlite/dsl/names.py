"""The names in a function's syntax tree: which there are, which a statement reads and binds, and new ones."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import lru_cache

BODIES = ("body", "orelse")
"""The fields of a statement that hold statements of kernels."""


def names_of(function: ast.FunctionDef) -> set[str]:
    """All names in a function, its parameters among them."""
    return {each.id for each in ast.walk(function) if isinstance(each, ast.Name)} | {
        arg.arg for arg in function.args.args
    }


def fresh(name: str, taken: set[str]) -> str:
    """`name`, or one like it that is not in `taken`, to which it is added."""
    made, number = name, 0
    while made in taken:
        number += 1
        made = f"{name}_{number}"
    taken.add(made)
    return made


def names_in(target: ast.expr) -> list[ast.Name]:
    """The names that a target binds: itself, or those of a tuple."""
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    return [part for part in parts if isinstance(part, ast.Name)]


def assigned_by(node: ast.AST) -> list[str]:
    """The names that an assignment of any kind assigns; none for other nodes, loops among them."""
    targets: Sequence[ast.expr] = ()
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign)) and node.value is not None:
        targets = (node.target,)
    return [name.id for target in targets for name in names_in(target)]


# Functions that kernels call are looked at for each call of them.
_KEPT = 1 << 12


@lru_cache(_KEPT)
def binders(function: ast.FunctionDef) -> tuple[ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For, ...]:
    """The assignments and loops in a function."""
    kinds = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For)
    return tuple(node for node in ast.walk(function) if isinstance(node, kinds))


@lru_cache(_KEPT)
def read_by(stmt: ast.stmt) -> tuple[str, ...]:
    """The names that a statement itself reads, without its bodies, as often as it does."""
    parts = [value for name, value in ast.iter_fields(stmt) if name not in BODIES]
    nodes = [each for part in parts for each in (part if isinstance(part, list) else [part])]
    names = [each for node in nodes if isinstance(node, ast.AST) for each in ast.walk(node)]
    return tuple(name.id for name in names if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load))


def bound_by(node: ast.AST) -> str:
    """The name that a node of any kind binds, of those too that kernels do not have; empty where it binds none."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else ""
    if isinstance(node, ast.alias):
        return node.asname or node.name.partition(".")[0]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        return node.name or ""
    return ""
