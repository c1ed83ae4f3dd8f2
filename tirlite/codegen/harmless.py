"""An expression in, whether it may be evaluated in vain out."""

from __future__ import annotations

from tirlite.codegen.functions import CHEAP
from tirlite.ir import (
    Binary,
    Broadcast,
    Call,
    Cast,
    Compare,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    LetExpr,
    Ramp,
    Select,
    TruncDiv,
    TruncMod,
    Unary,
    Var,
)

_LARGEST = 12


def is_harmless(expr: Expr) -> bool:
    """Whether evaluating `expr` where the program does not ask for it is unseen and costs about as much as a branch.

    A load might lie outside of its buffer, and divisions and most calls are slow.
    """
    stack: list[Expr] = [expr]
    seen = 0
    while stack:
        node = stack.pop()
        seen += 1
        if seen > _LARGEST or not _is_plain(node):
            return False
        stack.extend(child for child in node.children() if isinstance(child, Expr))
    return True


def _is_plain(node: Expr) -> bool:
    if isinstance(node, Call):
        return node.op in CHEAP
    if isinstance(node, (FloorDiv, FloorMod, TruncDiv, TruncMod)):
        return not node.dtype.is_float and isinstance(node.b, IntImm)
    return isinstance(node, (Var, IntImm, FloatImm, LetExpr, Unary, Binary, Compare, Cast, Select, Ramp, Broadcast))
