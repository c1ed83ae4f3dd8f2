"""Bounds how large extents and products of extents can be, by the bytes of arrays that exist.

An array that exists is addressable, and no machine today can address more than 2**47 bytes. So a dim of a shape stays
below that, as does a product of extents if one array has them all, and certainly has elements along its other axes;
any other product may be larger. A single dim is taken to stay below it even if the array is empty along another axis.
An extent that is a multiple of a dim bounds that dim by as much less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from math import prod

from tirlite.groups import by_key
from tirlite.ir import i64
from tirlite.record import record
from tirlite.sizes import Dim, Size, dims_of, is_at_most
from tirlite.sizes.extrema import Maximum, Minimum
from tirlite.sizes.poly import Atom, Product, Terms, inside_out, terms_of
from tirlite.sizes.terms import accumulate, multiply

ADDRESSABLE = 1 << 47
# Only a program writes a program with more; what is left out is taken as unbounded.
_MOST_PRODUCTS = 10_000


@record
class ArrayBounds:
    """For each atom that occurs in the size of some array the products that are addressable, and that it is part of.

    `times` says how often some array holds a product.
    """

    products: Mapping[Atom, tuple[Product, ...]] = field(default_factory=dict)
    times: Mapping[Product, int] = field(default_factory=dict)

    def is_bounded(self, atom: Atom) -> bool:
        """Whether `most` holds of an atom: it is a dim, or else an extent of an array that has all others."""
        arrays = self.products.get(atom, ())
        return isinstance(atom, Dim) or any(_is_positive(other for other in each if other != atom) for each in arrays)

    def most(self, product: Product) -> int:
        """A number that a product of bounded atoms does not exceed, whatever their signs."""
        most = prod(map(self._most_of, product))
        if len(product) > 1:
            # With a factor that has no bound, and is in no array with the others, it may be anything.
            unbounded = (atom for atom in product if atom.bounds.high is None)
            for array in min((self.products.get(atom, ()) for atom in unbounded), key=len, default=()):
                # An array may be empty along one axis, and of any length along the others.
                if _is_positive(_without(array, product)):
                    own = ADDRESSABLE // self.times.get(array, 1)
                    most = min(most, own * prod(map(self._most_of, _without(product, array))))
        return most

    def _most_of(self, atom: Atom) -> int:
        times = self.times.get((atom,))
        return _most(atom) if times is None else min(_most(atom), ADDRESSABLE // times)


NO_ARRAYS = ArrayBounds()


def array_bounds(sizes: Iterable[Size]) -> ArrayBounds:
    """The bounds that follow from arrays of this many bytes. A sum with a negative term gives none."""
    todo = [*sizes]
    seen, found, times = set(todo), dict[Product, None](), dict[Product, int]()
    while todo:
        terms = terms_of(todo.pop())
        if not all(n > 0 and all(atom.bounds.nonnegative for atom in product) for product, n in terms.items()):
            continue
        for product, count in terms.items():
            times[product] = max(times.get(product, 1), count)
            if len(product) > 1:
                found[product] = None
            maximum = next((atom for atom in product if isinstance(atom, Maximum)), None)
            if maximum is not None and len(found) < _MOST_PRODUCTS:
                # What holds the largest of several holds each of them.
                rest = prod(atom for atom in product if atom != maximum)
                parts = dict.fromkeys(rest * operand for operand in maximum.operands)
                todo += [part for part in parts if part not in seen]
                seen.update(parts)
    products = by_key((atom, product) for product in found for atom in dict.fromkeys(product))
    return ArrayBounds({atom: tuple(each) for atom, each in products.items()}, times)


def _without(product: Product, other: Product) -> list[Atom]:
    """The factors of a product that are not those of another one."""
    rest = list(product)
    for atom in other:
        if atom in rest:
            rest.remove(atom)
    return rest


def _is_positive(atoms: Iterable[Atom]) -> bool:
    return all(atom.bounds.positive for atom in atoms)


def _most(atom: Atom) -> int:
    low, high = atom.bounds.low, atom.bounds.high
    if low is not None and high is not None:
        return max(abs(low), abs(high))
    return max(ADDRESSABLE, abs(low or 0), abs(high or 0))


_LIMIT = 1 << 62
# Beyond, arithmetic may wrap around and come back to what is in bounds.
_TWICE = (1 << 64) - ADDRESSABLE
# An axis exists in memory, so a few times its extent does not wrap around. Guards cut off far less than this.
_SLACK = 1 << 40
# Beyond, sums are multiplied as the numbers that they do not exceed.
_MOST_TERMS = 256


def stays_exact(low: Size | None, high: Size | None, extent: Size | None = None) -> bool:
    """Whether everything between the ends surely fits into 64 bits.

    `extent` is that of an axis that exists, if the value is an index along one.
    """
    if low is None or high is None:
        return False
    if extent is not None and is_at_most(-extent - _SLACK, low) and is_at_most(high, 2 * extent + _SLACK):
        return True
    return magnitude(low) < _LIMIT and magnitude(high) < _LIMIT


def is_exact_size(size: Size, arrays: ArrayBounds) -> bool:
    """Whether i64 arithmetic that gives a size cannot have wrapped around.

    Not where it computes with a scalar parameter that may be anything, or with a product that no array bounds.
    """
    if isinstance(size, int):
        return i64.min <= size <= i64.max
    return size == dims_of(size)[0] or _is_pick(size, arrays) or magnitude(size, arrays) < _LIMIT


def _is_pick(size: Size, arrays: ArrayBounds) -> bool:
    """Whether a size is one of some that are exact."""
    terms = terms_of(size)
    if len(terms) != 1:
        return False
    ((product, coefficient),) = terms.items()
    is_extremum = len(product) == 1 and coefficient == 1 and isinstance(product[0], Maximum | Minimum)
    return is_extremum and all(is_exact_size(operand, arrays) for operand in product[0].operands)


def is_exact_index(size: Size, arrays: ArrayBounds) -> bool:
    """As `is_exact_size`, wherever the value is an index in bounds: one that wraps around once is not."""
    return is_exact_size(size, arrays) or magnitude(size, arrays) < _TWICE


def may_be_anything(dim: Dim) -> bool:
    """Whether arithmetic with a dim may wrap around: it is a scalar parameter that no facts hold to a bound."""
    return dim.low <= -_LIMIT or (dim.high is not None and dim.high >= _LIMIT)


def magnitude(size: Size, arrays: ArrayBounds = NO_ARRAYS) -> int:
    """A number that the absolute value of `size` does not exceed."""
    if isinstance(size, int):
        return abs(size)
    found: dict[Atom, Terms] = {}
    for atom in inside_out(size):
        found[atom] = _of_atom(atom, found, arrays)
    return _total(_of_sum(size, found, arrays), arrays)


def _of_atom(atom: Atom, found: Mapping[Atom, Terms], arrays: ArrayBounds) -> Terms:
    """A sum of products of bounded atoms that an atom does not exceed, both taken without their signs."""
    if arrays.is_bounded(atom):
        return {(atom,): 1}
    if (bounds := atom.bounds).low is not None and bounds.high is not None:
        return {(): max(abs(bounds.low), abs(bounds.high))}
    # Quotients by numbers, remainders, maxima and minima are no larger than the largest of their operands.
    most: dict[Product, int] = {}
    for operand in atom.operands:
        for product, coefficient in _of_sum(operand, found, arrays).items():
            most[product] = max(most.get(product, 0), coefficient)
    return most


def _of_sum(size: Size, found: Mapping[Atom, Terms], arrays: ArrayBounds) -> Terms:
    total: dict[Product, int] = {}
    for product, coefficient in terms_of(size).items():
        part: Terms = {(): abs(coefficient)}
        for atom in product:
            factor = found[atom]
            if len(part) * len(factor) > _MOST_TERMS and len(part) > 1 < len(factor):
                part = {(): _total(part, arrays) * _total(factor, arrays)}
            else:
                part = multiply(part, factor)
        accumulate(total, part)
    return total


def _total(terms: Terms, arrays: ArrayBounds) -> int:
    return sum(coefficient * arrays.most(product) for product, coefficient in terms.items())
