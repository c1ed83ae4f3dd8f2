"""Replaces a loop that counts the bits set in an integer by straight-line code, which can be vectorized."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from tirlite.analysis.loops.patterns import is_local_scalar
from tirlite.ir.dtype import DType, i8, i16, i32, i64, u8, u16, u32, u64
from tirlite.ir.expr import GT, NE, Add, BitAnd, Cast, Expr, IntImm, Load, Mul, ShiftRight, Sub, Var, const
from tirlite.ir.node import Node
from tirlite.ir.stmt import Let, Stmt, Store, While
from tirlite.ir.walk import is_constant

# The unsigned types, in which shifts bring in zeros.
_UNSIGNED = {i8: u8, i16: u16, i32: u32, i64: u64, u8: u8, u16: u16, u32: u32, u64: u64}


def counted(loop: While) -> tuple[Stmt, ...] | None:
    """What replaces a loop that removes the set bits of an integer one by one and counts them; None for other loops.

    That is `while v != 0: v &= v - 1; t += 1`, or, for unsigned `v`, `while v != 0: t += v & 1; v >>= 1`.
    """
    stmts, ones = loop.body.stmts, _ones_of(loop.condition)
    if ones is None or len(stmts) != 2 or not all(isinstance(stmt, Store) for stmt in stmts):
        return None
    takes = next((stmt for stmt in stmts if isinstance(stmt, Store) and stmt.buffer is ones.buffer), None)
    counts = next((stmt for stmt in stmts if isinstance(stmt, Store) and stmt.buffer is not ones.buffer), None)
    if takes is None or counts is None or not is_local_scalar(counts) or not isinstance(counts.value, Add):
        return None
    total, by = counts.value.a, counts.value.b
    if not isinstance(total, Load) or total.buffer is not counts.buffer or not counts.buffer.dtype.is_integer:
        return None
    drops_lowest, drops_last = _drops_lowest(takes.value, ones), counts is stmts[0] and _halves(takes.value, ones)
    if not (drops_lowest and is_constant(by, 1)) and not (drops_last and _is_last(by, ones)):
        return None
    return (*_written(loop, ones, counts, total),)


def _written(loop: While, ones: Load, counts: Store, total: Load) -> Iterator[Stmt]:
    count = yield from _count(ones)
    number = count if count.dtype == total.dtype else Cast(total.dtype, count)
    yield Store(counts.buffer, counts.indices, Add(total, number), span=loop.span)
    yield Store(ones.buffer, ones.indices, const(0, ones.dtype), span=loop.span)


def _count(ones: Load) -> Generator[Stmt, None, Expr]:
    """Yields lets for the number of set bits in pairs, groups of four, bytes, and in all; returns the last."""
    dtype = _UNSIGNED[ones.dtype]

    def named(value: Expr) -> Generator[Stmt, None, Expr]:
        let = Let(Var("ones", dtype), value)
        yield let
        return let.var

    bits = yield from named(ones if ones.dtype == dtype else Cast(dtype, ones))
    odd = BitAnd(_shifted(bits, 1), _each(0x55, dtype))
    pairs = yield from named(Sub(bits, odd))
    low = BitAnd(pairs, _each(0x33, dtype))
    fours = yield from named(Add(low, BitAnd(_shifted(pairs, 2), _each(0x33, dtype))))
    in_bytes = yield from named(BitAnd(Add(fours, _shifted(fours, 4)), _each(0x0F, dtype)))
    if dtype == u8:
        return in_bytes
    return (yield from named(_shifted(Mul(in_bytes, _each(1, dtype)), dtype.bits - 8)))


def _shifted(value: Expr, by: int) -> Expr:
    return ShiftRight(value, const(by, value.dtype))


def _each(byte: int, dtype: DType) -> Expr:
    """A constant with this value in each byte."""
    return const(int.from_bytes(bytes([byte]) * dtype.bytes, "little"), dtype)


def _ones_of(condition: Expr) -> Load | None:
    """The integer that a loop runs until it is 0."""
    if not isinstance(condition, NE | GT) or not isinstance(condition.b, IntImm) or condition.b.value != 0:
        return None
    ones = condition.a
    if not isinstance(ones, Load) or not is_local_scalar(ones) or ones.dtype not in _UNSIGNED:
        return None
    return ones if isinstance(condition, NE) or _UNSIGNED[ones.dtype] == ones.dtype else None


def _is(node: Node, ones: Load) -> bool:
    return isinstance(node, Load) and node.buffer is ones.buffer


def _drops_lowest(value: Expr, ones: Load) -> bool:
    """Whether a value is `v & (v - 1)`."""
    if not isinstance(value, BitAnd):
        return False
    a, b = (value.b, value.a) if _is(value.b, ones) else (value.a, value.b)
    return _is(a, ones) and isinstance(b, Sub) and _is(b.a, ones) and is_constant(b.b, 1)


def _halves(value: Expr, ones: Load) -> bool:
    """Whether a value is `v >> 1` of an unsigned `v`, so that the loop ends."""
    is_unsigned = _UNSIGNED[ones.dtype] == ones.dtype
    if not is_unsigned or not isinstance(value, ShiftRight):
        return False
    return _is(value.a, ones) and is_constant(value.b, 1)


def _is_last(value: Expr, ones: Load) -> bool:
    """Whether a value is `v & 1`, converted or not."""
    while isinstance(value, Cast):
        value = value.value
    if not isinstance(value, BitAnd):
        return False
    a, b = (value.b, value.a) if isinstance(value.a, IntImm) else (value.a, value.b)
    return _is(a, ones) and is_constant(b, 1)
