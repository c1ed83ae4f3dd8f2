"""Finds a lower bound of a sum from the bounds of its factors.

Each factor is taken as a variable of its own that may stand anywhere in its bounds. Moved to start at 0, a sum without
negative coefficients is least at 0; a negative coefficient is made up for from the width of a factor. Mixed signs are
settled by Bernstein coefficients, which for sums of degree one are the corners of the box.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import comb, lcm
from typing import TypeVar

from tirlite.sizes.bounds import Bounds
from tirlite.sizes.terms import Factor, accumulate, scaled

F = TypeVar("F", bound=Factor)

# Settling one factor of mixed signs doubles the work or worse.
_MIXED_LIMIT = 5
# A product of k factors becomes a sum of 2 ** k over factors that start at 0.
_MOST_MOVED = 4000


def bounds_in_box(terms: Mapping[tuple[F, ...], int]) -> Bounds:
    """Bounds of the sum."""
    opposite = minimum_in_box(scaled(terms, -1))
    return Bounds(minimum_in_box(terms), None if opposite is None else -opposite)


def minimum_in_box(terms: Mapping[tuple[F, ...], int]) -> int | None:
    """A lower bound of the sum, or None where none is found. It is exact where no factor occurs in mixed signs."""
    if all(len(product) < 2 for product in terms):
        return _linear_minimum(terms)
    rising = _at_low_ends(terms)
    if rising is not None:
        return rising
    moved = from_zero(terms)
    return None if moved is None else _minimum(moved, _MIXED_LIMIT)


def _linear_minimum(terms: Mapping[tuple[F, ...], int]) -> int | None:
    """The least value of a sum in which no two factors meet: each stands at one of its ends."""
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


def from_zero(terms: Mapping[tuple[F, ...], int]) -> dict[tuple[F, ...], int] | None:
    """The sum over factors that start at 0: each is the distance from its low end, or else from its high end.

    None where a factor has no end, and where the sum would be very long.
    """
    left = _MOST_MOVED
    result: dict[tuple[F, ...], int] = {}
    for product, coefficient in terms.items():
        image: dict[tuple[F, ...], int] = {(): coefficient}
        for factor in product:
            low, high = factor.bounds.low, factor.bounds.high
            end, sign = (low, 1) if low is not None else (high, -1)
            if end is None:
                return None
            step: dict[tuple[F, ...], int] = {}
            for prefix, c in image.items():
                if low != high:
                    accumulate(step, {(*prefix, factor): sign * c})
                accumulate(step, {prefix: c}, end)
            image = step
            left -= len(image)
            if left < 0:
                return None
        accumulate(result, image)
    return result


def _minimum(terms: dict[tuple[F, ...], int], limit: int) -> int | None:
    while True:
        negative = dict.fromkeys(f for product, c in terms.items() if c < 0 for f in product)
        if not negative:
            return terms.get((), 0)
        positive = {f for product, c in terms.items() if c > 0 for f in product}
        falling = next((f for f in negative if f not in positive), None)
        if falling is None:
            break
        width = falling.bounds.width
        if width is None:
            return None
        # The sum only falls as this factor grows, wherever the others stand.
        terms = _at(terms, falling, [width**power for power in range(_degree(terms, falling) + 1)])
    mixed = next((f for f in negative if f.bounds.width is not None), None)
    if mixed is None:
        return _absorbed(terms)
    return _least_bernstein(terms, mixed, limit - 1) if limit else None


def _least_bernstein(terms: dict[tuple[F, ...], int], factor: F, limit: int) -> int | None:
    """The least lower bound of the sum's Bernstein coefficients in `factor`, rounded up, as the sum is an integer."""
    width = factor.bounds.width
    assert width is not None
    degree = _degree(terms, factor)
    scale = lcm(*(comb(degree, power) for power in range(degree + 1)))
    found = []
    for i in range(degree + 1):
        weights = [width**j * comb(i, j) * (scale // comb(degree, j)) for j in range(degree + 1)]
        value = _minimum(_at(terms, factor, weights), limit)
        if value is None:
            return None
        found.append(value)
    return -(-min(found) // scale)


def _degree(terms: Mapping[tuple[F, ...], int], factor: F) -> int:
    return max(product.count(factor) for product in terms)


def _at(terms: Mapping[tuple[F, ...], int], factor: F, weights: list[int]) -> dict[tuple[F, ...], int]:
    """The sum with `weights[power]` in the place of each power of `factor`."""
    result: dict[tuple[F, ...], int] = {}
    for product, coefficient in terms.items():
        rest = tuple(f for f in product if f != factor)
        accumulate(result, {rest: coefficient}, weights[len(product) - len(rest)])
    return result


def _absorbed(terms: Mapping[tuple[F, ...], int]) -> int | None:
    """The constant, where each negative term is made up for by higher powers of its factors, since `k * k >= k`."""
    spare = {product: c for product, c in terms.items() if c > 0 and product}
    for product, coefficient in terms.items():
        if coefficient > 0 or not product:
            continue
        missing = -coefficient
        for higher in spare:
            if set(higher) == set(product) and all(higher.count(f) >= product.count(f) for f in product):
                taken = min(missing, spare[higher])
                spare[higher] -= taken
                missing -= taken
        if missing:
            return None
    return terms.get((), 0)
