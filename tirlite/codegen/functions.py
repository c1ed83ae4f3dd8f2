"""A math operation and its operands in, its value out: by instruction or by a formula of ours."""

from __future__ import annotations

from tirlite.codegen.formulas import call_formula
from tirlite.codegen.halves import fused, narrow, widen
from tirlite.codegen.text import FunctionText
from tirlite.codegen.types import constant, is_half, register_type
from tirlite.ir import DType, Op, f32, u16

_INTRINSICS = {
    Op.SQRT: "sqrt",
    Op.FLOOR: "floor",
    Op.CEIL: "ceil",
    Op.ROUND: "roundeven",
    Op.TRUNC: "trunc",
    Op.FMA: "fma",
}

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
    from tirlite.ir.functions import formula_of  # for kernels with elementary functions alone

    formula = formula_of(op, dtype.scalar)
    if formula is not None:
        return call_formula(
            out, f"{op.name.lower()}.{dtype.scalar}", formula, dtype, [(dtype, each) for each in operands]
        )
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
