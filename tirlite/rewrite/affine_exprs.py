"""Writes a sum over loop counters as an index expression in the loops' own variables, and folds constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tirlite.ir import Add, Expr, FloorDiv, FloorMod, For, IntImm, Mul, Neg, Node, Sub, Var, const, i64, rewrite
from tirlite.sizes import Size
from tirlite.sizes.poly import varies
from tirlite.sizes.unknown import Unknown, terms_in

if TYPE_CHECKING:
    from tirlite.analysis.integers.index_space import IndexSpace

N = TypeVar("N", bound=Node)

# Constants below these in magnitude are folded in sums, and in products.
_SMALL = 1 << 40
_SMALL_FACTOR = 1 << 20


def index_expr(value: Size, space: IndexSpace) -> Expr | None:
    """The i64 expression for an affine sum; None if it contains more than loop counters and sizes."""
    terms: dict[Var, Size] = {}
    rest = value
    while moving := terms_in(rest):
        unknown, coefficient = next(iter(moving.items()))
        loop = unknown.owner if isinstance(unknown, Unknown) and unknown.counts else None
        if not isinstance(loop, For) or varies(coefficient):
            return None
        if not isinstance(coefficient, int):
            if loop.step != 1:
                return None
            scale: Size = coefficient
        elif coefficient % loop.step == 0:
            scale = coefficient // loop.step
        else:
            return None
        # The variable is the loop's start plus the counter times its step.
        terms[loop.var] = terms.get(loop.var, 0) + scale
        rest = rest - scale * space.size(loop.var)
        if unknown in terms_in(rest):
            return None
    return _sum(terms, rest, space)


def _sum(terms: dict[Var, Size], constant: Size, space: IndexSpace) -> Expr:
    total: Expr | None = None
    for var, scale in terms.items():
        if scale == 0:
            continue
        is_less = isinstance(scale, int) and scale < 0
        size = -scale if is_less else scale
        part: Expr = var if size == 1 else Mul(space.extents.expr(size), var)
        if total is None:
            total = Neg(part) if is_less else part
        else:
            total = Sub(total, part) if is_less else Add(total, part)
    if total is None:
        return space.extents.expr(constant)
    return shifted(total, constant) if isinstance(constant, int) else Add(total, space.extents.expr(constant))


def shifted(index: Expr, by: int) -> Expr:
    """`index + by`, merged with the constant at the end of `index`."""
    if by == 0:
        return index
    while isinstance(index, Add | Sub) and isinstance(index.b, IntImm) and abs(index.b.value) < _SMALL > abs(by):
        by += index.b.value if isinstance(index, Add) else -index.b.value
        index = index.a
    if isinstance(index, IntImm) and abs(index.value) < _SMALL > abs(by):
        return const(index.value + by, i64)
    if by == 0:
        return index
    if -i64.max <= by < 0:
        return Sub(index, const(-by, i64))
    # Subtracting the least i64 equals adding it, since sums wrap around.
    return Add(index, const(by if by <= i64.max else i64.min, i64))


def folded(root: N) -> N:
    """The same tree with i64 sums, products and quotients of constants computed, as in `i - 1 + 1`."""
    return cast(N, rewrite(root, _RULES))


def _folded_sum(node: Add | Sub) -> Expr:
    if node.dtype != i64:
        return node
    if isinstance(node.b, IntImm):
        is_constant = isinstance(node.a, IntImm) or (isinstance(node.a, Add | Sub) and isinstance(node.a.b, IntImm))
        if is_constant or node.b.value == 0:
            return shifted(node.a, node.b.value if isinstance(node, Add) else -node.b.value)
    if isinstance(node, Add) and isinstance(node.a, IntImm):
        return shifted(node.b, node.a.value)
    return node


def _folded_product(node: Mul) -> Expr:
    a, b = (node.b, node.a) if isinstance(node.a, IntImm) else (node.a, node.b)
    if node.dtype != i64 or not isinstance(b, IntImm):
        return node
    if isinstance(a, IntImm) and abs(a.value) < _SMALL_FACTOR > abs(b.value):
        return const(a.value * b.value, i64)
    return a if b.value == 1 else node


def _folded_part(node: FloorDiv | FloorMod) -> Expr:
    a, b = node.a, node.b
    if node.dtype != i64 or not (isinstance(a, IntImm) and isinstance(b, IntImm) and b.value > 0):
        return node
    return const(a.value // b.value if isinstance(node, FloorDiv) else a.value % b.value, i64)


_RULES: Mapping[type[Node], Callable[[Any], Node]] = {
    Add: _folded_sum,
    Sub: _folded_sum,
    Mul: _folded_product,
    FloorDiv: _folded_part,
    FloorMod: _folded_part,
}
