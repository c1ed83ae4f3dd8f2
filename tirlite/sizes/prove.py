"""Finds proofs about sizes and bounds of them, under the facts of the dims.

An answer holds for all values of the dims at which the sizes are defined (do not divide by 0), or is UNKNOWN.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from math import gcd
from typing import overload

from tirlite.diag import KernelError
from tirlite.sizes.division import divisor_of
from tirlite.sizes.poly import Product, Size, SizeLike, Terms, as_size, bounds_of, quotient, terms_of
from tirlite.sizes.terms import add, is_constant, replace, scaled

# This many bounds of sizes are kept.
_KEPT = 4096


class Proof(Enum):
    """YES: for all values of the dims. NO: for no value. UNKNOWN: neither was proved."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


def prove_le(a: SizeLike, b: SizeLike) -> Proof:
    """Whether `a <= b`."""
    if isinstance(a, int) and isinstance(b, int):
        return Proof.YES if a <= b else Proof.NO
    return _prove_nonnegative(add(terms_of(b), terms_of(a), -1))


def is_at_most(a: SizeLike, b: SizeLike, budget: int | None = None) -> bool:
    """Whether `a <= b` is proved: `prove_le`, where only YES counts; by a search that ends sooner, with a `budget`."""
    if isinstance(a, int) and isinstance(b, int):
        return a <= b
    return _at_least(add(terms_of(b), terms_of(a), -1), 0, budget)


def prove_lt(a: SizeLike, b: SizeLike) -> Proof:
    """Whether `a < b`."""
    return prove_le(a + 1, b)


def prove_eq(a: SizeLike, b: SizeLike) -> Proof:
    """Whether `a == b`."""
    if isinstance(a, int) and isinstance(b, int):
        return Proof.YES if a == b else Proof.NO
    difference = _defined(add(terms_of(a), terms_of(b), -1))
    if is_constant(difference):
        return Proof.NO if difference else Proof.YES
    opposite = scaled(difference, -1)
    step = divisor_of({product: c for product, c in difference.items() if product})
    if difference.get((), 0) % step or _at_least(difference, 1) or _at_least(opposite, 1):
        return Proof.NO
    return Proof.YES if _at_least(difference, 0) and _at_least(opposite, 0) else Proof.UNKNOWN


def prove_divides(k: int, a: SizeLike) -> Proof:
    """Whether `k` divides `a`; 0 divides 0 alone."""
    if k == 0:
        return prove_eq(a, 0)
    terms = _defined(terms_of(a))
    step = gcd(k, divisor_of({product: c for product, c in terms.items() if product}))
    if terms.get((), 0) % step:
        return Proof.NO
    return Proof.YES if step == abs(k) else Proof.UNKNOWN


def lower_bound(size: SizeLike) -> int | None:
    """The greatest number found that is at most every value of `size`, or None."""
    return size if isinstance(size, int) else _lowest(terms_of(size))


def upper_bound(size: SizeLike) -> int | None:
    """The least number found that is at least every value of `size`, or None."""
    if isinstance(size, int):
        return size
    found = _lowest(scaled(terms_of(size), -1))
    return None if found is None else -found


def _prove_nonnegative(terms: Terms) -> Proof:
    if _at_least(terms, 0):
        return Proof.YES
    return Proof.NO if _at_least(scaled(terms, -1), 1) else Proof.UNKNOWN


def _at_least(terms: Terms, target: int, budget: int | None = None) -> bool:
    found = _lowest(terms, target, budget)
    return found is not None and found >= target


def _lowest(terms: Terms, target: int | None = None, budget: int | None = None) -> int | None:
    return _searched(tuple(terms.items()), target, budget)


@lru_cache(_KEPT)
def _searched(terms: tuple[tuple[Product, int], ...], target: int | None, budget: int | None) -> int | None:
    """What a search finds: the same few sizes are compared at each of many statements."""
    from tirlite.sizes.search import BUDGET, best_lower_bound  # few programs need a search

    try:
        return best_lower_bound(dict(terms), target, BUDGET if budget is None else budget)
    except KernelError:  # sums of too many terms on the way
        return None


def _defined(terms: Terms) -> Terms:
    """The same sum, with atoms that have a definition replaced by it, and those within likewise."""
    while True:
        atoms = dict.fromkeys(atom for product in terms for atom in product)
        definitions = {atom: terms_of(size) for atom in atoms if (size := atom.definition()) is not None}
        if not definitions:
            return terms
        try:
            terms = replace(terms, definitions)
        except KernelError:  # of too many terms
            return terms


def ceildiv(a: SizeLike, b: SizeLike) -> Size:
    """`a / b`, rounded up. Raises KernelError where `b` is 0."""
    dividend, divisor = as_size(a), as_size(b)
    if isinstance(dividend, int) and isinstance(divisor, int) and divisor:
        return -(-dividend // divisor)
    if bounds_of(divisor).positive:
        return quotient(dividend + divisor - 1, divisor)
    return -quotient(-dividend, divisor)


@overload
def round_up(a: int, multiple: int) -> int: ...
@overload
def round_up(a: SizeLike, multiple: SizeLike) -> Size: ...
def round_up(a: SizeLike, multiple: SizeLike) -> Size:
    """The least multiple of a positive `multiple` that is at least `a`; `a` itself where it is proved to be one."""
    if isinstance(multiple, int) and multiple:
        if isinstance(a, int):
            return -(-a // multiple) * multiple
        if prove_divides(multiple, a) is Proof.YES:
            return as_size(a)
    return ceildiv(a, multiple) * as_size(multiple)
