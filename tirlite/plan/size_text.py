"""Sizes as text: the text of a size over named dims in, the Size out. The inverse of `str(size)`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tirlite.diag import Message, PlanError
from tirlite.sizes import Dim, Size, maximum, minimum

_OPERATORS: Mapping[type[ast.operator], Callable[[Size, Size], Size]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: Mapping[str, Callable[..., Size]] = {"max": maximum, "min": minimum}


@dataclass(frozen=True)
class BadSizeText(Message):
    code = "bad-size-text"
    raises = PlanError
    title = "`{text}` is no size"
    help = "a size is made of integers, the dims {known}, `+ - * // %`, `max` and `min`"

    text: str
    known: str


def parse_size(text: str, dims: Mapping[str, Dim]) -> Size:
    """The size that `text` spells. Nothing is executed. Raises PlanError for anything else than a size over `dims`."""
    try:
        tree = ast.parse(text, mode="eval").body
        return _value(tree, dims)
    except (SyntaxError, KeyError, TypeError, ValueError, RecursionError, MemoryError):
        raise BadSizeText(text, ", ".join(f"`{name}`" for name in dims) or "(none)").error() from None


def _value(tree: ast.expr, dims: Mapping[str, Dim]) -> Size:
    """Evaluate with a stack, as sums may have ten thousand terms: a node is visited before and after its operands."""
    results: list[Size] = []
    stack: list[tuple[ast.expr, bool]] = [(tree, False)]
    while stack:
        node, ready = stack.pop()
        operands = _operands(node)
        if operands and not ready:
            stack.append((node, True))
            stack.extend((operand, False) for operand in reversed(operands))
            continue
        values = results[len(results) - len(operands) :]
        del results[len(results) - len(operands) :]
        results.append(_apply(node, values, dims))
    return results[0]


def _operands(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.BinOp():
            return [node.left, node.right]
        case ast.UnaryOp():
            return [node.operand]
        case ast.Call():
            return node.args
    return []


def _apply(node: ast.expr, values: list[Size], dims: Mapping[str, Dim]) -> Size:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name):
            return dims[name] + 0
        case ast.UnaryOp(op=ast.USub()):
            return -values[0]
        case ast.BinOp(op=op):
            return _OPERATORS[type(op)](*values)
        case ast.Call(func=ast.Name(id=name), keywords=[]) if values:
            return _FUNCTIONS[name](*values)
    raise ValueError("no size")
