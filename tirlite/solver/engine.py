"""Advances the cells of a search by some nodes: the search compiled to native code.

Its procedures take the cells and integers, return nothing, and use what Python and the kernel language have in common.
They become the text of one kernel, with every call replaced by the body of what it calls.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import fields
from types import FunctionType
from typing import TYPE_CHECKING

import numpy as np

from tirlite import driver
from tirlite.dsl import parse
from tirlite.plan.search.cells import NAMES, Array, Cells
from tirlite.plan.search.engine import LARGEST, SLICE
from tirlite.plan.search.rules import advance

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def kernel_text(entry: Callable[..., None], arrays: Sequence[str]) -> str:
    """The source of a kernel that does what `entry` does: its parameters are the arrays of the cells, then its own."""
    assert isinstance(entry, FunctionType)
    names = [argument.arg for argument in _syntax(entry).args.args[1:]]
    params = [f"{name}: tl.i64[length_{name}]" for name in arrays] + [f"{name}: tl.i64" for name in names]
    dims = [f'length_{name} = tl.dim("length_{name}")' for name in arrays]
    body = Splicer(frozenset(arrays)).spliced(entry, [ast.Name(name) for name in names])
    lines = "\n".join(ast.unparse(ast.fix_missing_locations(stmt)) for stmt in body)
    head = f"@tl.kernel\ndef {entry.__name__}({', '.join(params)}):\n"
    return "\n".join(dims) + "\n\n" + head + textwrap.indent(lines, "    ") + "\n"


def _syntax(function: FunctionType) -> ast.FunctionDef:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    return tree


class Splicer:
    """Replaces calls by bodies, with names of their own for the locals of each copy."""

    def __init__(self, arrays: frozenset[str]) -> None:
        self.arrays = arrays
        self.copies = 0

    def spliced(self, function: FunctionType, arguments: Sequence[ast.expr]) -> list[ast.stmt]:
        """The body of `function` for these arguments, after the cells."""
        self.copies += 1
        tree = _syntax(function)
        cells, *params = (argument.arg for argument in tree.args.args)
        aliases, body = _without_aliases(tree.body)
        meanings: dict[str, ast.expr] = {alias: ast.Name(array) for alias, array in aliases.items()}
        for node in ast.walk(ast.Module(body, [])):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                meanings[node.id] = ast.Name(f"{node.id}_{self.copies}")
        head: list[ast.stmt] = []
        for param, argument in zip(params, arguments, strict=True):
            if isinstance(argument, (ast.Name, ast.Constant)):
                meanings[param] = argument
            else:
                meanings[param] = ast.Name(f"{param}_{self.copies}")
                head.append(ast.Assign([meanings[param]], argument))
        rename = _Rename(cells, meanings, function.__globals__)
        return head + [done for stmt in body for done in self._calls_replaced(rename.visit(stmt), function.__globals__)]

    def _calls_replaced(self, stmt: ast.stmt, names: Mapping[str, object]) -> Iterator[ast.stmt]:
        if isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call) and isinstance(stmt.value.func, ast.Name):
            called = names[stmt.value.func.id]
            assert isinstance(called, FunctionType)
            yield from self.spliced(called, stmt.value.args[1:])
            return
        for field in ("body", "orelse"):
            inner = getattr(stmt, field, None)
            if inner:
                setattr(stmt, field, [done for each in inner for done in self._calls_replaced(each, names)])
        yield stmt


def _without_aliases(body: Sequence[ast.stmt]) -> tuple[dict[str, str], list[ast.stmt]]:
    """The locals that stand for arrays of the cells, as in `size, base = s.size, s.base`; and the other statements."""
    aliases: dict[str, str] = {}
    rest: list[ast.stmt] = []
    for stmt in body:
        if isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant):
            continue
        pairs = list(_pairs(stmt))
        for name, value in pairs:
            if isinstance(value, ast.Attribute):
                aliases[name] = value.attr
            else:
                rest.append(ast.Assign([ast.Name(name, ast.Store())], value))
        rest += [] if pairs else [stmt]
    return aliases, rest


def _pairs(stmt: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Name and value of each assignment to a plain name that `stmt` makes."""
    if not isinstance(stmt, ast.Assign):
        return
    target, value = stmt.targets[0], stmt.value
    targets = target.elts if isinstance(target, ast.Tuple) else [target]
    values = value.elts if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) else [value]
    for each, what in zip(targets, values, strict=True):
        if isinstance(each, ast.Name):
            yield each.id, what


class _Rename(ast.NodeTransformer):
    """Gives each name its meaning in the kernel: a local of this copy, an array, or the value of a constant."""

    def __init__(self, cells: str, meanings: Mapping[str, ast.expr], constants: Mapping[str, object]) -> None:
        self.cells = cells
        self.meanings = meanings
        self.constants = constants

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.meanings:
            return deepcopy(self.meanings[node.id])
        value = self.constants.get(node.id)
        return ast.Constant(value) if isinstance(value, int) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id == self.cells:
            return ast.Name(node.attr)
        return node


class CompiledEngine:
    """The engine of `plan.search` as a kernel of our own: the same answers as in Python, a hundred times faster.

    It compiles at its first search, which takes part of a second, and lets other Python threads run.
    """

    slice = SLICE
    largest = LARGEST
    is_parallel = True

    def __init__(self) -> None:
        self.kernel: driver.Kernel = _compiled(kernel_text(advance, NAMES), "search")
        self._others: dict[Callable[..., None], driver.Kernel] = {}

    def array(self, values: Sequence[int], /) -> Array:
        """The values as 64-bit integers, with one cell at least."""
        return np.array(values or [0], np.int64)

    def zeros(self, count: int, /) -> Array:
        return np.zeros(count, np.int64)

    def advance(self, cells: Cells, nodes: int, /) -> None:
        """Goes on for this many nodes, or until the search ends."""
        self.kernel(*(getattr(cells, name) for name in NAMES), nodes)

    def run(self, procedure: Callable[..., None], cells: DataclassInstance, /, *numbers: int) -> None:
        """Compiles the procedure, which takes part of a second, when it is called first."""
        names = [field.name for field in fields(cells)]
        if procedure not in self._others:
            self._others[procedure] = _compiled(kernel_text(procedure, names), procedure.__name__)
        self._others[procedure](*(getattr(cells, name) for name in names), *numbers)


def _compiled(text: str, name: str) -> driver.Kernel:
    """The kernel of this text. Its cells point at each other, so that next to no index of theirs can be proved."""
    return driver.compile(parse(text, name), unchecked=True)
