"""Emits the value of a math function: by an instruction or by a formula."""

from __future__ import annotations

from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import FALSE, Value, constant, flags_of, is_half, suffix
from tirlite.ir import Op, u16

_INTRINSICS = {
    Op.SQRT: "sqrt",
    Op.FLOOR: "floor",
    Op.CEIL: "ceil",
    Op.ROUND: "roundeven",
    Op.TRUNC: "trunc",
    Op.FMA: "fma",
}


def math(out: FunctionText, op: Op, operands: list[Value]) -> Value:
    """The value of the math function `op`; all operands have the same type."""
    a, dtype = operands[0], operands[0].dtype
    if is_half(dtype):
        return _of_halves(out, op, operands)
    if op is Op.ABS:
        return _absolute(out, a)
    if op is Op.ISNAN:
        return out.compare("fcmp uno", a, a) if dtype.is_float else constant(0, flags_of(dtype))
    if op in _INTRINSICS:
        return out.intrinsic(_INTRINSICS[op], *operands)
    from tirlite.codegen.arithmetic.formulas import call_formula  # for kernels with elementary functions alone
    from tirlite.ir.functions import formula_of

    formula = formula_of(op, dtype.scalar)
    assert formula is not None
    return call_formula(out, f"{op.name.lower()}.{dtype.scalar}", formula, dtype, *operands)


def _of_halves(out: FunctionText, op: Op, operands: list[Value]) -> Value:
    """Computes the function in f32 and rounds the result; FMA needs `fused`, since rounding it twice would be wrong."""
    dtype = operands[0].dtype
    if op is Op.ABS:
        return out.op("and", operands[0], constant(0x7FFF, u16.with_lanes(dtype.lanes)))
    from tirlite.codegen.arithmetic.halves import fused, narrow, widen

    if op is Op.FMA:
        return fused(out, operands)
    value = math(out, op, [widen(out, operand) for operand in operands])
    return value if op is Op.ISNAN else narrow(out, value, dtype)


def _absolute(out: FunctionText, a: Value) -> Value:
    if a.dtype.is_float:
        return out.intrinsic("fabs", a)
    if not a.dtype.is_signed:
        return a
    # With this flag false, |INT_MIN| is INT_MIN and not undefined.
    return out.call(a.dtype, f"llvm.abs.{suffix(a.dtype)}", a, FALSE)
