"""Arithmetic on floats beyond single instructions: floor division, its remainder, minimum and maximum."""

from __future__ import annotations

from tirlite.codegen.text import FunctionText
from tirlite.codegen.values import Value, constant
from tirlite.ir import Expr, FloorDiv, Max, Min


def real_operation(out: FunctionText, kind: type[Expr], a: Value, b: Value) -> Value:
    """A floor division, its remainder, or an extremum."""
    if kind in (Min, Max):
        return _extremum(out, "fcmp olt" if kind is Min else "fcmp ogt", a, b)
    return _floor_div(out, a, b) if kind is FloorDiv else _floor_mod(out, a, b)


def _floor_div(out: FunctionText, a: Value, b: Value) -> Value:
    """The floor of the exact quotient as NumPy computes it: from the remainder, a / b where b is zero."""
    zero, one = constant(0.0, a.dtype), constant(1.0, a.dtype)
    remainder, differs = _remainder(out, a, b)
    quotient = out.op("fdiv", out.op("fsub", a, remainder), b)
    less = out.op("fsub", quotient, one)
    quotient = out.select(differs, less, quotient)
    floor = out.intrinsic("floor", quotient)
    # The quotient is an integer up to rounding; where rounding went below it, the floor is one too small.
    short = out.compare("fcmp ogt", out.op("fsub", quotient, floor), constant(0.5, a.dtype))
    rounded = out.select(short, out.op("fadd", floor, one), floor)
    plain = out.op("fdiv", a, b)
    signed_zero = out.intrinsic("copysign", zero, plain)
    nonzero = out.compare("fcmp une", quotient, zero)
    result = out.select(nonzero, rounded, signed_zero)
    return out.select(out.compare("fcmp oeq", b, zero), plain, result)


def _floor_mod(out: FunctionText, a: Value, b: Value) -> Value:
    """The remainder with the divisor's sign, a zero included; nan where b is zero."""
    zero = constant(0.0, a.dtype)
    remainder, differs = _remainder(out, a, b)
    moved = out.select(differs, out.op("fadd", remainder, b), remainder)
    signed_zero = out.intrinsic("copysign", zero, b)
    nonzero = out.compare("fcmp une", remainder, zero)
    result = out.select(nonzero, moved, signed_zero)
    return out.select(out.compare("fcmp oeq", b, zero), remainder, result)


def _remainder(out: FunctionText, a: Value, b: Value) -> tuple[Value, Value]:
    """The remainder of truncated division, and whether it is nonzero with another sign than `b`."""
    zero = constant(0.0, a.dtype)
    remainder = out.op("frem", a, b)
    signs = out.op("xor", out.compare("fcmp olt", b, zero), out.compare("fcmp olt", remainder, zero))
    return remainder, out.op("and", out.compare("fcmp une", remainder, zero), signs)


def _extremum(out: FunctionText, comparison: str, a: Value, b: Value) -> Value:
    """`a` where it compares so with `b`, or is nan; else `b`."""
    better = out.compare(comparison, a, b)
    return out.select(out.op("or", better, out.compare("fcmp uno", a, a)), a, b)
