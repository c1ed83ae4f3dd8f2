"""Finds the largest number that any step of straight-line arithmetic can be, from the ranges of its names."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

Range = tuple[int, int]


class UnboundedRange(Exception):
    """A divisor may be zero."""


def largest(lines: Sequence[ast.stmt], known: Mapping[str, Range]) -> int:
    """The largest magnitude of all steps of assignments to names, as `plan.shape.formulas` writes them.

    Raises UnboundedRange where a divisor may be zero.
    """
    found = _Ranges(known)
    for line in lines:
        assert isinstance(line, ast.Assign)
        (target,) = line.targets
        assert isinstance(target, ast.Name)
        found.names[target.id] = found.of(line.value)
    return found.largest


class _Ranges:
    """The ranges of names, and the largest magnitude met."""

    def __init__(self, known: Mapping[str, Range]) -> None:
        self.names = dict(known)
        self.largest = 0

    def of(self, expr: ast.expr) -> Range:
        """The range of an expression. A long sum leans to the left, so operands are taken from there in turn."""
        spine: list[ast.BinOp] = []
        while isinstance(expr, ast.BinOp):
            spine.append(expr)
            expr = expr.left
        low, high = self._note(self._leaf(expr))
        for node in reversed(spine):
            low, high = self._note(_combined(node.op, (low, high), self.of(node.right)))
        return low, high

    def _leaf(self, expr: ast.expr) -> Range:
        if isinstance(expr, ast.Name):
            return self.names[expr.id]
        if isinstance(expr, ast.Constant):
            assert isinstance(expr.value, int)
            return expr.value, expr.value
        if isinstance(expr, ast.UnaryOp):
            assert isinstance(expr.op, ast.USub)
            low, high = self.of(expr.operand)
            return -high, -low
        assert isinstance(expr, ast.Call)
        assert isinstance(expr.func, ast.Name)
        pick = {"max": max, "min": min}[expr.func.id]
        lows, highs = zip(*map(self.of, expr.args), strict=True)
        return pick(lows), pick(highs)

    def _note(self, found: Range) -> Range:
        self.largest = max(self.largest, -found[0], found[1])
        return found


def _combined(op: ast.operator, left: Range, right: Range) -> Range:
    if isinstance(op, ast.Add):
        return left[0] + right[0], left[1] + right[1]
    if isinstance(op, ast.Sub):
        return left[0] - right[1], left[1] - right[0]
    if isinstance(op, ast.Mult):
        corners = [a * b for a in left for b in right]
        return min(corners), max(corners)
    if right[0] <= 0 <= right[1]:
        raise UnboundedRange
    if isinstance(op, ast.FloorDiv):
        corners = [a // b for a in left for b in right]
        return min(corners), max(corners)
    assert isinstance(op, ast.Mod)
    return (0, right[1] - 1) if right[0] > 0 else (right[0] + 1, 0)
