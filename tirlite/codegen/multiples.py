"""Finds a power of two that divides the value of an integer expression."""

from __future__ import annotations

from tirlite.ir import Add, Expr, IntImm, Mul, Sub, Var
from tirlite.ir.checked import bare, is_checked

_LARGEST = 1 << 12
_BUDGET = 64


def largest_divisor(expr: Expr) -> int:
    """The greatest power of two up to 4096 that is seen to divide `expr`; powers of two survive wrapping."""
    divisor = _LARGEST
    stack, seen = [expr], 0
    while stack:
        node = stack.pop()
        seen += 1
        if seen > _BUDGET:
            return 1
        if isinstance(node, (Add, Sub)):
            stack += [node.a, node.b]
        elif is_checked(node):
            stack.append(bare(node))
        else:
            divisor = min(divisor, _of_product(node))
    return divisor


def _of_product(expr: Expr) -> int:
    divisor = 1
    stack, seen = [expr], 0
    while stack and seen <= _BUDGET:
        node = stack.pop()
        seen += 1
        if isinstance(node, Mul):
            stack += [node.a, node.b]
        elif isinstance(node, IntImm):
            divisor *= node.value & -node.value or _LARGEST
        elif isinstance(node, Var) and node.dim is not None:
            divisor *= node.dim.multiple_of & -node.dim.multiple_of
    return min(_LARGEST, divisor)
