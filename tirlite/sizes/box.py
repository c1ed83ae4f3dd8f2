"""Finds a lower bound of a sum from the bounds of its factors.

Each factor is an independent variable that may have any value in its bounds. With all factors moved to start at 0, a
sum without negative coefficients is least at 0; a factor in negative terms alone is put at its high end. Factors of
mixed signs are eliminated by Bernstein coefficients, which for degree one are the corners of the box.

Proofs spend most of their time here, so a product is a number, a byte of which is the power of one factor: it hashes at
once, and two are multiplied by adding them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb, lcm
from typing import TypeVar

from tirlite.sizes.bounds import Bounds
from tirlite.sizes.terms import MOST_FACTORS, Factor, scaled

F = TypeVar("F", bound=Factor)

# Settling one factor of mixed signs doubles the work or worse.
_MIXED_LIMIT = 5
# A product of k factors becomes a sum of 2 ** k over factors that start at 0.
_MOST_MOVED = 4000
# How far from its low end a factor without a high one is looked at.
_FAR = 1 << 20
# Bits of a power, all of them, and those of a power of 1; the top one stays free.
_BITS, _FULL, _LOW_BITS, _TOP = 8, 255, 127, 128
assert MOST_FACTORS < _TOP


def bounds_in_box(terms: Mapping[tuple[F, ...], int]) -> Bounds:
    """Bounds of the sum."""
    opposite = minimum_in_box(scaled(terms, -1))
    return Bounds(minimum_in_box(terms), None if opposite is None else -opposite)


def minimum_in_box(terms: Mapping[tuple[F, ...], int], target: int | None = None) -> int | None:
    """A lower bound of the sum, or None where none is found. It is exact where no factor occurs in mixed signs.

    With a `target`, None as well where it is plain that no bound reaches it.
    """
    if all(len(product) < 2 for product in terms):
        return _linear_minimum(terms)
    rising = _at_low_ends(terms)
    if rising is not None:
        return rising
    if target is not None and _falls_below(terms, target):
        return None
    places = _places(terms)
    moved = _from_zero(terms, places)
    return None if moved is None else _minimum(moved, [factor.bounds.width for factor in places], _MIXED_LIMIT)


def _linear_minimum(terms: Mapping[tuple[F, ...], int]) -> int | None:
    """The least value of a sum without products of factors: each factor is at one of its ends."""
    total = 0
    for product, coefficient in terms.items():
        if product:
            bounds = product[0].bounds
            end = bounds.low if coefficient > 0 else bounds.high
            if end is None:
                return None
            coefficient *= end
        total += coefficient
    return total


def _at_low_ends(terms: Mapping[tuple[F, ...], int]) -> int | None:
    """The value with all factors at their low ends, where it is plain that the sum is least there."""
    total = 0
    for product, value in terms.items():
        if product:
            if value < 0:
                return None
            for factor in product:
                low = factor.bounds.low
                if low is None or low < 0:
                    return None
                value *= low
        total += value
    return total


def _falls_below(terms: Mapping[tuple[F, ...], int], target: int) -> bool:
    """Whether the sum is below `target` at one of a few points, which is much cheaper than a bound."""
    near = far = mixed = 0
    falling = {factor for product, coefficient in terms.items() if coefficient < 0 for factor in product}
    ends: dict[F, tuple[int, int, int]] = {}
    for product, coefficient in terms.items():
        at_near = at_far = at_mixed = coefficient
        for factor in product:
            if factor not in ends:
                low, high = factor.bounds.low, factor.bounds.high
                one = low if low is not None else high if high is not None else 0
                other = high if high is not None else one + _FAR
                ends[factor] = (one, other, other if factor in falling else one)
            one, other, third = ends[factor]
            at_near *= one
            at_far *= other
            at_mixed *= third
        near += at_near
        far += at_far
        mixed += at_mixed
    return min(near, far, mixed) < target


def from_zero(terms: Mapping[tuple[F, ...], int]) -> dict[tuple[F, ...], int] | None:
    """The sum over factors that start at 0: each is the distance from its low end, or else from its high end.

    None where a factor has no end, and where the sum would be very long.
    """
    places = _places(terms)
    moved = _from_zero(terms, places)
    if moved is None:
        return None
    powers = [(factor, _BITS * place) for factor, place in places.items()]
    return {
        tuple(factor for factor, shift in powers for _ in range(product >> shift & _FULL)): coefficient
        for product, coefficient in moved.items()
    }


_Packed = dict[int, int]


def _places(terms: Mapping[tuple[F, ...], int]) -> dict[F, int]:
    """The byte of each factor."""
    factors = dict.fromkeys(factor for product in terms for factor in product)
    return {factor: place for place, factor in enumerate(factors)}


def _from_zero(terms: Mapping[tuple[F, ...], int], places: Mapping[F, int]) -> _Packed | None:
    units = {factor: 1 << _BITS * place for factor, place in places.items()}
    packed = {sum([units[factor] for factor in product]): coefficient for product, coefficient in terms.items()}
    for factor, place in places.items():
        low, high = factor.bounds.low, factor.bounds.high
        end, sign = (low, 1) if low is not None else (high, -1)
        if end is None:
            return None
        if low == high:
            packed = _at(packed, place, [end**power for power in range(_degree(packed, place) + 1)])
        elif low != 0:
            packed = _moved(packed, place, end, sign)
        if len(packed) > _MOST_MOVED:
            return None
    return packed


def _moved(terms: _Packed, place: int, end: int, sign: int) -> _Packed:
    """The sum with `end + sign * factor` in the place of a factor."""
    shift = _BITS * place
    images = [
        [(kept << shift, comb(power, kept) * sign**kept * end ** (power - kept)) for kept in range(power + 1)]
        for power in range(_degree(terms, place) + 1)
    ]
    result: _Packed = {}
    for product, coefficient in terms.items():
        power = product >> shift & _FULL
        rest = product - (power << shift)
        for key, scale in images[power]:
            key += rest
            result[key] = result.get(key, 0) + coefficient * scale
    return {product: coefficient for product, coefficient in result.items() if coefficient}


def _minimum(terms: _Packed, widths: Sequence[int | None], limit: int) -> int | None:
    while True:
        negative = positive = 0  # a byte of some power is not 0
        for product, coefficient in terms.items():
            if coefficient < 0:
                negative |= product
            else:
                positive |= product
        if not negative:
            return terms.get(0, 0)
        places = [place for place in range(len(widths)) if negative >> _BITS * place & _FULL]
        falling = next((place for place in places if not positive >> _BITS * place & _FULL), None)
        if falling is None:
            break
        width = widths[falling]
        if width is None:
            return None
        # The sum only falls as this factor grows, wherever the others stand.
        terms = _at(terms, falling, [width**power for power in range(_degree(terms, falling) + 1)])
    mixed = next((place for place in places if widths[place] is not None), None)
    if mixed is None:
        return _absorbed(terms, len(widths))
    return _least_bernstein(terms, widths, mixed, limit - 1) if limit else None


def _least_bernstein(terms: _Packed, widths: Sequence[int | None], place: int, limit: int) -> int | None:
    """The least lower bound of the sum's Bernstein coefficients in a factor, rounded up, as the sum is an integer."""
    width = widths[place]
    assert width is not None
    degree = _degree(terms, place)
    scale = lcm(*(comb(degree, power) for power in range(degree + 1)))
    found = []
    for i in range(degree + 1):
        weights = [width**j * comb(i, j) * (scale // comb(degree, j)) for j in range(degree + 1)]
        value = _minimum(_at(terms, place, weights), widths, limit)
        if value is None:
            return None
        found.append(value)
    return -(-min(found) // scale)


def _degree(terms: _Packed, place: int) -> int:
    shift = _BITS * place
    return max([product >> shift & _FULL for product in terms], default=0)


def _at(terms: _Packed, place: int, weights: Sequence[int]) -> _Packed:
    """The sum with `weights[power]` in the place of each power of a factor."""
    shift = _BITS * place
    result: _Packed = {}
    for product, coefficient in terms.items():
        power = product >> shift & _FULL
        rest = product - (power << shift)
        result[rest] = result.get(rest, 0) + coefficient * weights[power]
    return {product: coefficient for product, coefficient in result.items() if coefficient}


def _absorbed(terms: _Packed, count: int) -> int | None:
    """The constant term, if higher powers of its factors outweigh each negative term, since `k * k >= k`."""
    tops = int.from_bytes(bytes([_TOP]) * count)
    lows = int.from_bytes(bytes([_LOW_BITS]) * count)
    spare = {product: c for product, c in terms.items() if c > 0 and product}
    for product, coefficient in terms.items():
        if coefficient > 0 or not product:
            continue
        missing = -coefficient
        factors = product + lows & tops
        for higher, left in spare.items():
            # No byte borrows from the next where none of a higher power is less.
            if left and higher + lows & tops == factors and (higher + tops - product) & tops == tops:
                taken = min(missing, left)
                spare[higher] = left - taken
                missing -= taken
        if missing:
            return None
    return terms.get(0, 0)
