"""Tells which numbers a float is clamped to, as `min(max(x, 0), 255)` is."""

from __future__ import annotations

from math import ceil, floor, inf

from tirlite.ir import Binary, Broadcast, Call, Cast, DType, Expr, FloatImm, IntImm, Max, Min, Op, f64

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
