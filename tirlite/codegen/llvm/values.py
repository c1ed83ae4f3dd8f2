"""Spells types and constants of the IR in LLVM's assembly, and defines the typed operands of instructions.

A bool is `i1` in registers, and `i8`, 0 or 1, in memory. A float16 or bfloat16 is an `i16` with its bits.
"""

from __future__ import annotations

import struct
from math import isnan

from tirlite.ir import DType, TypeCode, bool_, f64, handle, i64
from tirlite.record import record


@record(eq=False, guarded=False)
class Value:
    """An operand: its type, its LLVM text, and its `home`, the function that computes it (None for a constant).

    `number`: the integer in every lane, if known.
    `leads_into`: of a derived pointer, the allocation or parameter that it points into.
    `fact`: the attribute of a parameter that receives the value, after a blank.
    `is_ordered`: a float constant that is not nan.
    `behind`: of a pointer at a constant offset from another, that pointer and the bytes between them.
    `words`: of bytes extracted from words, the words.
    `made`: of a sum or product of sizes, the instruction and its operands.
    """

    dtype: DType
    text: str
    home: object = None
    number: int | None = None
    leads_into: Value | None = None
    fact: str = ""
    is_ordered: bool = False
    behind: tuple[Value, int] | None = None
    words: Value | None = None
    made: tuple[str, Value, Value] | None = None

    @property
    def typed(self) -> str:
        """The operand with its type."""
        return f"{register_type(self.dtype)} {self.text}"

    @property
    def declared(self) -> str:
        """The parameter as declared in a signature."""
        return f"{register_type(self.dtype)}{self.fact} {self.text}"

    @property
    def is_size(self) -> bool:
        """Whether it is a constant, a parameter with a range, or computed from such."""
        return self.number is not None or self.fact != "" or self.made is not None

    @property
    def root(self) -> Value:
        """The allocation or parameter that a pointer points into."""
        return self.leads_into or self

    def alone(self) -> Value:
        """The pointer as if it were an allocation of its own."""
        return Value(self.dtype, self.text, self.home)

    def of(self, dtype: DType) -> Value:
        """The same bits with another type of the same LLVM type."""
        return Value(dtype, self.text, self.home, self.number, self.leads_into, self.fact)


def is_half(dtype: DType) -> bool:
    """Whether values of this type are held in registers as 16 bits."""
    return dtype.bits == 16 and dtype.is_float


def register_type(dtype: DType) -> str:
    """The LLVM type in registers: `float`, `<4 x i1>`."""
    return _scalar(dtype) if dtype.lanes == 1 else f"<{dtype.lanes} x {_scalar(dtype)}>"


def memory_type(dtype: DType) -> str:
    """The LLVM type in memory, for loads and stores: `i8` for a bool."""
    if not dtype.is_bool:
        return register_type(dtype)
    return "i8" if dtype.lanes == 1 else f"<{dtype.lanes} x i8>"


def element_type(dtype: DType) -> str:
    """The LLVM type of exactly `dtype.bytes` for address arithmetic; a vector of three would count as four."""
    scalar = "i8" if dtype.is_bool else _scalar(dtype)
    return scalar if dtype.lanes == 1 else f"[{dtype.lanes} x {scalar}]"


def suffix(dtype: DType) -> str:
    """The type suffix of an intrinsic's name: `f32`, `v4i64`."""
    scalar = "i1" if dtype.is_bool else f"{'f' if dtype.is_float else 'i'}{dtype.bits}"
    return scalar if dtype.lanes == 1 else f"v{dtype.lanes}{scalar}"


def constant(value: bool | int | float, dtype: DType) -> Value:
    """A constant: `value` in each lane of `dtype`."""
    number = None if dtype.is_float else int(value)
    text = str(number) if number is not None else _real(float(value), dtype)
    spelled = text if dtype.lanes == 1 else f"splat ({_scalar(dtype)} {text})"
    return Value(dtype, spelled, None, number, is_ordered=dtype.is_float and not isnan(value))


def integer(value: int) -> Value:
    """A constant i64."""
    return Value(i64, str(value), None, value)


def decimal(value: float) -> Value:
    """A constant f64 with few digits, for estimates."""
    return Value(f64, f"{value:e}")


def zero(dtype: DType) -> Value:
    """All bits 0 in each lane."""
    return constant(0, dtype) if dtype.lanes == 1 else Value(dtype, "zeroinitializer", None, 0)


def undefined(dtype: DType) -> Value:
    """A poison vector, to insert lanes into."""
    return Value(dtype, "poison")


def flags_of(dtype: DType) -> DType:
    """The type of a comparison of two values."""
    return bool_.with_lanes(dtype.lanes)


TRUE, FALSE = Value(bool_, "true", None, 1), Value(bool_, "false", None, 0)
NULL = Value(handle, "null")


def _scalar(dtype: DType) -> str:
    code = dtype.code
    if code is TypeCode.BOOL:
        return "i1"
    if code is TypeCode.HANDLE:
        return "ptr"
    if code is TypeCode.FLOAT and dtype.bits > 16:
        return "float" if dtype.bits == 32 else "double"
    return f"i{dtype.bits}"


def _real(value: float, dtype: DType) -> str:
    """The LLVM text of a float that is rounded to its type already."""
    if dtype.code is TypeCode.BFLOAT:
        return str(struct.unpack(">I", struct.pack(">f", value))[0] >> 16)
    if dtype.bits == 16:
        return str(struct.unpack(">H", struct.pack(">e", value))[0])
    # LLVM spells a float constant by the bits of the double of the same value.
    if value != value:
        return "0x7FF8000000000000"
    return f"0x{struct.unpack('>Q', struct.pack('>d', value))[0]:016X}"
