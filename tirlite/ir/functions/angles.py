"""Trigonometric functions from the sine and cosine of a reduced angle, and their inverses by short series."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import NamedTuple

from tirlite.ir.dtype import DType, f32
from tirlite.ir.formula import Term
from tirlite.ir.functions.coefficients import arcsine, arctangent
from tirlite.ir.functions.constants import pi
from tirlite.ir.functions.series import fused_polynomial

_HALF_PI = float(pi() / 2)
_TAN_OF_EIGHTH = 0.4142135623730951
_TAN_OF_THREE_EIGHTHS = 2.414213562373095


class Angle(NamedTuple):
    """`quadrant` right angles, of which the last two bits matter, and the sine and cosine of the remaining angle."""

    quadrant: Term
    sine: Term
    cosine: Term

    def sine_ahead(self, turn: int) -> Term:
        """The sine of the angle plus `turn` right angles."""
        quadrant = self.quadrant + turn
        result = (quadrant & 1).equals(0).where(self.sine, self.cosine)
        dtype = result.dtype
        return (result.bits ^ ((quadrant & 2) << (dtype.bits - 2))).as_type(dtype)


class Angles(NamedTuple):
    """The functions, given the reduction of an argument, and the type and number of terms for the inverses' series."""

    reduced: Callable[[Term], Angle]
    series: Callable[[Term], tuple[DType, int]]

    @property
    def functions(self) -> tuple[Callable[..., Term], ...]:
        """sin, cos, tan, asin, acos, atan and atan2."""
        return self.sin, self.cos, self.tan, self.asin, self.acos, self.atan, self.atan2

    def sin(self, x: Term) -> Term:
        return x.equals(0.0).where(x, self.reduced(x).sine_ahead(0).to(x.dtype))

    def cos(self, x: Term) -> Term:
        return self.reduced(x).sine_ahead(1).to(x.dtype)

    def tan(self, x: Term) -> Term:
        angle = self.reduced(x)
        is_even = (angle.quadrant & 1).equals(0)
        result = is_even.where(angle.sine, -angle.cosine) / is_even.where(angle.cosine, angle.sine)
        return x.equals(0.0).where(x, result.to(x.dtype))

    def atan(self, x: Term) -> Term:
        dtype, terms = self.series(x)
        size = abs(x).to(dtype)
        return _angle_of(size, size.like(1.0), terms).to(x.dtype).with_sign_of(x)

    def atan2(self, y: Term, x: Term) -> Term:
        """The angle of the point (x, y), scaled so that sums and products neither overflow nor lose digits."""
        dtype, terms = self.series(x)
        height, width = abs(y).to(dtype), abs(x).to(dtype)
        up = _towards_one((height > width).where(height, width)) if dtype == x.dtype else None
        # Two infinities count as equal, and 0 / 0 as 0.
        both = height.equals(inf) & width.equals(inf)
        height, width = (both.where(1.0, each if up is None else each * up) for each in (height, width))
        width = (height.equals(0.0) & width.equals(0.0)).where(1.0, width)
        angle = _angle_of(height, width, terms)
        angle = (x.bits < 0).where(float(pi()) - angle, angle)
        return (x.differs(x) | y.differs(y)).where(nan, angle.to(x.dtype).with_sign_of(y))

    def asin(self, x: Term) -> Term:
        dtype, terms = self.series(x)
        size = abs(x).to(dtype)
        is_large = size > 0.5
        part = _half_of_arcsine(is_large, size, size, terms)
        result = is_large.where(_HALF_PI - 2.0 * part, part).to(x.dtype)
        return (abs(x) <= 1.0).where(result.with_sign_of(x), nan)

    def acos(self, x: Term) -> Term:
        dtype, terms = self.series(x)
        wide = x.to(dtype)
        size = abs(wide)
        is_large = size > 0.5
        part = _half_of_arcsine(is_large, size, wide, terms)
        near_end = (wide < 0.0).where(float(pi()) - 2.0 * part, 2.0 * part)
        return (size <= 1.0).where(is_large.where(near_end, _HALF_PI - part), nan).to(x.dtype)


def _towards_one(size: Term) -> Term:
    """The factor by which very large and very small numbers are scaled."""
    least = 2.0**-60 if size.dtype == f32 else 2.0**-960
    return (size > 1.0 / least).where(size.like(2.0**-4), (size < least).where(size.like(2.0**60), 1.0))


def _angle_of(height: Term, width: Term, terms: int) -> Term:
    """The angle of a point with nonnegative coordinates."""
    is_steep = height > width * _TAN_OF_THREE_EIGHTHS
    is_middle = (height > width * _TAN_OF_EIGHTH) ^ is_steep
    above = is_steep.where(-width, is_middle.where(height - width, height))
    below = is_steep.where(height, is_middle.where(height + width, width))
    t = above / below
    z = t * t
    start = is_steep.where(_HALF_PI, is_middle.where(t.like(_HALF_PI / 2), 0.0))
    return start + (t * z).times_plus(fused_polynomial(arctangent(terms), z), t)


def _half_of_arcsine(is_large: Term, size: Term, x: Term, terms: int) -> Term:
    """asin(x) up to 1/2; beyond, half of pi / 2 - asin(x)."""
    z = is_large.where(0.5 * (1.0 - size), size * size)
    root = is_large.where(z.sqrt(), x)
    return (root * z).times_plus(fused_polynomial(arcsine(terms), z), root)
