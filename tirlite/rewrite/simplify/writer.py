"""Writes a size as the shortest i64 expression with its value at a place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from math import gcd

from tirlite.ir import Expr, FloorDiv, FloorMod, For, IntImm, Max, Min, Mul, Node, i64
from tirlite.ir.size import sum_expr
from tirlite.rewrite.simplify.place import Place, Written
from tirlite.sizes import Size
from tirlite.sizes.extrema import Maximum, Minimum, maximum, minimum
from tirlite.sizes.poly import Atom, Composite, Product, Quotient, Remainder, of_terms, terms_of, varies
from tirlite.sizes.terms import replace
from tirlite.sizes.unknown import Unknown, recombined, terms_in

# Longer sums are left as they are.
_MOST_TERMS = 32


def written(size: Size, place: Place) -> Written | None:
    """None where there is none: what it is made of has no name, or a part of it may wrap around."""
    named = _named(size, place)
    return None if named is None else _shortest(named, place)


def wrapped(size: Size) -> Size:
    """The size with factors of i64 that is equal modulo 2**64."""
    terms = {product: (factor - i64.min) % (1 << i64.bits) + i64.min for product, factor in terms_of(size).items()}
    return of_terms({product: factor for product, factor in terms.items() if factor})


def _named(size: Size, place: Place) -> Size | None:
    """The same value over variables of loops in the place of counters; None for a part of a step."""
    if not varies(size):
        return size
    for atom, factor in terms_in(size).items():
        loop = _loop_of(atom)
        if loop is not None and loop.step != 1 and factor % loop.step == 0:
            start, shown = place.starts[loop]
            size = size + factor // loop.step * (shown - start) - factor * atom
        elif isinstance(atom, Maximum | Minimum) and isinstance(factor, int) and abs(factor) > 1:
            # `2*max(8*i, 1)` is made of no part of a step where it is `max(16*i, 2)`.
            operands = [_named(abs(factor) * operand, place) for operand in atom.operands]
            known = [operand for operand in operands if operand is not None]
            if len(known) == len(operands):
                whole = (maximum if isinstance(atom, Maximum) else minimum)(*known)
                size = size - factor * atom + (whole if factor > 0 else -whole)
    images = {}
    for atom in dict.fromkeys(atom for product in terms_of(size) for atom in product if atom.varies):
        image = _named_atom(atom, place)
        if image is None:
            return None
        images[atom] = terms_of(image)
    return of_terms(replace(terms_of(size), images))


def _named_atom(atom: Atom, place: Place) -> Size | None:
    loop = _loop_of(atom)
    if loop is not None:
        start, shown = place.starts[loop]
        first = _named(start, place) if loop.step == 1 else None
        return None if first is None else shown - first
    if not isinstance(atom, Composite):
        return atom + 0
    operands = [_named(operand, place) for operand in atom.operands]
    known = [operand for operand in operands if operand is not None]
    return atom.rebuild(known) if len(known) == len(operands) else None


def _loop_of(atom: Atom) -> For | None:
    return atom.owner if isinstance(atom, Unknown) and atom.counts and isinstance(atom.owner, For) else None


def _shortest(size: Size, place: Place) -> Written | None:
    if len(terms_of(size)) > _MOST_TERMS:
        return None
    if size not in place.written:
        whole = recombined(size)
        ways = (_summed(whole, place), _factored(whole, place), _picked_last(whole, place))
        found = [way for way in ways if way is not None]
        place.written[size] = min(found, key=lambda way: way.cost, default=None)
    return place.written[size]


def _written(expr: Expr, place: Place) -> Written:
    cost = 0
    todo: list[Node] = [expr]
    while todo:
        node = todo.pop()
        known = place.costs.get(node)
        cost += 1 if known is None else known
        if known is None:
            todo += node.children()
    return Written(expr, cost)


def _summed(size: Size, place: Place) -> Written | None:
    """Term by term."""
    terms = terms_of(size)
    images: dict[Atom, Expr] = {}
    for product, factor in terms.items():
        if abs(factor) > i64.max:
            return None
        for atom in product:
            image = _atom(atom, place) if atom not in images else images[atom]
            if image is None:
                return None
            images[atom] = image
    return _written(sum_expr(terms, images), place)


def _factored(size: Size, place: Place) -> Written | None:
    """A sum, times what is common to its terms."""
    terms = terms_of(size)
    if len(terms) < 2:
        return None
    number = gcd(*terms.values())
    shared = reduce(Counter.__and__, map(Counter, terms))
    if number == 1 and not shared:
        return None
    common: Product = tuple(shared.elements())
    rest = {_without(product, shared): factor // number for product, factor in terms.items()}
    inner, outer = _shortest(of_terms(rest), place), _summed(of_terms({common: number}), place)
    if inner is None or outer is None:
        return None
    return Written(Mul(inner.expr, outer.expr), inner.cost + outer.cost + 1)


def _without(product: Product, shared: Counter[Atom]) -> Product:
    left = Counter(product) - shared
    return tuple(left.elements())


def _picked_last(size: Size, place: Place) -> Written | None:
    """An extremum of sums, where the size is a sum with one extremum in it."""
    found = [(atom, factor) for atom, factor in _single_atoms(size) if isinstance(atom, Maximum | Minimum)]
    if len(found) != 1:
        return None
    ((atom, factor),) = found
    if abs(factor) != 1:
        return None
    rest = size - factor * atom
    operands = [rest + factor * operand for operand in atom.operands]
    return _extremum(operands, place, greatest=isinstance(atom, Maximum) == (factor > 0))


def _single_atoms(size: Size) -> Iterator[tuple[Atom, int]]:
    for product, factor in terms_of(size).items():
        if len(product) == 1:
            yield product[0], factor


def _extremum(operands: Sequence[Size], place: Place, *, greatest: bool) -> Written | None:
    if not all(map(place.is_exact, operands)):
        return None
    found = [_shortest(operand, place) for operand in operands]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    kind = Max if greatest else Min
    expr = reduce(
        kind, (each.expr for each in sorted(known, key=lambda each: (isinstance(each.expr, IntImm), -each.cost)))
    )
    return Written(expr, sum(each.cost + 1 for each in known) - 1)


def _atom(atom: Atom, place: Place) -> Expr | None:
    if atom in place.exprs:
        return place.exprs[atom].astype(i64)
    found: Written | None = None
    if isinstance(atom, Maximum | Minimum):
        found = _best_extremum(atom, place)
    elif isinstance(atom, Quotient | Remainder):
        by = atom.by
        is_masked = isinstance(atom, Remainder) and isinstance(by, int) and by & (by - 1) == 0
        if is_masked or (place.is_exact(atom.dividend) and place.is_exact(by)):
            above, below = _shortest(atom.dividend, place), _shortest(by, place)
            if above is not None and below is not None:
                kind = FloorDiv if isinstance(atom, Quotient) else FloorMod
                return kind(above.expr, below.expr)
    return None if found is None else found.expr


def _best_extremum(atom: Maximum | Minimum, place: Place) -> Written | None:
    """The operands as they are, or what is common to all of them added behind."""
    greatest = isinstance(atom, Maximum)
    plain = _extremum(atom.operands, place, greatest=greatest)
    first, *others = map(terms_of, atom.operands)
    common = of_terms({p: c for p, c in first.items() if all(each.get(p) == c for each in others)})
    if common == 0:
        return plain
    inner = _extremum([operand - common for operand in atom.operands], place, greatest=greatest)
    outer = _shortest(common, place)
    if inner is None or outer is None:
        return plain
    behind = _written(inner.expr + outer.expr, place)
    return behind if plain is None or behind.cost < plain.cost else plain
