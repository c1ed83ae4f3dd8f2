"""Arithmetic on floats beyond single instructions: floor division, its remainder, minimum and maximum.

Each function takes operands without types and gives the name of the result.
"""

from __future__ import annotations

from tirlite.codegen.text import FunctionText
from tirlite.codegen.types import constant, register_type
from tirlite.ir import DType, bool_


def floor_div(out: FunctionText, dtype: DType, a: str, b: str) -> str:
    """The floor of the exact quotient as NumPy computes it: from the remainder, a / b where b is zero."""
    kind = register_type(dtype)
    zero, one = constant(0.0, dtype), constant(1.0, dtype)
    remainder, differs = _remainder(out, dtype, a, b)
    exact = out.value(f"fsub {kind} {a}, {remainder}")
    quotient = out.value(f"fdiv {kind} {exact}, {b}")
    less = out.value(f"fsub {kind} {quotient}, {one}")
    quotient = _select(out, dtype, differs, less, quotient)
    floor = out.intrinsic("floor", dtype, quotient)
    # The quotient is an integer up to rounding; where rounding went below it, the floor is one too small.
    short = out.value(f"fcmp ogt {kind} {out.value(f'fsub {kind} {quotient}, {floor}')}, {constant(0.5, dtype)}")
    rounded = _select(out, dtype, short, out.value(f"fadd {kind} {floor}, {one}"), floor)
    plain = out.value(f"fdiv {kind} {a}, {b}")
    signed_zero = out.intrinsic("copysign", dtype, zero, plain)
    nonzero = out.value(f"fcmp une {kind} {quotient}, {zero}")
    result = _select(out, dtype, nonzero, rounded, signed_zero)
    by_zero = out.value(f"fcmp oeq {kind} {b}, {zero}")
    return _select(out, dtype, by_zero, plain, result)


def floor_mod(out: FunctionText, dtype: DType, a: str, b: str) -> str:
    """The remainder with the divisor's sign, a zero included; nan where b is zero."""
    kind = register_type(dtype)
    zero = constant(0.0, dtype)
    remainder, differs = _remainder(out, dtype, a, b)
    moved = _select(out, dtype, differs, out.value(f"fadd {kind} {remainder}, {b}"), remainder)
    signed_zero = out.intrinsic("copysign", dtype, zero, b)
    nonzero = out.value(f"fcmp une {kind} {remainder}, {zero}")
    result = _select(out, dtype, nonzero, moved, signed_zero)
    by_zero = out.value(f"fcmp oeq {kind} {b}, {zero}")
    return _select(out, dtype, by_zero, remainder, result)


def _remainder(out: FunctionText, dtype: DType, a: str, b: str) -> tuple[str, str]:
    """The remainder of truncated division, and whether it is nonzero with another sign than `b`."""
    kind = register_type(dtype)
    flags = register_type(bool_.with_lanes(dtype.lanes))
    zero = constant(0.0, dtype)
    remainder = out.value(f"frem {kind} {a}, {b}")
    signs = out.value(
        f"xor {flags} {out.value(f'fcmp olt {kind} {b}, {zero}')}, {out.value(f'fcmp olt {kind} {remainder}, {zero}')}"
    )
    nonzero = out.value(f"fcmp une {kind} {remainder}, {zero}")
    return remainder, out.value(f"and {flags} {nonzero}, {signs}")


def minimum(out: FunctionText, dtype: DType, a: str, b: str) -> str:
    return _choose(out, "olt", dtype, a, b)


def maximum(out: FunctionText, dtype: DType, a: str, b: str) -> str:
    return _choose(out, "ogt", dtype, a, b)


def _choose(out: FunctionText, comparison: str, dtype: DType, a: str, b: str) -> str:
    """`a` where it compares so with `b`, or is nan; else `b`."""
    kind = register_type(dtype)
    flags = register_type(bool_.with_lanes(dtype.lanes))
    better = out.value(f"fcmp {comparison} {kind} {a}, {b}")
    nan = out.value(f"fcmp uno {kind} {a}, {a}")
    return _select(out, dtype, out.value(f"or {flags} {better}, {nan}"), a, b)


def _select(out: FunctionText, dtype: DType, condition: str, yes: str, no: str) -> str:
    kind = register_type(dtype)
    flags = register_type(bool_.with_lanes(dtype.lanes))
    return out.value(f"select {flags} {condition}, {kind} {yes}, {kind} {no}")
