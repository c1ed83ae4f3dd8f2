"""Bounds of an i64 expression in the integers in, whether it is free of wrap-around out.

Arrays that exist bound what is computed from their extents: a dim of a shape stays below 2**47, the most that a
machine can address today, and so does a product of dims, as if all were of one array. Constant factors may still make
it wrap around. Scalar parameters may be anything that their facts allow.
"""

from __future__ import annotations

from math import prod

from tirlite.ir import i64
from tirlite.sizes import Dim, Proof, Size, dims_of, prove_le
from tirlite.sizes.extrema import Maximum, Minimum
from tirlite.sizes.poly import Atom, inside_out, terms_of

_ADDRESSABLE = 1 << 47
_LIMIT = 1 << 62
# Beyond, arithmetic may wrap around and come back to what is in bounds.
_TWICE = (1 << 64) - _ADDRESSABLE
# An axis exists in memory, so a few times its extent does not wrap around. Guards cut off far less than this.
_SLACK = 1 << 40


def stays_exact(low: Size | None, high: Size | None, extent: Size | None = None) -> bool:
    """Whether everything between the ends surely fits into 64 bits.

    `extent` is that of an axis that exists, if the value is an index along one.
    """
    if low is None or high is None:
        return False
    if extent is not None and _at_most(-extent - _SLACK, low) and _at_most(high, 2 * extent + _SLACK):
        return True
    return _magnitude(low) < _LIMIT and _magnitude(high) < _LIMIT


def is_exact_size(size: Size) -> bool:
    """Whether i64 arithmetic that gives a size cannot have wrapped around.

    Not where it computes with a scalar parameter that may be anything: no array bounds that.
    """
    if isinstance(size, int):
        return i64.min <= size <= i64.max
    if size == dims_of(size)[0] or _is_pick(size):
        return True
    is_of_arrays = not any(may_be_anything(dim) for dim in dims_of(size))
    return _magnitude(size, is_of_arrays=is_of_arrays) < _LIMIT


def _is_pick(size: Size) -> bool:
    """Whether a size is one of some that are exact."""
    terms = terms_of(size)
    if len(terms) != 1:
        return False
    ((product, coefficient),) = terms.items()
    is_extremum = len(product) == 1 and coefficient == 1 and isinstance(product[0], Maximum | Minimum)
    return is_extremum and all(map(is_exact_size, product[0].operands))


def is_exact_index(size: Size) -> bool:
    """As `is_exact_size`, wherever the value is an index in bounds: one that wraps around once is not."""
    return is_exact_size(size) or _magnitude(size) < _TWICE


def may_be_anything(dim: Dim) -> bool:
    """Whether arithmetic with a dim may wrap around: it is a scalar parameter that no facts hold to a bound."""
    return dim.low <= -_LIMIT or (dim.high is not None and dim.high >= _LIMIT)


def _at_most(a: Size, b: Size) -> bool:
    return prove_le(a, b) is Proof.YES


def _magnitude(size: Size, *, is_of_arrays: bool = False) -> int:
    """A number that the absolute value of `size` does not exceed; with `is_of_arrays` products are those of arrays."""
    if isinstance(size, int):
        return abs(size)
    most = _ADDRESSABLE if is_of_arrays else None
    found: dict[Atom, int] = {}
    for atom in inside_out(size):
        found[atom] = _of_atom(atom, found, most)
    return _of_sum(size, found, most)


def _of_atom(atom: Atom, found: dict[Atom, int], most: int | None) -> int:
    low, high = atom.bounds.low, atom.bounds.high
    if low is not None and high is not None:
        return max(abs(low), abs(high))
    if isinstance(atom, Dim):
        return max(_ADDRESSABLE, abs(low or 0), abs(high or 0))
    # Quotients by numbers, remainders, maxima and minima are no larger than the largest of their operands.
    return max(_of_sum(operand, found, most) for operand in atom.operands)


def _of_sum(size: Size, found: dict[Atom, int], most: int | None) -> int:
    """The sum of what the terms are at most; a product with what has no bound is no more than `most`."""
    total = 0
    for product, coefficient in terms_of(size).items():
        factors = [found[atom] for atom in product]
        value = prod(factors)
        if most is not None:
            bounded = prod(found[atom] for atom in product if atom.bounds.high is not None)
            value = min(value, max(most, bounded) * prod(-(-factor // most) for factor in factors))
        total += abs(coefficient) * value
    return total
