"""Arithmetic that takes several instructions.

Integer operations give NumPy's values where the hardware would trap or LLVM's result is undefined: x // 0 = x % 0 = 0,
INT_MIN // -1 = INT_MIN, and a shift by the width or more shifts out all bits. On floats these are floor division, its
remainder, minimum and maximum.
"""

from __future__ import annotations

from collections.abc import Callable

from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import Value, constant, register_type
from tirlite.ir import Expr, FloorDiv, FloorMod, Max, Min, ShiftLeft, ShiftRight, TruncDiv, TruncMod, f32, f64, i32

Rule = Callable[[FunctionText, Value, Value], Value]

# With vectors this wide, LLVM folds a select and the load of its operand into a masked load. In a reduction that load
# then depends on the previous iteration's result; an arithmetic fence keeps the load unmasked.
_MASKED_BITS = 512


def integer_operation(out: FunctionText, kind: type[Expr], a: Value, b: Value) -> Value:
    """An integer division, remainder or shift."""
    if kind in _SHIFTS:
        return _SHIFTS[kind](out, a, b)
    if a.dtype.lanes > 1 and a.dtype.bits <= i32.bits and b.number is None:
        return _by_floats(out, kind, a, b)
    rule = _DIVISIONS[kind]
    by_function = out.conditions and b.number is None and a.dtype.lanes == 1
    return _by_function(out, kind.__name__, rule, a, b) if by_function else rule(out, a, b)


def _by_floats(out: FunctionText, kind: type[Expr], a: Value, b: Value) -> Value:
    """A lanewise division by a float division, since no processor has a vector division of integers.
    The quotient is exact: a float type with more than one extra bit of precision cannot round a non-integer quotient up
    to the next integer.
    """
    dtype = a.dtype
    divisor = _harmless_divisor(out, a, b)
    wide = (f32 if dtype.bits < i32.bits else f64).with_lanes(dtype.lanes)
    quotient = out.op(
        "fdiv", *(out.cast("sitofp" if dtype.is_signed else "uitofp", each, wide) for each in (a, divisor))
    )
    if dtype.is_signed and kind in (FloorDiv, FloorMod):
        quotient = out.intrinsic("floor", quotient)
    whole = i32.with_lanes(dtype.lanes) if dtype.bits < i32.bits else dtype
    number = out.cast("fptosi" if whole.is_signed else "fptoui", quotient, whole)
    number = number if whole is dtype else out.cast("trunc", number, dtype)
    if kind in (FloorDiv, TruncDiv):
        return _zero_if_by_zero(out, b, number)
    return out.op("sub", a, out.op("mul", number, divisor))


def _by_function(out: FunctionText, name: str, rule: Rule, a: Value, b: Value) -> Value:
    """Calls a function that is not inlined and computes `rule` on scalars.
    When LLVM 22 vectorizes a loop, it computes a conditional division with uniform operands once for all lanes, and
    only if the condition holds in the first lane; the other lanes become undefined. A call of a speculatable function
    is instead hoisted out of the loop or made for each lane.
    """
    dtype, functions = a.dtype, out.module.inlined
    full = f"tirlite.{name}.{dtype}"
    if full not in functions:
        body = FunctionText(out.module)
        result = rule(body, body.parameter(dtype, "%a"), body.parameter(dtype, "%b"))
        body.effect(f"ret {result.typed}")
        told = "noinline nounwind willreturn speculatable memory(none)"
        functions[full] = body.definition(full, told, result=register_type(dtype))
        # Else LLVM specialises the function by a condition at one call, and then speculates it where that is false.
        out.module.kept.append(full)
    return out.invoke(dtype, full, (a, b))


