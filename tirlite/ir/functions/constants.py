"""Named constants as exact fractions, far more precise than any type, and their splitting into floats."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import isqrt

_ONE = 1 << 400  # the fixed-point unit of computed values
DIGITS = 1400  # binary digits of constants after the point; reducing the largest f64 by pi takes about 1200


def _atan_of_inverse(n: int, sign: int) -> int:
    """atan(1/n) with sign -1, atanh(1/n) with sign 1, as a multiple of 2^-DIGITS."""
    power = (1 << DIGITS + 32) // n
    total, odd, turn = 0, 1, 1
    while power:
        total += turn * (power // odd)
        power //= n * n
        odd += 2
        turn *= sign
    return total >> 32


@cache
def pi() -> Fraction:
    """By Machin's formula."""
    return Fraction(4 * (4 * _atan_of_inverse(5, -1) - _atan_of_inverse(239, -1)), 1 << DIGITS)


@cache
def ln2() -> Fraction:
    return Fraction(2 * _atan_of_inverse(3, 1), 1 << DIGITS)


@cache
def ln10() -> Fraction:
    return 3 * ln2() + Fraction(2 * _atan_of_inverse(9, 1), 1 << DIGITS)


@cache
def two_over_root_pi() -> Fraction:
    root = isqrt(int(pi() * (1 << 2 * DIGITS)))
    return Fraction(2 << DIGITS, root)


def atan(x: Fraction) -> Fraction:
    """For 0 <= x <= 1, good to 2^-200."""
    # Halving the angle twice makes the series short.
    halvings = 2
    for _ in range(halvings):
        x = _short(x / (1 + _root(1 + x * x)))
    total, power = Fraction(0), x
    for k in range(1, 260, 2):
        total += power / k if k % 4 == 1 else -power / k
        power = _short(power * x * x)
    return _short(total * 2**halvings)


def exp(x: Fraction) -> Fraction:
    """For -36 <= x <= 1, good to 2^-200 of 1."""
    total, term, k = 0, _ONE, 1
    while term:
        total += term
        size = abs(term) * abs(x.numerator) // (x.denominator * k)
        term = -size if (term < 0) != (x < 0) else size
        k += 1
    return Fraction(total, _ONE)


def erf(x: Fraction) -> Fraction:
    """For 0 <= x <= 6, good to 2^-200, by the series whose terms are all positive."""
    square = 2 * x * x
    total, term, k = 0, _ONE * x.numerator // x.denominator, 1
    while term:
        total += term
        term = term * square.numerator // (square.denominator * (2 * k + 1))
        k += 1
    return _short(Fraction(total, _ONE) * exp(-x * x) * two_over_root_pi())


def _root(x: Fraction) -> Fraction:
    return Fraction(isqrt(int(x * (1 << 600))), 1 << 300)


def _short(x: Fraction) -> Fraction:
    """`x` truncated to 400 binary digits after the point, which keeps fractions small."""
    return Fraction(int(x * _ONE), _ONE)


@cache
def parts(value: Fraction, count: int, digits: int = 53) -> tuple[float, ...]:
    """`count` floats with the sum `value`, each but the last with `digits` binary digits."""
    result = []
    for index in range(count):
        near = float(value)
        if index < count - 1 and digits < 53:
            size = abs(value)
            exponent = 0
            while size >= 2 ** (exponent + 1):
                exponent += 1
            while size < Fraction(2) ** exponent:
                exponent -= 1
            unit = Fraction(2) ** (exponent - digits + 1)
            near = float(round(value / unit) * unit)
        result.append(near)
        value -= Fraction(near)
    return tuple(result)
