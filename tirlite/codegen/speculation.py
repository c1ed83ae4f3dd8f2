"""Decides which expressions may be speculated: evaluated where the program does not ask for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tirlite.ir import Op, expr as e, walk
from tirlite.sizes import Proof

if TYPE_CHECKING:
    from tirlite.analysis.in_bounds.bounds import Bounds

# The most nodes of a speculated expression, and the number of nodes that a load counts as.
_LARGEST, _LOAD = 12, 4
# Operations that cost about as much as an addition.
_CHEAP = frozenset({Op.ABS, Op.FLOOR, Op.CEIL, Op.TRUNC, Op.ROUND, Op.ISNAN})


def may_be_speculated(expr: e.Expr, bounds: Bounds | None) -> bool:
    """Whether evaluating `expr` unconditionally has no effect and costs about as much as a branch.

    Loads must be proved in bounds by `bounds`; divisions and most calls are too slow.
    """
    stack: list[e.Expr] = [expr]
    seen = 0
    while stack:
        node = stack.pop()
        is_load = isinstance(node, e.Load)
        seen += _LOAD if is_load else 1
        if seen > _LARGEST or not (_is_near(node, bounds) if isinstance(node, e.Load) else _is_plain(node)):
            return False
        if not is_load:
            stack += node.children()
    return True


def _is_plain(node: e.Expr) -> bool:
    if isinstance(node, e.Call):
        return node.op in _CHEAP
    if isinstance(node, (e.FloorDiv, e.FloorMod, e.TruncDiv, e.TruncMod)):
        return not node.dtype.is_float and isinstance(node.b, e.IntImm)
    return isinstance(
        node,
        (e.Var, e.IntImm, e.FloatImm, e.LetExpr, e.Unary, e.Binary, e.Compare, e.Cast, e.Select, e.Ramp, e.Broadcast),
    )


def _is_near(load: e.Load, bounds: Bounds | None) -> bool:
    """Whether a scalar load is proved in bounds and its indices are sums and products of variables and constants."""
    if bounds is None or load.dtype.lanes > 1:
        return False
    if not all(isinstance(node, e.Var | e.IntImm | e.Add | e.Sub | e.Mul) for node in walk(*load.indices)):
        return False
    return all(
        bounds.proof(index, extent) is Proof.YES for index, extent in zip(load.indices, load.buffer.shape, strict=True)
    )