def _floor_div(out: FunctionText, a: Value, b: Value) -> Value:
    dtype, known = a.dtype, b.number
    if not dtype.is_signed:
        return _unsigned_div(out, a, b)
    if known is not None and known > 0 and known & (known - 1) == 0:
        return out.op("ashr", a, constant(known.bit_length() - 1, dtype))
    divisor = _harmless_divisor(out, a, b)
    quotient = out.op("sdiv", a, divisor)
    one_less = out.op("sub", quotient, constant(1, dtype))
    floor = out.select(_rounded_up(out, a, divisor, quotient), one_less, quotient)
    return _zero_if_by_zero(out, b, floor)


def _floor_mod(out: FunctionText, a: Value, b: Value) -> Value:
    dtype, known = a.dtype, b.number
    if not dtype.is_signed:
        return out.op("urem", a, _harmless_divisor(out, a, b))
    if known is not None and known > 0 and known & (known - 1) == 0:
        return out.op("and", a, constant(known - 1, dtype))
    divisor = _harmless_divisor(out, a, b)
    remainder = out.op("srem", a, divisor)
    wrong_sign = _opposite_sign(out, remainder, divisor)
    return out.select(wrong_sign, out.op("add", remainder, divisor), remainder)


def _trunc_div(out: FunctionText, a: Value, b: Value) -> Value:
    if not a.dtype.is_signed:
        return _unsigned_div(out, a, b)
    return _zero_if_by_zero(out, b, out.op("sdiv", a, _harmless_divisor(out, a, b)))


def _trunc_mod(out: FunctionText, a: Value, b: Value) -> Value:
    return out.op("srem" if a.dtype.is_signed else "urem", a, _harmless_divisor(out, a, b))


def _shift_left(out: FunctionText, a: Value, b: Value) -> Value:
    return _logical_shift(out, "shl", a, b)


def _shift_right(out: FunctionText, a: Value, b: Value) -> Value:
    if not a.dtype.is_signed:
        return _logical_shift(out, "lshr", a, b)
    if not _is_within(b):
        b = out.intrinsic("umin", b, constant(b.dtype.bits - 1, b.dtype))
    return out.op("ashr", a, b)


def _logical_shift(out: FunctionText, name: str, a: Value, b: Value) -> Value:
    if _is_within(b):
        return out.op(name, a, b)
    dtype = b.dtype
    # Reduce the amount first: in LLVM a shift by the width or more is poison, even if the result is discarded.
    shifted = out.op(name, a, out.op("and", b, constant(dtype.bits - 1, dtype)))
    within = out.compare("icmp ult", b, constant(dtype.bits, dtype))
    return out.select(within, shifted, constant(0, dtype))


def _is_within(amount: Value) -> bool:
    return amount.number is not None and 0 <= amount.number < amount.dtype.bits


def _unsigned_div(out: FunctionText, a: Value, b: Value) -> Value:
    return _zero_if_by_zero(out, b, out.op("udiv", a, _harmless_divisor(out, a, b)))


def _harmless_divisor(out: FunctionText, a: Value, b: Value) -> Value:
    """`b`, or 1 where the division would trap: by zero, and INT_MIN by -1, whose value 1 also gives."""
    if b.number is not None and b.number not in (0, -1):
        return b
    dtype = b.dtype
    traps = out.compare("icmp eq", b, constant(0, dtype))
    if dtype.is_signed:
        least = out.compare("icmp eq", a, constant(dtype.min, dtype))
        minus_one = out.compare("icmp eq", b, constant(-1, dtype))
        traps = out.op("or", traps, out.op("and", least, minus_one))
    return out.select(traps, constant(1, dtype), b)


def _zero_if_by_zero(out: FunctionText, b: Value, quotient: Value) -> Value:
    if b.number is not None and b.number != 0:
        return quotient
    return out.select(out.compare("icmp eq", b, constant(0, b.dtype)), constant(0, b.dtype), quotient)


def _rounded_up(out: FunctionText, a: Value, divisor: Value, quotient: Value) -> Value:
    """Whether truncation exceeds the floor: the remainder is nonzero and its sign differs from the divisor's."""
    return _opposite_sign(out, out.op("sub", a, out.op("mul", quotient, divisor)), divisor)


