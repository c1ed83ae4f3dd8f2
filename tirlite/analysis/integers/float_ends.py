"""Bounds floats that are computed from integers and clamped to them, as places in an image are."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor, inf, trunc
from typing import TypeAlias

from tirlite.analysis.integers.array_bounds import NO_ARRAYS, ArrayBounds, magnitude
from tirlite.analysis.integers.definitions import Definitions
from tirlite.ir.dtype import DType, f32, f64
from tirlite.ir.expr import Add, Binary, Broadcast, Call, Cast, Div, Expr, FloatImm, IntImm, Max, Min, Mul, Sub, Var
from tirlite.ir.op import Op
from tirlite.ir.trampoline import Steps
from tirlite.sizes import Size, maximum, minimum
from tirlite.sizes.unknown import Ends, is_nonnegative, is_positive

_TO_WHOLE = (Op.FLOOR, Op.CEIL, Op.ROUND, Op.TRUNC)


def reach(expr: Expr) -> tuple[float, float]:
    """The ends of a float, unless it is nan."""
    chain: list[Expr] = []
    while isinstance(expr, Min | Max) or (isinstance(expr, Call) and expr.op in _TO_WHOLE):
        chain.append(expr)
        expr = expr.args[0] if isinstance(expr, Call) else expr.a if _number(expr.a) is None else expr.b
    low, high = -inf, inf
    for each in reversed(chain):
        if isinstance(each, Min | Max):
            end = _number(each.b) if _number(each.a) is None else _number(each.a)
            if end is not None:
                pick = min if isinstance(each, Min) else max
                low, high = pick(low, end), pick(high, end)
        else:
            low, high = (low if low == -inf else floor(low)), (high if high == inf else ceil(high))
    return low, high


def is_within(expr: Expr, target: DType) -> bool:
    """Whether a float is nan, or rounds towards zero to one of the numbers of an integer type."""
    low, high = reach(expr)
    return target.min - 1 < low and high < target.max + 1


def converted(expr: Expr) -> tuple[int, int]:
    """The ends of a float with ends, or of its lanes, as an integer that holds them: nan becomes 0."""
    low, high = reach(expr)
    return min(int(low), 0), max(int(high), 0)


def rounded_between(expr: Binary) -> tuple[Cast, int, int] | None:
    """The float that becomes an integer, and the ends of that in `min(max(tl.i64(x), 0), 255)`; None elsewhere.

    Ends have 0 between them, which nan becomes, and are floats as well: so `x` may be kept between them instead.
    """
    ends: dict[type[Expr], int] = {}
    inner: Expr = expr
    while isinstance(inner, Min | Max) and type(inner) not in ends:
        number, other = (inner.a, inner.b) if _whole(inner.a) is not None else (inner.b, inner.a)
        if (end := _whole(number)) is None:
            return None
        ends[type(inner)], inner = end, other
    if len(ends) < 2 or not isinstance(inner, Cast) or inner.value.dtype.scalar.bits < 32:
        return None
    low, high = ends[Max], ends[Min]
    largest = 2**53 if inner.value.dtype.scalar == f64 else 2**24
    is_fit = inner.value.dtype.is_float and -largest <= low <= 0 <= high <= largest
    return (inner, low, high) if is_fit else None


def _whole(expr: Expr) -> int | None:
    bare = expr.value if isinstance(expr, Broadcast) else expr
    return bare.value if isinstance(bare, IntImm) else None


def _number(expr: Expr) -> float | None:
    bare = expr.value if isinstance(expr, Broadcast) else expr
    return bare.value if isinstance(bare, FloatImm) and bare.value == bare.value else None


# A number that a float is never below, and an integer that it never exceeds, unless it is nan.
Between: TypeAlias = "tuple[float, Size | None]"

_ANYTHING: Between = (-inf, None)
# Bits of what is told exactly: all integers up to two to that power are floats.
_DIGITS = {f32: 24, f64: 53}
_WHOLE: dict[Op, Callable[[float], int]] = {Op.FLOOR: floor, Op.CEIL: ceil, Op.ROUND: round, Op.TRUNC: trunc}
# This many operations are looked through, one inside of another.
_MOST_LEVELS = 10
# More than what rounding takes away from a number of 24 bits.
_SLACK = 2.0**-20


class FloatEnds:
    """The ends of floats; `ends_of` tells those of an integer, and `arrays` how large extents may be."""

    def __init__(
        self, ends_of: Callable[[Expr], Steps[Ends]], definitions: Definitions, arrays: ArrayBounds = NO_ARRAYS
    ) -> None:
        self._ends_of = ends_of
        self._definitions = definitions
        self._arrays = arrays

    def converted(self, cast: Cast) -> Steps[Ends]:
        """The ends of a float that becomes an integer, which saturates; nan becomes 0."""
        target = cast.dtype.scalar
        if is_within(cast.value, target):
            return converted(cast.value)
        low, high = yield self._between(cast.value, _MOST_LEVELS)
        narrow = target.bits < 64
        least = None if low == -inf else min(trunc(low), 0)
        if narrow:
            least = target.min if least is None else max(least, target.min)
        most = None if high is None else maximum(high, 0)
        return least, target.max if narrow and not isinstance(most, int) else most

    def _between(self, expr: Expr, levels: int) -> Steps[Between]:
        while isinstance(expr, Broadcast | Var):
            named = expr if isinstance(expr, Broadcast) else self._definitions.of(expr)
            if named is None or named.value is None:
                return _ANYTHING
            expr = named.value
        if expr.dtype.scalar not in _DIGITS or levels == 0:
            return _ANYTHING
        if isinstance(expr, FloatImm):
            return (expr.value, ceil(expr.value)) if abs(expr.value) < inf else _ANYTHING
        if isinstance(expr, Cast):
            cast: Between = yield self._cast(expr, levels)
            return cast
        if isinstance(expr, Call) and expr.op in _WHOLE:
            low, high = yield self._between(expr.args[0], levels - 1)
            return (low if low == -inf else _WHOLE[expr.op](low)), high
        if not isinstance(expr, Min | Max | Add | Sub | Mul | Div):
            return _ANYTHING
        a: Between = yield self._between(expr.a, levels - 1)
        b: Between = yield self._between(expr.b, levels - 1)
        return _combined(expr, a, b)

    def _cast(self, expr: Cast, levels: int) -> Steps[Between]:
        source = expr.value.dtype.scalar
        if source.is_float:
            low, high = yield self._between(expr.value, levels - 1)
            return low - abs(low) * _SLACK, self._rounded(high, expr.dtype)
        if not source.is_integer:
            return _ANYTHING
        first, last = yield self._ends_of(expr.value)
        if isinstance(first, int):
            low = float(first) - (0 if abs(first) <= 1 << _DIGITS[f32] else abs(first) * _SLACK)
        else:
            low = -inf if first is None or not is_nonnegative(first) else float(is_positive(first))
        return low, self._rounded(last, expr.dtype)

    def _rounded(self, high: Size | None, dtype: DType) -> Size | None:
        """What a number up to `high` is at most as a float: up to 2**24 integers are floats of 32 bits.

        Beyond, one of n is rounded by no more than n - 2**24.
        """
        if high is None or not is_nonnegative(high):
            return 0 if isinstance(high, int) else None
        exact = 1 << _DIGITS[dtype.scalar]
        return high if magnitude(high, self._arrays) <= exact else maximum(high, 2 * high - exact)


def _combined(expr: Min | Max | Add | Sub | Mul | Div, a: Between, b: Between) -> Between:
    (low, high), (least, most) = a, b
    if isinstance(expr, Min):
        known = [each for each in (high, most) if each is not None]
        return min(low, least), minimum(*known) if known else None
    if isinstance(expr, Max):
        return max(low, least), None if high is None or most is None else maximum(high, most)
    if isinstance(expr, Mul):
        return (0.0 if low >= 0 and least >= 0 else -inf), None
    if isinstance(expr, Div):
        return (0.0 if low >= 0 and least > 0 else -inf), None
    if isinstance(expr, Sub):
        taken = expr.b.value if isinstance(expr.b, Broadcast) else expr.b
        least = -taken.value if isinstance(taken, FloatImm) else -inf
    total = low + least
    return total - abs(total) * _SLACK if total < inf else -inf, None
