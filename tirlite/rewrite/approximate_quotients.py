"""Replaces quotients and square roots of vectors of f32 by products with approximate reciprocals, where that pays.

A division occupies the processor's divider for as long as some twenty other operations take. Where a loop does little
else, an approximate reciprocal by some ten of them is faster; where it does more, the divider works beside the rest.
"""

from __future__ import annotations

from collections.abc import Iterable

from tirlite.analysis.loops.patterns import elements_between
from tirlite.ir.dtype import f32
from tirlite.ir.expr import Binary, Broadcast, Call, Cast, Compare, Div, Expr, FloatImm, Load, Mul, Select, Unary
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.rewrite import rewrite
from tirlite.ir.stmt import AttrKey, AttrStmt, For, Permission, While
from tirlite.ir.walk import accesses_in, defined_in, mentions, nodes_of, statements, statements_of, walk

# In operations of a vector: what a division or a square root takes, and an approximate reciprocal of either.
_QUOTIENT, _ROOT, _APPROXIMATE = 20, 24, 10
# The approximate number of operations of an elementary function.
_FUNCTION = 20


def dividing_loops(allowed: Iterable[AttrStmt]) -> set[For]:
    """The innermost loops over scalars, among those that grants contain, which vectors of reciprocals make faster.

    LLVM loads elements that lie apart faster than vectors here do.
    """
    found: set[For] = set()
    for stmt in allowed:
        if stmt.key is AttrKey.ALLOW and isinstance(stmt.value, tuple) and Permission.APPROXIMATE in stmt.value:
            loops = (loop for loop in statements_of(stmt.body, For) if _divides_most(loop, by_vectors=False))
            found.update(loop for loop in loops if not _lie_apart(loop))
    return found


def with_approximate_quotients(loop: For) -> For:
    """An innermost loop in which vectors are divided by means of approximate reciprocals, if that is faster."""
    if not _divides_most(loop, by_vectors=True):
        return loop
    result = rewrite(loop, {Div: _product})
    assert isinstance(result, For)
    return result


def _divides_most(loop: For, *, by_vectors: bool) -> bool:
    """Whether quotients take most of the time of a loop that has no others inside, and is vectorized or may be."""
    if any(isinstance(stmt, For | While) for stmt in statements(loop.body)):
        return False
    changing = defined_in(loop)
    quotients = [
        node
        for node in nodes_of((loop.body,), Div)
        if (_is_slow(node) if by_vectors else node.dtype == f32 and mentions(node.b, changing))
    ]
    roots = sum(len(_roots(each.b)) for each in quotients)
    takes = _QUOTIENT * len(quotients) + _ROOT * roots
    # Other square roots go through the divider, beside all else.
    all_roots = (
        each for each in nodes_of((loop.body,), Call) if _is_root(each) and by_vectors == (each.dtype.lanes > 1)
    )
    stay = _ROOT * (len([*all_roots]) - roots)
    others = sum(_operations(node, by_vectors) for node in walk(loop.body))
    return max(stay, others + _APPROXIMATE * (len(quotients) + roots)) < stay + takes


def _lie_apart(loop: For) -> bool:
    """Whether an iteration accesses an element that is not beside the last one's, nor the same."""
    return any(elements_between(each, loop.var) not in {0, 1} for each in accesses_in(*loop.body.stmts))


def _is_slow(node: Div) -> bool:
    """Whether a quotient goes through the divider lane by lane."""
    return node.dtype.lanes > 1 and node.dtype.scalar == f32 and not isinstance(node.b, Broadcast)


def _roots(divisor: Expr) -> list[Call]:
    """The square roots that are the divisor or its factors."""
    factors = (divisor.a, divisor.b) if isinstance(divisor, Mul) else (divisor,)
    return [each for each in factors if isinstance(each, Call) and _is_root(each)]


def _is_root(call: Call) -> bool:
    return call.op is Op.SQRT and call.dtype.scalar == f32


def _operations(node: Node, by_vectors: bool) -> int:
    """The operations that a vector takes beside quotients, and their square roots; of scalars, those on floats."""
    if not isinstance(node, Binary | Unary | Compare | Call | Cast | Select | Load):
        return 0
    if isinstance(node, Div) or (isinstance(node, Call) and node.op is Op.SQRT):
        return 0
    if node.dtype.lanes == 1 if by_vectors else not node.dtype.is_float:
        return 0
    return _FUNCTION if isinstance(node, Call) and node.op.takes_fast else 1


def _product(node: Div) -> Expr:
    if not _is_slow(node):
        return node
    inverse, by = _inverse(node.b), node.a.value if isinstance(node.a, Broadcast) else node.a
    return inverse if isinstance(by, FloatImm) and by.value == 1 else Mul(node.a, inverse)


def _inverse(divisor: Expr) -> Expr:
    if not _roots(divisor):
        return Call(divisor.dtype, Op.FAST_RECIPROCAL, (divisor,))
    if isinstance(divisor, Mul):
        return Mul(_inverse(divisor.a), _inverse(divisor.b))
    assert isinstance(divisor, Call)
    return Call(divisor.dtype, Op.FAST_RSQRT, divisor.args)
