"""Tells which numbers a float is clamped to, as `min(max(x, 0), 255)` is."""

from __future__ import annotations

from math import ceil, floor, inf

from tirlite.ir import Broadcast, Call, DType, Expr, FloatImm, Max, Min, Op

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


def _number(expr: Expr) -> float | None:
    bare = expr.value if isinstance(expr, Broadcast) else expr
    return bare.value if isinstance(bare, FloatImm) and bare.value == bare.value else None
