"""Tells whether an i64 expression is free of wrap-around, by its bounds in the integers.

Arrays that exist bound what is computed from their extents: a dim of a shape, and a product of dims that one array has
as extents, see `array_bounds`. Constant factors may still make it wrap around, and so may a product of dims that no
array has. Scalar parameters may be anything that their facts allow.
"""

from __future__ import annotations

from collections.abc import Mapping

from tirlite.analysis.integers.array_bounds import ADDRESSABLE, NO_ARRAYS, ArrayBounds
from tirlite.ir import i64
from tirlite.sizes import Dim, Proof, Size, dims_of, prove_le
from tirlite.sizes.extrema import Maximum, Minimum
from tirlite.sizes.poly import Atom, Product, Terms, inside_out, terms_of
from tirlite.sizes.terms import accumulate, multiply

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
    if extent is not None and _at_most(-extent - _SLACK, low) and _at_most(high, 2 * extent + _SLACK):
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


def _at_most(a: Size, b: Size) -> bool:
    return prove_le(a, b) is Proof.YES


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