def _opposite_sign(out: FunctionText, remainder: Value, divisor: Value) -> Value:
    none = constant(0, remainder.dtype)
    left = out.compare("icmp ne", remainder, none)
    return out.op("and", left, out.compare("icmp slt", out.op("xor", remainder, divisor), none))


_DIVISIONS: dict[type[Expr], Rule] = {
    FloorDiv: _floor_div,
    FloorMod: _floor_mod,
    TruncDiv: _trunc_div,
    TruncMod: _trunc_mod,
}
_SHIFTS: dict[type[Expr], Rule] = {ShiftLeft: _shift_left, ShiftRight: _shift_right}


def real_operation(out: FunctionText, kind: type[Expr], a: Value, b: Value) -> Value:
    """A floor division of floats, its remainder, a minimum or a maximum."""
    if kind in (Min, Max):
        return _extremum(out, "fcmp olt" if kind is Min else "fcmp ogt", a, b)
    return _real_floor_div(out, a, b) if kind is FloorDiv else _real_floor_mod(out, a, b)


def _real_floor_div(out: FunctionText, a: Value, b: Value) -> Value:
    """The floor of the exact quotient, computed from the remainder as NumPy does; a / b where b is zero."""
    zero, one = constant(0.0, a.dtype), constant(1.0, a.dtype)
    remainder, differs = _remainder(out, a, b)
    quotient = out.op("fdiv", out.op("fsub", a, remainder), b)
    less = out.op("fsub", quotient, one)
    quotient = out.select(differs, less, quotient)
    floor = out.intrinsic("floor", quotient)
    # The quotient is an integer but for rounding error; if it was rounded down, its floor is one too small.
    short = out.compare("fcmp ogt", out.op("fsub", quotient, floor), constant(0.5, a.dtype))
    rounded = out.select(short, out.op("fadd", floor, one), floor)
    plain = out.op("fdiv", a, b)
    signed_zero = out.intrinsic("copysign", zero, plain)
    nonzero = out.compare("fcmp une", quotient, zero)
    result = out.select(nonzero, rounded, signed_zero)
    return out.select(out.compare("fcmp oeq", b, zero), plain, result)


def _real_floor_mod(out: FunctionText, a: Value, b: Value) -> Value:
    """The remainder with the sign of the divisor, even if zero; nan where b is zero."""
    zero = constant(0.0, a.dtype)
    remainder, differs = _remainder(out, a, b)
    moved = out.select(differs, out.op("fadd", remainder, b), remainder)
    signed_zero = out.intrinsic("copysign", zero, b)
    nonzero = out.compare("fcmp une", remainder, zero)
    result = out.select(nonzero, moved, signed_zero)
    return out.select(out.compare("fcmp oeq", b, zero), remainder, result)


def _remainder(out: FunctionText, a: Value, b: Value) -> tuple[Value, Value]:
    """The remainder of truncated division, and whether it is nonzero with a sign other than `b`'s."""
    zero = constant(0.0, a.dtype)
    remainder = out.op("frem", a, b)
    signs = out.op("xor", out.compare("fcmp olt", b, zero), out.compare("fcmp olt", remainder, zero))
    return remainder, out.op("and", out.compare("fcmp une", remainder, zero), signs)


def _extremum(out: FunctionText, comparison: str, a: Value, b: Value) -> Value:
    """`a` where the comparison with `b` is true or `a` is nan; else `b`."""
    if b.is_ordered:
        # Most targets have an instruction for exactly this select.
        return out.select(out.compare(comparison.replace("fcmp o", "fcmp u"), a, b), a, b)
    if a.dtype.lanes > 1 and a.dtype.bits >= 32 and out.module.processor.vector_bits == _MASKED_BITS:
        b = out.intrinsic("arithmetic.fence", b)
    # The first select is one instruction on most targets; in the other order LLVM merges the two selects.
    better = out.select(out.compare(comparison, a, b), a, b)
    return out.select(out.compare("fcmp ord", a, a), better, a)
