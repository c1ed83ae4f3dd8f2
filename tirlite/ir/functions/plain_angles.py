"""Computes angles from what they are of in the arithmetic of a Term alone, with nothing made good for."""

from __future__ import annotations

from math import nan

from tirlite.ir.formula import Term
from tirlite.ir.functions.coefficients import arcsine, arctangent
from tirlite.ir.functions.constants import pi
from tirlite.ir.functions.series import fused_polynomial

_HALF_PI = float(pi() / 2)
_TAN_OF_EIGHTH = 0.4142135623730951
_TAN_OF_THREE_EIGHTHS = 2.414213562373095


def angle_of(height: Term, width: Term, terms: int) -> Term:
    """The angle of a point neither of whose coordinates is negative."""
    is_steep = height > width * _TAN_OF_THREE_EIGHTHS
    is_middle = (height > width * _TAN_OF_EIGHTH) ^ is_steep
    above = is_steep.where(-width, is_middle.where(height - width, height))
    below = is_steep.where(height, is_middle.where(height + width, width))
    t = above / below
    z = t * t
    start = is_steep.where(_HALF_PI, is_middle.where(t.like(_HALF_PI / 2), 0.0))
    return start + (t * z).times_plus(fused_polynomial(arctangent(terms), z), t)


def arcsine_of(size: Term, terms: int) -> Term:
    """The arc sine of a number that is not negative, where it has one."""
    is_large = size > 0.5
    part = _half_of_arcsine(is_large, size, size, terms)
    return is_large.where(_HALF_PI - 2.0 * part, part)


def arccosine_of(x: Term, terms: int) -> Term:
    size = abs(x)
    is_large = size > 0.5
    part = _half_of_arcsine(is_large, size, x, terms)
    near_end = (x < 0.0).where(float(pi()) - 2.0 * part, 2.0 * part)
    return (size <= 1.0).where(is_large.where(near_end, _HALF_PI - part), nan)


def _half_of_arcsine(is_large: Term, size: Term, x: Term, terms: int) -> Term:
    """asin(x) up to 1/2, and beyond half of what it lacks of a right angle."""
    z = is_large.where(0.5 * (1.0 - size), size * size)
    root = is_large.where(z.sqrt(), x)
    return (root * z).times_plus(fused_polynomial(arcsine(terms), z), root)
