"""Computes the value of an integer expression as an exact integer, from the values of its variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tirlite.ir import (
    Add,
    Cast,
    DType,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Max,
    Min,
    Mul,
    Neg,
    Node,
    PrimFunc,
    ShiftLeft,
    Sub,
    TruncDiv,
    TruncMod,
    Var,
    i64,
    statements_of,
    walk,
)


def _trunc_div(a: int, b: int) -> int:
    quotient = abs(a) // abs(b) if b else 0
    return quotient if (a < 0) == (b < 0) else -quotient


_OPERATIONS: dict[type[Expr], Callable[[int, int], int]] = {
    Add: lambda a, b: a + b,
    Sub: lambda a, b: a - b,
    Mul: lambda a, b: a * b,
    FloorDiv: lambda a, b: a // b if b else 0,
    FloorMod: lambda a, b: a % b if b else 0,
    TruncDiv: _trunc_div,
    TruncMod: lambda a, b: a - b * _trunc_div(a, b) if b else 0,
    Min: min,
    Max: max,
    ShiftLeft: lambda a, b: a << b if 0 <= b < 64 else 0,
}
_TAKEN = frozenset({Var, IntImm, Cast, Neg, *_OPERATIONS})


def is_arithmetic(extent: Expr) -> bool:
    """Whether `value_of` can take `extent`."""
    return stranger_in(extent) is None


def stranger_in(extent: Expr) -> Node | None:
    """What `value_of` cannot take, or None."""
    for node in walk(extent):
        if type(node) not in _TAKEN or not isinstance(node, Expr) or not node.dtype.is_integer:
            return node
    return None


def value_of(extent: Expr, values: Mapping[Var, int]) -> int:
    """The value of `extent`. Sums in i64 do not wrap, unlike in the kernel: a shape that would need it fits no array.

    Casts do, and narrower types: `tl.i64(tl.u8(n))` is 44 where n is 300.
    """
    results: list[int] = []
    stack: list[tuple[Expr, bool]] = [(extent, False)]
    while stack:
        node, ready = stack.pop()
        if isinstance(node, Var):
            results.append(values[node])
        elif isinstance(node, IntImm):
            results.append(node.value)
        elif not ready:
            stack.append((node, True))
            stack += [(child, False) for child in reversed(tuple(node.children())) if isinstance(child, Expr)]
        elif isinstance(node, Cast):
            results.append(_wrapped(results.pop(), node.dtype))
        elif isinstance(node, Neg):
            results.append(_computed(-results.pop(), node.dtype))
        else:
            b, a = results.pop(), results.pop()
            results.append(_computed(_OPERATIONS[type(node)](a, b), node.dtype))
    return results.pop()


def known_values(func: PrimFunc, given: Mapping[Var, int]) -> dict[Var, int]:
    """What is given on entry to a function, and what arithmetic makes of it in the lets of the function."""
    values = dict(given)
    for let in statements_of(func.body, Let):
        if is_known(let.value, values):
            values[let.var] = value_of(let.value, values)
    return values


def is_known(extent: Expr, values: Mapping[Var, int]) -> bool:
    """Whether `value_of` can take `extent` with these values."""
    return is_arithmetic(extent) and all(node in values for node in walk(extent) if isinstance(node, Var))


def _computed(value: int, dtype: DType) -> int:
    return value if dtype == i64 else _wrapped(value, dtype)


def _wrapped(value: int, dtype: DType) -> int:
    return (value - dtype.min) % (1 << dtype.bits) + dtype.min
