"""A type or a constant of the IR in, its spelling in LLVM's assembly out.

A bool is `i1` in registers and `i8`, 0 or 1, in memory. A float16 or bfloat16 is an `i16` that holds its bits.
"""

from __future__ import annotations

import struct

from tirlite.ir import DType, TypeCode


def is_half(dtype: DType) -> bool:
    """Whether values of this type are held as 16 bits."""
    return dtype.is_float and dtype.bits == 16


def register_type(dtype: DType) -> str:
    """The type of a value in a register: `float`, `<4 x i1>`."""
    return _vector(_scalar(dtype), dtype.lanes)


def memory_type(dtype: DType) -> str:
    """The type of a value in memory, as loads and stores name it: `i8` for a bool."""
    return _vector("i8" if dtype.is_bool else _scalar(dtype), dtype.lanes)


def element_type(dtype: DType) -> str:
    """The type that takes exactly `dtype.bytes` in address arithmetic; a vector of three would take four."""
    scalar = "i8" if dtype.is_bool else _scalar(dtype)
    return scalar if dtype.lanes == 1 else f"[{dtype.lanes} x {scalar}]"


def suffix(dtype: DType) -> str:
    """How an intrinsic's name ends for this type: `f32`, `v4i64`."""
    scalar = "i1" if dtype.is_bool else f"{'f' if dtype.is_float else 'i'}{dtype.bits}"
    return scalar if dtype.lanes == 1 else f"v{dtype.lanes}{scalar}"


def constant(value: bool | int | float, dtype: DType) -> str:
    """`value` in each lane of `dtype`, as an operand without its type."""
    scalar = _real(float(value), dtype.scalar) if dtype.is_float else str(int(value))
    return scalar if dtype.lanes == 1 else f"splat ({_scalar(dtype)} {scalar})"


def _scalar(dtype: DType) -> str:
    if dtype.is_bool:
        return "i1"
    if dtype.code is TypeCode.HANDLE:
        return "ptr"
    if dtype.is_float and dtype.bits > 16:
        return "float" if dtype.bits == 32 else "double"
    return f"i{dtype.bits}"


def _vector(scalar: str, lanes: int) -> str:
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def _real(value: float, dtype: DType) -> str:
    """A value that is already rounded to its type."""
    if dtype.code is TypeCode.BFLOAT:
        return str(struct.unpack(">I", struct.pack(">f", value))[0] >> 16)
    if dtype.bits == 16:
        return str(struct.unpack(">H", struct.pack(">e", value))[0])
    # LLVM spells a float constant by the bits of the double of the same value.
    if value != value:
        return "0x7FF8000000000000"
    return f"0x{struct.unpack('>Q', struct.pack('>d', value))[0]:016X}"
