"""Folds operations that need no instruction: on two constants, or with a neutral operand."""

from __future__ import annotations

from collections.abc import Callable

from tirlite.codegen.llvm.values import FALSE, TRUE, Value, integer
from tirlite.ir import i64

_SUMS = frozenset(("add", "sub", "or", "shl", "lshr", "ashr"))
_PARTS = frozenset(("mul", "sdiv", "udiv"))
_HALF = 1 << 63
_WHOLE: dict[str, Callable[[int, int], int]] = {"add": int.__add__, "sub": int.__sub__, "mul": int.__mul__}
_OF_COUNTS: dict[str, Callable[[int, int], int]] = {"udiv": int.__floordiv__, "ashr": int.__rshift__}
_BY_SIZE = (int.__lt__, int.__le__, int.__gt__, int.__ge__)
_ORDERS: dict[str, Callable[[int, int], bool]] = {
    "eq": int.__eq__,
    "ne": int.__ne__,
    **{f"{sign}{kind}": order for sign in "su" for kind, order in zip(("lt", "le", "gt", "ge"), _BY_SIZE, strict=True)},
}


def known_result(name: str, a: Value, b: Value) -> Value | None:
    """The result of an i64 operation that needs no instruction: a constant or an operand; else None."""
    kind = name.split(" ", 1)[0]
    x, y = a.number, b.number
    if y is not None and ((y == 0 and kind in _SUMS) or (y == 1 and kind in _PARTS)):
        return a
    if a.dtype is not i64:
        return None
    if x is not None and y is not None and (kind in _WHOLE or (kind in _OF_COUNTS and x >= 0 < y < _HALF)):
        return integer(((_WHOLE | _OF_COUNTS)[kind](x, y) + _HALF) % (2 * _HALF) - _HALF)
    if (kind == "add" and x == 0) or (kind == "mul" and x == 1):
        return b
    is_none = (kind in ("mul", "and") and 0 in (x, y)) or (kind == "sub" and a.text == b.text)
    return integer(0) if is_none else None


def known_order(name: str, a: Value, b: Value) -> Value | None:
    """The result of a comparison of two i64 constants; else None."""
    kind = name.removeprefix("icmp ")
    if a.dtype is not i64 or a.number is None or b.number is None or kind not in _ORDERS:
        return None
    wrapped = 2 * _HALF if kind.startswith("u") else 0
    x, y = (each % wrapped if wrapped else each for each in (a.number, b.number))
    return TRUE if _ORDERS[kind](x, y) else FALSE
