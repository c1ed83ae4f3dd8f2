"""The polynomials shared by several formulas, with as many terms as a type needs."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import comb, factorial

from tirlite.ir.functions.series import economised

_ANGLES = Fraction(0), Fraction(62, 100)  # of (pi / 4)^2, and some more
_ZERO = Fraction(0)


@cache
def exponential(terms: int) -> tuple[float, ...]:
    """(e^r - 1 - r) / r^2 for |r| <= ln 2 / 2."""
    end = Fraction(347, 1000)
    return economised([Fraction(1, factorial(k + 2)) for k in range(20)], -end, end, terms)


@cache
def logarithm(skipped: int, terms: int) -> tuple[float, ...]:
    """(2 atanh(s) - ...) / s^(2 skipped + 1) in s^2, for s up to 3 - 2 sqrt(2): 2 / (2 skipped + 1), ..."""
    series = [Fraction(2, 2 * k + 1) for k in range(skipped, skipped + 24)]
    return economised(series, _ZERO, Fraction(295, 10000), terms)


@cache
def sine(terms: int) -> tuple[float, ...]:
    """(sin(y) - y) / y^3 in y^2."""
    return economised([Fraction((-1) ** (k + 1), factorial(2 * k + 3)) for k in range(16)], *_ANGLES, terms)


@cache
def cosine(terms: int, skipped: int = 2) -> tuple[float, ...]:
    """(cos(y) - ...) / y^(2 skipped) in y^2: by default of (cos(y) - 1 + y^2 / 2) / y^4."""
    return economised([Fraction((-1) ** k, factorial(2 * k)) for k in range(skipped, skipped + 16)], *_ANGLES, terms)


@cache
def arctangent(terms: int) -> tuple[float, ...]:
    """(atan(t) - t) / t^3 in t^2, up to tan(pi / 8)."""
    return economised([Fraction((-1) ** (k + 1), 2 * k + 3) for k in range(50)], _ZERO, Fraction(172, 1000), terms)


@cache
def arcsine(terms: int) -> tuple[float, ...]:
    """(asin(x) - x) / x^3 in x^2, up to 1/4."""
    series = [Fraction(comb(2 * k, k), 4**k * (2 * k + 1)) for k in range(1, 40)]
    return economised(series, _ZERO, Fraction(1, 4), terms)
