"""Rules that make expressions shorter, by what is known of integers at a place. Each keeps values and errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import gcd

from tirlite.analysis.integers.index_space import FLIPPED
from tirlite.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BitAnd,
    Call,
    Cast,
    Compare,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mul,
    Neg,
    Not,
    Op,
    Or,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
    TruncDiv,
    TruncMod,
    bool_,
    const,
    i64,
)
from tirlite.rewrite.simplify.place import Place, Written
from tirlite.rewrite.simplify.writer import wrapped, written
from tirlite.sizes import Size
from tirlite.sizes.poly import of_terms, terms_of

ExprRule = Callable[[Expr, Place], Expr]


def converted(node: Expr, place: Place) -> Expr:
    """`tl.i64(tl.i32(i))` with a small `i` is `i`."""
    assert isinstance(node, Cast)
    if isinstance(node.value, Cast) and node.value.value.dtype == node.dtype == i64:
        return computed(node, place)
    if isinstance(node.value, IntImm) and node.dtype.is_integer:
        low, bits = node.dtype.min, node.dtype.bits
        return const((node.value.value - low) % (1 << bits) + low, node.dtype)
    return node.value if node.value.dtype == node.dtype else node


def computed(node: Expr, place: Place) -> Expr:
    """`i * 64 + j - i * 64` is `j`, with `0 <= j < 64` so is `(i * 64 + j) % 64`; `min(i, n)` with `i < n` is `i`."""
    if node.dtype != i64:
        return node
    size = wrapped(place.size(node))
    if not place.covers(size, place.risks[node]):
        return node
    found = written(size, place)
    return node if found is None or found.cost >= place.costs[node] else found.expr


def compared(node: Expr, place: Place) -> Expr:
    """`i + 3 < n + 3` is `i < n`; `i < n` is true where the loop says so."""
    assert isinstance(node, Compare)
    if node.a.dtype != i64:
        return node
    a, b = place.size(node.a), place.size(node.b)
    if not (place.is_exact(a) and place.is_exact(b)):
        return node
    gap = b - a
    answer = None if place.risks[node] else _decided(type(node), gap, place)
    if answer is not None:
        return const(answer, bool_)
    if not place.covers(gap, place.risks[node]):
        return node
    sides = (_equal_sides if isinstance(node, EQ | NE) else _ordered_sides)(type(node), gap, place)
    best = min(sides, key=lambda each: each.cost, default=None)
    return node if best is None or best.cost >= place.costs[node] else best.expr


def _decided(kind: type[Compare], gap: Size, place: Place) -> bool | None:
    """Whether two values that are `gap` apart always compare so, or never; None where that is not known."""
    if kind in (GT, GE):
        return _decided(LT if kind is GT else LE, -gap, place)
    if kind is NE:
        answer = _decided(EQ, gap, place)
        return None if answer is None else not answer
    if kind is EQ:
        if gap == 0:
            return True
        step = gcd(*(factor for product, factor in terms_of(gap).items() if product))
        is_between = step > 1 and terms_of(gap).get((), 0) % step != 0
        return False if is_between or place.proves(gap - 1) or place.proves(-gap - 1) else None
    least = int(kind is LT)
    if place.proves(gap - least):
        return True
    return False if place.proves(least - 1 - gap) else None


def _ordered_sides(kind: type[Compare], gap: Size, place: Place) -> list[Written]:
    """The ways to compare two sums that are `gap` apart, without what is on both sides, or common to all terms."""
    if kind in (GT, GE):
        gap = -gap
    # The sum of the terms is at least this, and then they are as many times the step.
    terms = {product: factor for product, factor in terms_of(gap).items() if product}
    least = int(kind in (LT, GT)) - terms_of(gap).get((), 0)
    if not terms:
        return []
    step = gcd(*terms.values())
    rest = of_terms({product: factor // step for product, factor in terms.items()})
    least = -(-least // step)
    flips = kind in (GT, GE)
    found = [_comparison(GE if flips else LE, rest - least, place, flips=flips)]
    found.append(_comparison(GT if flips else LT, rest - least + 1, place, flips=flips))
    return [each for each in found if each is not None]


def _equal_sides(kind: type[Compare], gap: Size, place: Place) -> list[Written]:
    step = gcd(*terms_of(gap).values())
    found = _comparison(kind, of_terms({p: c // step for p, c in terms_of(gap).items()}), place, flips=False)
    return [] if found is None else [found]


def _comparison(kind: type[Compare], gap: Size, place: Place, *, flips: bool) -> Written | None:
    """`a kind b`, with `gap` from the lesser side to the greater one."""
    more = of_terms({product: factor for product, factor in terms_of(gap).items() if factor > 0})
    less = more - gap
    if not (place.is_exact(more) and place.is_exact(less)):
        return None
    a, b = written(less, place), written(more, place)
    if a is None or b is None:
        return None
    if flips or (kind in (EQ, NE) and isinstance(a.expr, IntImm)):
        a, b = b, a
    return Written(kind(a.expr, b.expr), a.cost + b.cost + 1)


def connected(node: Expr, place: Place) -> Expr:
    """`a and True` is `a`; `i < 8 and i < 4` is `i < 4`."""
    assert isinstance(node, And | Or)
    neutral = int(isinstance(node, And))
    for side, other in ((node.a, node.b), (node.b, node.a)):
        if isinstance(side, IntImm):
            if side.value == neutral:
                return other
            if side is node.a or not place.risks[other]:
                return side
    if place.risks[node]:
        return node
    with place.inside():
        place.assume(node.b, holds=neutral == 1)
        if isinstance(node.a, Compare) and compared(node.a, place) is not node.a:
            answer = compared(node.a, place)
            if isinstance(answer, IntImm) and answer.value == neutral:
                return node.b
    return node


def negated(node: Expr, place: Place) -> Expr:
    """`not i < n` is `i >= n`, on integers."""
    assert isinstance(node, Not)
    inner = node.a
    if isinstance(inner, Not):
        return inner.a
    if isinstance(inner, IntImm):
        return const(not inner.value, bool_)
    if isinstance(inner, Compare) and inner.a.dtype.is_integer and inner.a.dtype.lanes == 1:
        return FLIPPED[type(inner)](inner.a, inner.b)
    return node


def chosen(node: Expr, place: Place) -> Expr:
    """`tl.select(i < n, a, b)` is `a` where `i < n` holds."""
    if isinstance(node, Call):
        if node.op is not Op.IF_THEN_ELSE:
            return node
        condition, if_true, if_false = node.args
    else:
        assert isinstance(node, Select)
        condition, if_true, if_false = node.condition, node.if_true, node.if_false
    if isinstance(condition, IntImm):
        kept, dropped = (if_true, if_false) if condition.value else (if_false, if_true)
        return kept if isinstance(node, Call) or not place.risks[dropped] else node
    is_same = if_true.dtype == i64 and place.size(if_true) == place.size(if_false)
    return if_true if is_same and not place.risks[node] else node


RULES: Mapping[type[Expr], ExprRule] = {
    **dict.fromkeys((Add, Sub, Mul, Neg, ShiftLeft, ShiftRight, BitAnd, Min, Max), computed),
    **dict.fromkeys((FloorDiv, FloorMod, TruncDiv, TruncMod), computed),
    **dict.fromkeys((EQ, NE, LT, LE, GT, GE), compared),
    **dict.fromkeys((And, Or), connected),
    Not: negated,
    Cast: converted,
    **dict.fromkeys((Select, Call), chosen),
}
