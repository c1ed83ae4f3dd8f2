"""Makes short polynomial approximations from power series by economisation, so no tables of coefficients are needed.

A truncated power series has its largest error at the ends of the interval. Converted to Chebyshev polynomials, its
last terms can be dropped at an error within a few percent of the least possible.
Source: C. Lanczos, Applied Analysis, 1956.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tirlite.ir.formula import Term


def economised(series: Sequence[Fraction], low: Fraction, high: Fraction, terms: int) -> tuple[float, ...]:
    """The coefficients, constant first, of a polynomial of `terms` terms that approximates `series` on an interval."""
    middle, radius = (low + high) / 2, (high - low) / 2
    moved = _shifted(series, middle, radius)
    chebyshev = _to_chebyshev(moved)[:terms]
    back = _from_chebyshev(chebyshev)
    return tuple(float(c) for c in _shifted(back, -middle / radius, 1 / radius))


def interpolated(nodes: Sequence[Fraction], values: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """The coefficients, constant first, of the polynomial through these points, by Newton's divided differences."""
    differences = list(values)
    for order in range(1, len(nodes)):
        for k in range(len(nodes) - 1, order - 1, -1):
            differences[k] = (differences[k] - differences[k - 1]) / (nodes[k] - nodes[k - order])
    result: list[Fraction] = []
    for node, difference in zip(reversed(nodes), reversed(differences), strict=True):
        grown = [Fraction(0), *result]
        for place, c in enumerate(result):
            grown[place] -= c * node
        grown[0] += difference
        result = grown
    return tuple(result)


def _shifted(series: Sequence[Fraction], middle: Fraction, radius: Fraction) -> list[Fraction]:
    """The coefficients of p(middle + radius * t) in t."""
    result: list[Fraction] = []
    for coefficient in reversed(series):
        grown = [Fraction(0), *(c * radius for c in result)]
        for place, c in enumerate(result):
            grown[place] += c * middle
        grown[0] += coefficient
        result = grown[: len(series)]
    return result


def _to_chebyshev(powers: Sequence[Fraction]) -> list[Fraction]:
    result: list[Fraction] = []
    for coefficient in reversed(powers):
        grown = _times_t(result)
        grown[0] += coefficient
        result = grown
    return result[: len(powers)]


def _times_t(chebyshev: Sequence[Fraction]) -> list[Fraction]:
    """The product with t: t T0 = T1, and t Tk = (T(k-1) + T(k+1)) / 2."""
    grown = [Fraction(0)] * (len(chebyshev) + 1)
    for k, c in enumerate(chebyshev):
        grown[k + 1] += c if k == 0 else c / 2
        if k:
            grown[k - 1] += c / 2
    return grown


def _from_chebyshev(chebyshev: Sequence[Fraction]) -> list[Fraction]:
    size = len(chebyshev)
    result = [Fraction(0)] * size
    before, current = [Fraction(0)] * size, [Fraction(1)] + [Fraction(0)] * (size - 1)
    for k, c in enumerate(chebyshev):
        result = [r + c * t for r, t in zip(result, current, strict=True)]
        factor = 1 if k == 0 else 2
        after = [factor * t for t in [Fraction(0), *current[:-1]]]
        if k:
            after = [a - b for a, b in zip(after, before, strict=True)]
        before, current = current, after
    return result


def polynomial(coefficients: Sequence[float], x: Term) -> Term:
    """The value at `x` by Horner's rule; the constant comes first."""
    result = x * coefficients[-1] + coefficients[-2] if len(coefficients) > 1 else x.like(coefficients[0])
    for coefficient in coefficients[-3::-1]:
        result = result * x + coefficient
    return result


def fused_polynomial(coefficients: Sequence[float], x: Term) -> Term:
    """The same by fused multiply-adds if `x` is f32."""
    result = x.like(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result = result.times_plus(x, coefficient)
    return result
