"""Double-f64 arithmetic: sums and products as pairs of f64 with about twice the digits.

Source: T. J. Dekker, A floating-point technique for extending the available precision, 1971.
"""

from __future__ import annotations

from typing import NamedTuple

from tirlite.ir.dtype import f64
from tirlite.ir.formula import Operand, Term

_UPPER_DIGITS = -(1 << 27)
_HALF_OF_LOWER = 1 << 26


class Pair(NamedTuple):
    """The sum of two values, of which the second is within the rounding error of the first."""

    high: Term
    low: Term

    @property
    def value(self) -> Term:
        return self.high + self.low

    def __neg__(self) -> Pair:
        return Pair(-self.high, -self.low)


def sum_of(a: Operand, b: Term) -> Pair:
    """`a + b`, exactly."""
    total = a + b
    part = total - a
    return Pair(total, (a - (total - part)) + (b - part))


def sum_of_larger(a: Operand, b: Term) -> Pair:
    """`a + b`, exactly, if |a| >= |b|."""
    total = a + b
    return Pair(total, b - (total - a))


def halves(x: Term) -> Pair:
    """`x` as two parts of 26 digits and a sign, whose products are exact."""
    high = (x.bits + _HALF_OF_LOWER & _UPPER_DIGITS).as_type(f64)
    return Pair(high, x - high)


def product_of(a: Term, b: Term) -> Pair:
    """`a * b`, exactly."""
    product = a * b
    x, y = halves(a), halves(b)
    error = ((x.high * y.high - product) + x.high * y.low + x.low * y.high) + x.low * y.low
    return Pair(product, error)


def add(a: Pair, b: Pair) -> Pair:
    total = sum_of(a.high, b.high)
    return sum_of_larger(total.high, total.low + (a.low + b.low))


def multiply(a: Pair, b: Pair) -> Pair:
    product = product_of(a.high, b.high)
    return sum_of_larger(product.high, product.low + (a.high * b.low + a.low * b.high))


def divide(a: Pair, b: Pair) -> Pair:
    quotient = a.high / b.high
    back = product_of(quotient, b.high)
    rest = (((a.high - back.high) - back.low) + a.low) - quotient * b.low
    return sum_of_larger(quotient, rest / b.high)


def scale(a: Pair, factor: Term) -> Pair:
    """The product with a power of two."""
    return Pair(a.high * factor, a.low * factor)


def choose(condition: Term, yes: Pair, no: Pair) -> Pair:
    return Pair(condition.where(yes.high, no.high), condition.where(yes.low, no.low))


def constant(like: Term, value: tuple[float, ...]) -> Pair:
    return Pair(like.like(value[0]), like.like(value[1]))
