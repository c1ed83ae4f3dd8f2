"""sin, cos and tan of an f64 Term.

Every argument is reduced in the same way: it is multiplied by those digits of 2 / pi that matter to it.
Source: M. Payne, R. Hanek, Radian reduction for trigonometric functions, 1983.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from tirlite.ir.dtype import f64
from tirlite.ir.formula import Term
from tirlite.ir.functions import coefficients
from tirlite.ir.functions.constants import parts, pi
from tirlite.ir.functions.pairs import Pair, add, constant, divide, multiply, product_of, sum_of, sum_of_larger
from tirlite.ir.functions.series import polynomial

_ROUNDER = 1.5 * 2.0**52
_STEP = 16  # binary digits of 2 / pi per row of the table
_ROWS = 1024 // _STEP


class Angle(NamedTuple):
    """An argument as `quadrant * pi / 2 + rest`, where only the last two bits of the integer matter."""

    quadrant: Term
    rest: Pair


@cache
def _table() -> tuple[tuple[float, ...], ...]:
    """For each row, 2 / pi times a power of two, modulo 4, in four parts."""
    rows = [parts((2 / pi()) * 2 ** (_STEP * row) % 4, 4) for row in range(_ROWS)]
    return tuple(tuple(row[place] for row in rows) for place in range(4))


def reduce(x: Term) -> Angle:
    """Reduces to at most pi / 4, with a relative error of 2^-70."""
    exponent = ((x.bits >> 52) & 0x7FF) - 1075
    # From 2^52 on, `scaled` is an integer, so the multiples of 4 that the table omits do not matter.
    row = (exponent > 0).where(exponent >> 4, 0)
    row = (row > _ROWS - 1).where(_ROWS - 1, row)
    scaled = x * ((1023 - (row << 4)) << 52).as_type(f64)
    products = [product_of(scaled, row.lookup(column)) for column in _table()]
    first, second, third, fourth = products
    high = sum_of(_mod_4(first.high), _mod_4(first.low))
    total = sum_of(high.high, _mod_4(second.high))
    shifted = total.high + _ROUNDER
    left = sum_of(total.high - (shifted - _ROUNDER), total.low + high.low)
    turn = add(left, sum_of(second.low, third.high))
    turn = sum_of_larger(turn.high, turn.low + (third.low + fourth.high))
    return Angle(shifted.bits, multiply(turn, constant(x, parts(pi() / 2, 2))))


def _mod_4(quadrants: Term) -> Term:
    """The value minus a multiple of 4, at most 2 in size; exact."""
    return quadrants - 4.0 * (0.25 * quadrants).round()


def _sin_of(y: Pair, z: Term) -> Term:
    cube = z * y.high
    return y.high + (y.low * (1.0 - 0.5 * z) + cube * polynomial(coefficients.sine(7), z))


def _cos_of(y: Pair, z: Term) -> Term:
    half = 0.5 * z
    near = 1.0 - half
    return near + (((1.0 - near) - half) + (z * z * polynomial(coefficients.cosine(7), z) - y.high * y.low))


def _sine_ahead(x: Term, turn: int) -> Term:
    """sin(x + turn * pi / 2)."""
    angle = reduce(x)
    z = angle.rest.high * angle.rest.high
    sine, cosine = _sin_of(angle.rest, z), _cos_of(angle.rest, z)
    quadrant = angle.quadrant + turn
    result = (quadrant & 1).equals(0).where(sine, cosine)
    return (result.bits ^ ((quadrant & 2) << 62)).as_type(f64)


def sin(x: Term) -> Term:
    return (abs(x) < 2.0**-27).where(x, _sine_ahead(x, 0))


def cos(x: Term) -> Term:
    return _sine_ahead(x, 1)


def tan(x: Term) -> Term:
    angle = reduce(x)
    y = angle.rest
    z = multiply(y, y)
    cube = y.high * z.high
    sine = sum_of_larger(y.high, y.low + cube * polynomial(coefficients.sine(7), z.high))
    near = sum_of_larger(1.0, -0.5 * z.high)
    cosine = sum_of_larger(
        near.high, near.low - 0.5 * z.low + z.high * z.high * polynomial(coefficients.cosine(7), z.high)
    )
    is_even = (angle.quadrant & 1).equals(0)
    above = Pair(is_even.where(sine.high, -cosine.high), is_even.where(sine.low, -cosine.low))
    below = Pair(is_even.where(cosine.high, sine.high), is_even.where(cosine.low, sine.low))
    return (abs(x) < 2.0**-27).where(x, divide(above, below).value)
