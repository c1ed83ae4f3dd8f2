"""log, log2, log10, log1p, pow and rsqrt of f64 Terms."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan
from typing import NamedTuple

from tirlite.ir.dtype import f64
from tirlite.ir.formula import Term, clamped
from tirlite.ir.functions import coefficients
from tirlite.ir.functions.constants import ln2, ln10, parts
from tirlite.ir.functions.exponential import exp_of, reduced
from tirlite.ir.functions.pairs import Pair, add, constant, divide, multiply, product_of, scale, sum_of, sum_of_larger
from tirlite.ir.functions.series import polynomial

_ROOT_OF_HALF = 0x3FE6A09E667F3BCD  # the bits of the square root of 1/2
_LEAST_NORMAL = 2.0**-1022
_ROUNDER = 1.5 * 2.0**52
_UPPER_DIGITS = -(1 << 27)


class Decomposed(NamedTuple):
    """A positive number as `2^k * m` with m between the roots of 1/2 and 2; k as an f64."""

    k: Term
    m: Term


def split(x: Term) -> Decomposed:
    tiny = x < _LEAST_NORMAL
    bits = tiny.where(x * 2.0**54, x).bits
    exponent = (bits - _ROOT_OF_HALF) >> 52
    m = (bits - (exponent << 52)).as_type(f64)
    # Convert to f64: the integer becomes the low bits of the rounder.
    k = (exponent + 0x4338000000000000).as_type(f64) - _ROUNDER
    return Decomposed(tiny.where(k - 54.0, k), m)


def log_pair(x: Term) -> Pair:
    """The logarithm of a positive finite number, to a relative error of about 2^-65."""
    parted = split(x)
    return _log_pair(parted.k, Pair(parted.m - 1.0, x.like(0.0)))


def _log_pair(k: Term, f: Pair) -> Pair:
    """k ln 2 + log(1 + f), as 2 atanh(f / (2 + f))."""
    below = sum_of_larger(2.0, f.high)
    s = divide(f, sum_of_larger(below.high, below.low + f.low))
    z = multiply(s, s)
    cube = multiply(s, z)
    third = multiply(cube, constant(k, parts(Fraction(2, 3), 2)))
    rest = (cube.high * z.high) * polynomial(coefficients.logarithm(2, 9), z.high)
    series = add(scale(s, k.like(2.0)), sum_of_larger(third.high, third.low + rest))
    first, second, last = parts(ln2(), 3, 40)
    base = sum_of(k * first, k * second)
    return add(Pair(base.high, base.low + k * last), series)


def log(x: Term) -> Term:
    parted = split(x)
    return at_edges(x, _log(parted.k, parted.m - 1.0, x.like(0.0)))


def _log(k: Term, f: Term, missing: Term) -> Term:
    """k ln 2 + log(1 + f) + missing, the last being small."""
    s = f / (f + 2.0)
    z = s * s
    # Write 2 s = f - s f and s f = f^2 / 2 - s f^2 / 2, so that f, which is exact, is added last.
    square = 0.5 * f * f
    rest = z * polynomial(coefficients.logarithm(1, 8), z)
    first, second = parts(ln2(), 2, 40)
    return k * first - ((square - (s * (square + rest) + (k * second + missing))) - f)


def at_edges(x: Term, result: Term) -> Term:
    """`result`, corrected for a zero, negative, infinite or nan argument of a logarithm."""
    result = (x <= 0.0).where(x.equals(0.0).where(x.like(-inf), nan), result)
    return ((x < inf) | (x <= 0.0)).where(result, (x - x.like(0.0)))


def log1p(x: Term) -> Term:
    total = sum_of(1.0, x)
    parted = split(total.high)
    result = _log(parted.k, parted.m - 1.0, total.low / total.high)
    result = at_edges(total.high, result)
    return (abs(x) < 2.0**-54).where(x, result)


def log2(x: Term) -> Term:
    return _in_base(x, 1 / ln2(), Fraction(1))


def log10(x: Term) -> Term:
    return _in_base(x, 1 / ln10(), ln2() / ln10())


def _in_base(x: Term, unit: Fraction, doubling: Fraction) -> Term:
    """`unit` times the natural logarithm; `doubling` is `unit` times ln 2.

    log(1 + f) is summed as in `_log`, in two parts, the first with few digits so that its product is exact.
    """
    parted = split(x)
    k, f = parted.k, parted.m - 1.0
    s = f / (f + 2.0)
    z = s * s
    square = 0.5 * f * f
    high = ((f - square).bits & _UPPER_DIGITS).as_type(f64)
    low = (f - high) - square + s * (square + z * polynomial(coefficients.logarithm(1, 8), z))
    first, second = parts(unit, 2, 26)
    whole, missing = parts(doubling, 2, 40)
    start = sum_of_larger(k * whole, high * first)
    return at_edges(x, start.high + (start.low + (k * missing + ((high + low) * second + low * first))))


def power(x: Term, y: Term) -> Term:
    """x^y, with the special cases of C's pow."""
    size = abs(x)
    logarithm = log_pair(size)
    edge = size.equals(0.0) | size.equals(inf)
    edge_log = size.equals(0.0).where(x.like(-inf), inf)
    product = product_of(edge.where(edge_log, logarithm.high), y)
    low = product.low + logarithm.low * y
    high = clamped(product.high, -800.0, 800.0)
    is_moderate = high.equals(product.high) & low.equals(low) & (edge ^ True)
    result = exp_of(reduced(high, is_moderate.where(low, 0.0)))
    return power_at_edges(x, y, result)


def power_at_edges(x: Term, y: Term, result: Term) -> Term:
    """x^y from `result`, |x|^y: corrects the sign and the special cases."""
    whole = y.round()
    is_whole = whole.equals(y)
    half = 0.5 * y
    is_odd = is_whole & half.round().differs(half)
    is_negative = (x < 0.0) | (1.0 / x < 0.0)
    result = (is_negative & is_odd).where(-result, result)
    result = (((x < 0.0) & (x > -inf) & (is_whole ^ True)) | x.differs(x)).where(nan, result)
    is_one = x.equals(1.0) | y.equals(0.0) | (abs(x).equals(1.0) & abs(y).equals(inf))
    return is_one.where(1.0, result)


def rsqrt(x: Term) -> Term:
    """1 / sqrt(x), corrected for both rounding errors."""
    is_tiny, is_huge = x < 2.0**-500, x > 2.0**500
    moved = x * is_tiny.where(x.like(2.0**600), is_huge.where(x.like(2.0**-600), 1.0))
    root = moved.sqrt()
    square = product_of(root, root)
    lacking = ((moved - square.high) - square.low) / (2.0 * root)
    inverse = 1.0 / root
    back = product_of(inverse, root)
    rest = (((1.0 - back.high) - back.low) - inverse * lacking) * inverse
    result = inverse + rest.equals(rest).where(rest, 0.0)
    return result * is_tiny.where(x.like(2.0**300), is_huge.where(x.like(2.0**-300), 1.0))
