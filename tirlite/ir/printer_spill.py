"""Splits an expression too deep to be read as text into lets for its parts and a shallow expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from tirlite.ir.expr import And, Call, Expr, LetExpr, Or, Var
from tirlite.ir.op import Op
from tirlite.ir.rewrite import rebuild


def spilled(root: Expr, depth: int) -> tuple[list[tuple[Var, Expr]], Expr]:
    """Variables with their values, in the order of evaluation, and `root` in terms of them, each at most `depth` deep.

    What is evaluated only under a condition stays where it is, at any depth.
    """
    lets: list[tuple[Var, Expr]] = []
    results: list[tuple[Expr, int]] = []
    stack: list[tuple[Expr, bool, bool]] = [(root, True, False)]
    while stack:
        expr, always, ready = stack.pop()
        children = cast(tuple[Expr, ...], tuple(expr.children()))
        if not children:
            results.append((expr, 0))
        elif not ready:
            stack.append((expr, always, True))
            sure = _evaluated_always(expr)
            stack.extend((child, always and sure(n), False) for n, child in reversed(list(enumerate(children))))
        else:
            below = results[-len(children) :]
            del results[-len(children) :]
            new: list[Expr] = [child for child, _ in below]
            changed = any(a is not b for a, b in zip(new, children, strict=True))
            made = cast(Expr, rebuild(expr, list(new))) if changed else expr
            height = 1 + max(height for _, height in below)
            if height >= depth and always and expr is not root:
                lets.append((Var("t", made.dtype), made))
                made, height = lets[-1][0], 0
            results.append((made, height))
    return lets, results[0][0]


def _evaluated_always(expr: Expr) -> Callable[[int], bool]:
    """Whether the child of a number is evaluated whenever `expr` is, and means the same outside of it."""
    if isinstance(expr, (And, Or, LetExpr)) or (isinstance(expr, Call) and expr.op is Op.IF_THEN_ELSE):
        return lambda number: number == 0
    return lambda number: True
