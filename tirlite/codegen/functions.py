"""A math operation and its operands in, its value out: by intrinsic, by a function of libm, or by formula."""

from __future__ import annotations

from tirlite.codegen.halves import fused, is_half, narrow, widen
from tirlite.codegen.text import FunctionText
from tirlite.codegen.types import constant, register_type
from tirlite.ir import DType, Op, f32, u16

_INTRINSICS = {
    Op.SQRT: "sqrt",
    Op.EXP: "exp",
    Op.EXP2: "exp2",
    Op.LOG: "log",
    Op.LOG2: "log2",
    Op.LOG10: "log10",
    Op.SIN: "sin",
    Op.COS: "cos",
    Op.TAN: "tan",
    Op.ASIN: "asin",
    Op.ACOS: "acos",
    Op.ATAN: "atan",
    Op.ATAN2: "atan2",
    Op.SINH: "sinh",
    Op.COSH: "cosh",
    Op.TANH: "tanh",
    Op.POW: "pow",
    Op.FLOOR: "floor",
    Op.CEIL: "ceil",
    Op.ROUND: "roundeven",
    Op.TRUNC: "trunc",
    Op.FMA: "fma",
}
_LIBM = {Op.EXPM1: "expm1", Op.LOG1P: "log1p", Op.ERF: "erf"}

# Operations that cost about as much as an addition, and so may be evaluated in vain.
CHEAP = frozenset({Op.ABS, Op.FLOOR, Op.CEIL, Op.TRUNC, Op.ROUND, Op.ISNAN})


def math(out: FunctionText, op: Op, dtype: DType, operands: list[str]) -> str:
    """The value of `op`; all operands have type `dtype`."""
    if is_half(dtype):
        return _of_halves(out, op, dtype, operands)
    kind = register_type(dtype)
    if op is Op.ABS:
        return _absolute(out, dtype, operands[0])
    if op is Op.ISNAN:
        return out.value(f"fcmp uno {kind} {operands[0]}, {operands[0]}") if dtype.is_float else "false"
    if op is Op.RSQRT:
        root = out.intrinsic("sqrt", dtype, operands[0])
        return out.value(f"fdiv {kind} {constant(1.0, dtype)}, {root}")
    if op is Op.SIGMOID:
        exp = out.intrinsic("exp", dtype, out.value(f"fneg {kind} {operands[0]}"))
        return out.value(
            f"fdiv {kind} {constant(1.0, dtype)}, {out.value(f'fadd {kind} {constant(1.0, dtype)}, {exp}')}"
        )
    if op in _LIBM:
        return lane_by_lane(out, _LIBM[op] + ("f" if dtype.bits == 32 else ""), dtype, operands)
    return out.intrinsic(_INTRINSICS[op], dtype, *operands)


def _of_halves(out: FunctionText, op: Op, dtype: DType, operands: list[str]) -> str:
    """The function in f32, rounded once more. A sum of a product, which that would round wrongly, goes another way."""
    if op is Op.ABS:
        return out.value(f"and {register_type(dtype)} {operands[0]}, {constant(0x7FFF, u16.with_lanes(dtype.lanes))}")
    if op is Op.FMA:
        return fused(out, dtype, operands)
    wide = f32.with_lanes(dtype.lanes)
    value = math(out, op, wide, [widen(out, operand, dtype) for operand in operands])
    return value if op is Op.ISNAN else narrow(out, value, wide, dtype)


def _absolute(out: FunctionText, dtype: DType, a: str) -> str:
    if dtype.is_float:
        return out.intrinsic("fabs", dtype, a)
    if not dtype.is_signed:
        return a
    kind = register_type(dtype)
    # The flag says that |INT_MIN| is INT_MIN.
    return out.call(
        kind, f"llvm.abs.{'' if dtype.lanes == 1 else f'v{dtype.lanes}'}i{dtype.bits}", f"{kind} {a}", "i1 false"
    )


def lane_by_lane(out: FunctionText, name: str, dtype: DType, operands: list[str]) -> str:
    """A scalar function applied to each lane."""
    kind, scalar = register_type(dtype), register_type(dtype.scalar)
    if dtype.lanes == 1:
        return out.call(scalar, name, *(f"{scalar} {operand}" for operand in operands))
    result = "poison"
    for lane in range(dtype.lanes):
        parts = [out.value(f"extractelement {kind} {operand}, i64 {lane}") for operand in operands]
        value = out.call(scalar, name, *(f"{scalar} {part}" for part in parts))
        result = out.value(f"insertelement {kind} {result}, {scalar} {value}, i64 {lane}")
    return result
