"""1 / x, and 1 / x and 1 / sqrt(x) of an f32 Term at up to 2 ULP, by Newton's method.

The first value is computed from the bits of the argument, so that all machines start from the same one. Arguments that
have no start this way, as 0, infinities, nan and most denormals, take the exact operation. These are found by what is
left of the error, and rare; so the exact operation is only carried out if some lane needs it.
"""

from __future__ import annotations

from tirlite.ir.formula import Term

# Subtracting the bits of an f32 from the first gives its reciprocal within 6 %, and half of them from the second its
# reciprocal square root within 4 %. Source of the second: Lomont, Fast Inverse Square Root (2003). With both, no f32
# errs by more than 1.02 and 1.49 ULP: all were tried.
_RECIPROCAL, _RSQRT = 0x7EF3A000, 0x5F3759DF
# The error left by the first step is below this if there was a start.
_LEFT = 2.0**-12


def reciprocal(x: Term) -> Term:
    return 1.0 / x


def fast_reciprocal(x: Term) -> Term:
    """A step of third order, and one of second order."""
    y = (_RECIPROCAL - x.bits).as_type(x.dtype)
    error = (-x).times_plus(y, 1.0)
    y = y.times_plus(error.times_plus(error, error), y)
    error = (-x).times_plus(y, 1.0)
    return y.times_plus(error, y).unless(abs(error) < _LEFT, lambda: 1.0 / x)


def fast_rsqrt(x: Term) -> Term:
    """The same for y with x * y * y = 1."""
    y = (_RSQRT - (x.bits >> 1)).as_type(x.dtype)
    error = (-(x * y)).times_plus(y, 1.0)
    y = y.times_plus(error.times_plus(0.375, 0.5) * error, y)
    error = (-(x * y)).times_plus(y, 1.0)
    return (y * 0.5).times_plus(error, y).unless(abs(error) < _LEFT, lambda: 1.0 / x.sqrt())
