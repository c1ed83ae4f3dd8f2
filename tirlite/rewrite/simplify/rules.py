"""Rules that shorten expressions by what is known of integers at a point. Each preserves values and errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
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
    For,
    IntImm,
    Max,
    Min,
    Mul,
    Neg,
    Node,
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
from tirlite.ir.size import sum_expr
from tirlite.ir.walk import is_constant
from tirlite.rewrite.simplify.program_point import ProgramPoint, Written
from tirlite.sizes import Size
from tirlite.sizes.extrema import Maximum, Minimum, maximum, minimum
from tirlite.sizes.poly import Atom, Composite, Product, Quotient, Remainder, of_terms, terms_of, varies
from tirlite.sizes.terms import replace
from tirlite.sizes.unknown import Unknown, recombined, terms_in

# Longer sums stay as they are.
_MOST_TERMS = 32


def written(size: Size, point: ProgramPoint) -> Written | None:
    """The shortest expression for a size; None if a part has no name, or might overflow."""
    named = _named(size, point)
    return None if named is None else _shortest(named, point)


def wrapped(size: Size) -> Size:
    """The size with its factors reduced to i64, equal modulo 2**64."""
    terms = {product: (factor - i64.min) % (1 << i64.bits) + i64.min for product, factor in terms_of(size).items()}
    return of_terms({product: factor for product, factor in terms.items() if factor})


def _named(size: Size, point: ProgramPoint) -> Size | None:
    """The size in terms of loop variables instead of counters; None if it contains a fraction of a step."""
    if not varies(size):
        return size
    for atom, factor in terms_in(size).items():
        loop = _loop_of(atom)
        if loop is not None and loop.step != 1 and factor % loop.step == 0:
            start, shown = point.starts[loop]
            size = size + factor // loop.step * (shown - start) - factor * atom
        elif isinstance(atom, Maximum | Minimum) and isinstance(factor, int) and abs(factor) > 1:
            # As `max(16*i, 2)`, `2*max(8*i, 1)` contains no fraction of a step of 16.
            operands = [_named(abs(factor) * operand, point) for operand in atom.operands]
            known = [operand for operand in operands if operand is not None]
            if len(known) == len(operands):
                whole = (maximum if isinstance(atom, Maximum) else minimum)(*known)
                size = size - factor * atom + (whole if factor > 0 else -whole)
    images = {}
    for atom in dict.fromkeys(atom for product in terms_of(size) for atom in product if atom.varies):
        image = _named_atom(atom, point)
        if image is None:
            return None
        images[atom] = terms_of(image)
    return of_terms(replace(terms_of(size), images))


def _named_atom(atom: Atom, point: ProgramPoint) -> Size | None:
    loop = _loop_of(atom)
    if loop is not None:
        start, shown = point.starts[loop]
        first = _named(start, point) if loop.step == 1 else None
        return None if first is None else shown - first
    if not isinstance(atom, Composite):
        return atom + 0
    operands = [_named(operand, point) for operand in atom.operands]
    known = [operand for operand in operands if operand is not None]
    return atom.rebuild(known) if len(known) == len(operands) else None


def _loop_of(atom: Atom) -> For | None:
    return atom.owner if isinstance(atom, Unknown) and atom.counts and isinstance(atom.owner, For) else None


def _shortest(size: Size, point: ProgramPoint) -> Written | None:
    if len(terms_of(size)) > _MOST_TERMS:
        return None
    if size not in point.written:
        whole = recombined(size)
        ways = (_summed(whole, point), _factored(whole, point), _picked_last(whole, point))
        found = [way for way in ways if way is not None]
        point.written[size] = min(found, key=lambda way: way.cost, default=None)
    return point.written[size]


def _written(expr: Expr, point: ProgramPoint) -> Written:
    cost = 0
    todo: list[Node] = [expr]
    while todo:
        node = todo.pop()
        known = point.costs.get(node)
        cost += 1 if known is None else known
        if known is None:
            todo += node.children()
    return Written(expr, cost)


def _summed(size: Size, point: ProgramPoint) -> Written | None:
    """The sum of the terms."""
    terms = terms_of(size)
    images: dict[Atom, Expr] = {}
    for product, factor in terms.items():
        if abs(factor) > i64.max:
            return None
        for atom in product:
            image = _atom(atom, point) if atom not in images else images[atom]
            if image is None:
                return None
            images[atom] = image
    return _written(sum_expr(terms, images), point)


def _factored(size: Size, point: ProgramPoint) -> Written | None:
    """The common factor of all terms times the rest."""
    terms = terms_of(size)
    if len(terms) < 2:
        return None
    number = gcd(*terms.values())
    shared = reduce(Counter.__and__, map(Counter, terms))
    if number == 1 and not shared:
        return None
    common: Product = tuple(shared.elements())
    rest = {_without(product, shared): factor // number for product, factor in terms.items()}
    inner, outer = _shortest(of_terms(rest), point), _summed(of_terms({common: number}), point)
    if inner is None or outer is None:
        return None
    return Written(Mul(inner.expr, outer.expr), inner.cost + outer.cost + 1)


def _without(product: Product, shared: Counter[Atom]) -> Product:
    left = Counter(product) - shared
    return tuple(left.elements())


def _picked_last(size: Size, point: ProgramPoint) -> Written | None:
    """A sum with one extremum as the extremum of sums."""
    found = [(atom, factor) for atom, factor in _single_atoms(size) if isinstance(atom, Maximum | Minimum)]
    if len(found) != 1:
        return None
    ((atom, factor),) = found
    if abs(factor) != 1:
        return None
    rest = size - factor * atom
    operands = [rest + factor * operand for operand in atom.operands]
    return _extremum(operands, point, greatest=isinstance(atom, Maximum) == (factor > 0))


def _single_atoms(size: Size) -> Iterator[tuple[Atom, int]]:
    for product, factor in terms_of(size).items():
        if len(product) == 1:
            yield product[0], factor


def _extremum(operands: Sequence[Size], point: ProgramPoint, *, greatest: bool) -> Written | None:
    if not all(map(point.is_exact, operands)):
        return None
    found = [_shortest(operand, point) for operand in operands]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    kind = Max if greatest else Min
    expr = reduce(
        kind, (each.expr for each in sorted(known, key=lambda each: (isinstance(each.expr, IntImm), -each.cost)))
    )
    return Written(expr, sum(each.cost + 1 for each in known) - 1)


def _atom(atom: Atom, point: ProgramPoint) -> Expr | None:
    if atom in point.exprs:
        return point.exprs[atom].astype(i64)
    found: Written | None = None
    if isinstance(atom, Maximum | Minimum):
        found = _best_extremum(atom, point)
    elif isinstance(atom, Quotient | Remainder):
        by = atom.by
        is_masked = isinstance(atom, Remainder) and isinstance(by, int) and by & (by - 1) == 0
        if is_masked or (point.is_exact(atom.dividend) and point.is_exact(by)):
            above, below = _shortest(atom.dividend, point), _shortest(by, point)
            if above is not None and below is not None:
                kind = FloorDiv if isinstance(atom, Quotient) else FloorMod
                return kind(above.expr, below.expr)
    return None if found is None else found.expr


def _best_extremum(atom: Maximum | Minimum, point: ProgramPoint) -> Written | None:
    """The extremum of the operands, or of what differs between them, plus what is common, whichever is shorter."""
    greatest = isinstance(atom, Maximum)
    plain = _extremum(atom.operands, point, greatest=greatest)
    first, *others = map(terms_of, atom.operands)
    common = of_terms({p: c for p, c in first.items() if all(each.get(p) == c for each in others)})
    if common == 0:
        return plain
    inner = _extremum([operand - common for operand in atom.operands], point, greatest=greatest)
    outer = _shortest(common, point)
    if inner is None or outer is None:
        return plain
    behind = _written(inner.expr + outer.expr, point)
    return behind if plain is None or behind.cost < plain.cost else plain


ExprRule = Callable[[Expr, ProgramPoint], Expr]


def converted(node: Expr, point: ProgramPoint) -> Expr:
    """`tl.i64(tl.i32(i))` with a small `i` is `i`."""
    assert isinstance(node, Cast)
    if isinstance(node.value, Cast) and node.value.value.dtype == node.dtype == i64:
        return computed(node, point)
    if isinstance(node.value, IntImm) and node.dtype.is_integer:
        low, bits = node.dtype.min, node.dtype.bits
        return const((node.value.value - low) % (1 << bits) + low, node.dtype)
    return node.value if node.value.dtype == node.dtype else node


def computed(node: Expr, point: ProgramPoint) -> Expr:
    """`i * 64 + j - i * 64` is `j`, with `0 <= j < 64` so is `(i * 64 + j) % 64`; `min(i, n)` with `i < n` is `i`."""
    if node.dtype != i64:
        return node
    size = wrapped(point.size(node))
    if not point.covers(size, point.risks[node]):
        return node
    found = written(size, point)
    return node if found is None or found.cost >= point.costs[node] else found.expr


def compared(node: Expr, point: ProgramPoint) -> Expr:
    """`i + 3 < n + 3` is `i < n`; `i < n` is true where the loop says so."""
    assert isinstance(node, Compare)
    if node.a.dtype != i64:
        return node
    a, b = point.size(node.a), point.size(node.b)
    if not (point.is_exact(a) and point.is_exact(b)):
        return node
    gap = b - a
    answer = None if point.risks[node] else _decided(type(node), gap, point)
    if answer is not None:
        return const(answer, bool_)
    if not point.covers(gap, point.risks[node]):
        return node
    sides = (_equal_sides if isinstance(node, EQ | NE) else _ordered_sides)(type(node), gap, point)
    best = min(sides, key=lambda each: each.cost, default=None)
    return node if best is None or best.cost >= point.costs[node] else best.expr


def _decided(kind: type[Compare], gap: Size, point: ProgramPoint) -> bool | None:
    """Whether values `gap` apart always compare so (True) or never (False); None if unknown."""
    if kind in (GT, GE):
        return _decided(LT if kind is GT else LE, -gap, point)
    if kind is NE:
        answer = _decided(EQ, gap, point)
        return None if answer is None else not answer
    if kind is EQ:
        if gap == 0:
            return True
        step = gcd(*(factor for product, factor in terms_of(gap).items() if product))
        is_between = step > 1 and terms_of(gap).get((), 0) % step != 0
        return False if is_between or point.proves(gap - 1) or point.proves(-gap - 1) else None
    least = int(kind is LT)
    if point.proves(gap - least):
        return True
    return False if point.proves(least - 1 - gap) else None


def _ordered_sides(kind: type[Compare], gap: Size, point: ProgramPoint) -> list[Written]:
    """The ways to write an order comparison of sums `gap` apart, without common terms and factors."""
    if kind in (GT, GE):
        gap = -gap
    # The comparison is: sum of the terms >= least; dividing both by the terms' common factor rounds `least` up.
    terms = {product: factor for product, factor in terms_of(gap).items() if product}
    least = int(kind in (LT, GT)) - terms_of(gap).get((), 0)
    if not terms:
        return []
    step = gcd(*terms.values())
    rest = of_terms({product: factor // step for product, factor in terms.items()})
    least = -(-least // step)
    flips = kind in (GT, GE)
    found = [_comparison(GE if flips else LE, rest - least, point, flips=flips)]
    found.append(_comparison(GT if flips else LT, rest - least + 1, point, flips=flips))
    return [each for each in found if each is not None]


def _equal_sides(kind: type[Compare], gap: Size, point: ProgramPoint) -> list[Written]:
    step = gcd(*terms_of(gap).values())
    found = _comparison(kind, of_terms({p: c // step for p, c in terms_of(gap).items()}), point, flips=False)
    return [] if found is None else [found]


def _comparison(kind: type[Compare], gap: Size, point: ProgramPoint, *, flips: bool) -> Written | None:
    """`a kind b`, where `gap` is the greater side minus the lesser."""
    more = of_terms({product: factor for product, factor in terms_of(gap).items() if factor > 0})
    less = more - gap
    if not (point.is_exact(more) and point.is_exact(less)):
        return None
    a, b = written(less, point), written(more, point)
    if a is None or b is None:
        return None
    if flips or (kind in (EQ, NE) and isinstance(a.expr, IntImm)):
        a, b = b, a
    return Written(kind(a.expr, b.expr), a.cost + b.cost + 1)


def connected(node: Expr, point: ProgramPoint) -> Expr:
    """`a and True` is `a`; `i < 8 and i < 4` is `i < 4`."""
    assert isinstance(node, And | Or)
    neutral = int(isinstance(node, And))
    for side, other in ((node.a, node.b), (node.b, node.a)):
        if isinstance(side, IntImm):
            if side.value == neutral:
                return other
            if side is node.a or not point.risks[other]:
                return side
    if point.risks[node]:
        return node
    with point.inside():
        point.assume(node.b, holds=neutral == 1)
        if isinstance(node.a, Compare) and compared(node.a, point) is not node.a:
            answer = compared(node.a, point)
            if is_constant(answer, neutral):
                return node.b
    return node


def negated(node: Expr, point: ProgramPoint) -> Expr:
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


def chosen(node: Expr, point: ProgramPoint) -> Expr:
    """`tl.select(i < n, a, b)` is `a` if `i < n` is known to hold."""
    if isinstance(node, Call):
        if node.op is not Op.IF_THEN_ELSE:
            return node
        condition, if_true, if_false = node.args
    else:
        assert isinstance(node, Select)
        condition, if_true, if_false = node.condition, node.if_true, node.if_false
    if isinstance(condition, IntImm):
        kept, dropped = (if_true, if_false) if condition.value else (if_false, if_true)
        return kept if isinstance(node, Call) or not point.risks[dropped] else node
    is_same = if_true.dtype == i64 and point.size(if_true) == point.size(if_false)
    return if_true if is_same and not point.risks[node] else node


RULES: Mapping[type[Expr], ExprRule] = {
    **dict.fromkeys((Add, Sub, Mul, Neg, ShiftLeft, ShiftRight, BitAnd, Min, Max), computed),
    **dict.fromkeys((FloorDiv, FloorMod, TruncDiv, TruncMod), computed),
    **dict.fromkeys((EQ, NE, LT, LE, GT, GE), compared),
    **dict.fromkeys((And, Or), connected),
    Not: negated,
    Cast: converted,
    **dict.fromkeys((Select, Call), chosen),
}
