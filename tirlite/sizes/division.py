"""Division with floor of sums: what comes out whole, and the smaller division that is left.

All functions hold for every value of the factors; those that divide by a sum hold where that sum is not 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import Generic, TypeVar

from tirlite.record import record
from tirlite.sizes.terms import Factor, accumulate, join, without

F = TypeVar("F", bound=Factor)


@record
class Division(Generic[F]):
    """A quotient or remainder, taken apart.

    x // y == whole + sign * (rest // by)
    x %  y == whole + sign * (rest %  by)

    `rest` is empty where nothing is left to divide.
    """

    whole: Mapping[tuple[F, ...], int]
    rest: Mapping[tuple[F, ...], int]
    by: Mapping[tuple[F, ...], int]
    sign: int = 1


def granule(product: tuple[F, ...], coefficient: int) -> int:
    """A number that divides every value of one term."""
    for factor in product:
        coefficient *= factor.divisor
    return abs(coefficient)


def divisor_of(terms: Mapping[tuple[F, ...], int]) -> int:
    """A number that divides every value of the sum; 0 for the empty sum."""
    return gcd(*(granule(product, coefficient) for product, coefficient in terms.items()))


def quotient_by_int(terms: Mapping[tuple[F, ...], int], k: int) -> Division[F]:
    """`terms // k` for positive `k`: multiples of `k` come out, common factors cancel, the constant is rounded."""
    whole: dict[tuple[F, ...], int] = {}
    rest: dict[tuple[F, ...], int] = {}
    for product, coefficient in terms.items():
        # Towards zero, so that `-n` stays `-n`; the constant is floored.
        part = coefficient // k if coefficient > 0 or not product else -(-coefficient // k)
        accumulate(whole, {product: part} if part else {})
        accumulate(rest, {product: coefficient - part * k} if coefficient != part * k else {})
    constant = rest.pop((), 0)
    if not rest:
        return Division(whole, {}, {(): 1})
    sign = 1
    if all(coefficient < 0 for coefficient in rest.values()):
        # floor(-x / k) == -floor((x + k - 1) / k)
        sign, constant = -1, k - 1 - constant
        rest = {product: -coefficient for product, coefficient in rest.items()}
    constant -= constant % gcd(k, divisor_of(rest))
    if constant:
        rest[()] = constant
    common = gcd(k, *rest.values())
    rest = {product: coefficient // common for product, coefficient in rest.items()}
    return Division(whole, rest, {(): k // common}, sign)


def remainder_by_int(terms: Mapping[tuple[F, ...], int], k: int) -> Division[F]:
    """`terms % k` for positive `k`: multiples of `k` are dropped, as far as the facts of the factors show them."""
    # Towards zero, so that `-n` stays `-n`.
    rest = {p: c % k if c > 0 else -(-c % k) for p, c in terms.items() if granule(p, c) % k}
    constant = rest.pop((), 0) % k
    if not rest:
        return Division({(): constant} if constant else {}, {}, {(): 1})
    step = gcd(k, divisor_of(rest))
    outside = constant % step
    if constant - outside:
        rest[()] = constant - outside
    common = gcd(k, *rest.values())
    rest = {product: coefficient // common for product, coefficient in rest.items()}
    return Division({(): outside} if outside else {}, rest, {(): k // common}, common)


def quotient_by_sum(terms: Mapping[tuple[F, ...], int], by: Mapping[tuple[F, ...], int]) -> Division[F]:
    """`terms // by`: what is an exact multiple of `by` comes out, a common number cancels."""
    whole, rest = _multiples(terms, by)
    common = gcd(*rest.values(), *by.values())
    if rest and all(coefficient < 0 for coefficient in by.values()):
        common = -common
    return Division(whole, _divided(rest, common), _divided(by, common))


def remainder_by_sum(terms: Mapping[tuple[F, ...], int], by: Mapping[tuple[F, ...], int]) -> Division[F]:
    """`terms % by`: exact multiples of `by` are dropped, a common number comes out."""
    _, rest = _multiples(terms, by)
    common = gcd(*rest.values(), *by.values())
    return Division({}, _divided(rest, common), _divided(by, common), common)


def _divided(terms: Mapping[tuple[F, ...], int], number: int) -> dict[tuple[F, ...], int]:
    return {product: coefficient // number for product, coefficient in terms.items()}


def _multiples(
    terms: Mapping[tuple[F, ...], int], by: Mapping[tuple[F, ...], int]
) -> tuple[dict[tuple[F, ...], int], dict[tuple[F, ...], int]]:
    """(q, r) such that terms == q * by + r, where q takes what divides exactly."""
    if len(by) > 1:
        return _multiples_of_sum(terms, by)
    ((divisor, scale),) = by.items()
    whole: dict[tuple[F, ...], int] = {}
    rest: dict[tuple[F, ...], int] = {}
    for product, coefficient in terms.items():
        left_over = without(product, divisor)
        if left_over is None or coefficient % scale:
            rest[product] = coefficient
        else:
            whole[left_over] = coefficient // scale
    return whole, rest


def _multiples_of_sum(
    terms: Mapping[tuple[F, ...], int], by: Mapping[tuple[F, ...], int]
) -> tuple[dict[tuple[F, ...], int], dict[tuple[F, ...], int]]:
    """As `_multiples`, of a sum of several terms: its leading term says how often it may be in there."""
    lead = max(by, key=len)
    scale = by[lead]
    whole: dict[tuple[F, ...], int] = {}
    rest = dict(terms)
    for product, coefficient in terms.items():
        cofactor = without(product, lead)
        if cofactor is None or coefficient % scale or rest.get(product) != coefficient:
            continue
        times = coefficient // scale
        part = {join(each, cofactor): times * c for each, c in by.items()}
        if all(rest.get(each) == c for each, c in part.items()):
            whole[cofactor] = times
            accumulate(rest, part, -1)
    return whole, rest
