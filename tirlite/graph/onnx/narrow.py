"""Reads and makes elements of types that no kernel has: floats of 8 bits and fewer, integers of 2 and 4.

A tensor of such a type has one byte for each element, here as in the arrays of a call: an integer is the i8 or u8 of
its value, a float the u8 of its bits. Whether a value is one of these goes by its name in the model, not by the graph.
Formats: the OCP specifications of 8-bit floats and of microscaling, and float8 of Graphcore, AMD and Qualcomm (fnuz).
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from tirlite.graph.builder.builder import Builder
from tirlite.graph.expr import Expr
from tirlite.ir import DType, bf16, bool_, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
from tirlite.record import record

# As in onnx.TensorProto.DataType.
_TYPES = (
    *((1, f32), (2, u8), (3, i8), (4, u16), (5, i16), (6, i32), (7, i64), (9, bool_)),
    *((10, f16), (11, f64), (12, u32), (13, u64), (16, bf16)),
)
DTYPES = MappingProxyType(dict(_TYPES))
NUMBERS = MappingProxyType({dtype: number for number, dtype in _TYPES})
_OTHERS = MappingProxyType(
    {
        0: "undefined",
        8: "string",
        14: "complex64",
        15: "complex128",
        17: "float8e4m3fn",
        18: "float8e4m3fnuz",
        19: "float8e5m2",
        20: "float8e5m2fnuz",
        21: "uint4",
        22: "int4",
        23: "float4e2m1",
        24: "float8e8m0",
        25: "uint2",
        26: "int2",
    }
)


def dtype_name(number: int) -> str:
    """The name of the type with this number, supported or not."""
    if number in DTYPES:
        return DTYPES[number].name
    return _OTHERS.get(number, f"number {number}")


_POINT = 23  # the bits of f32's mantissa
_INFINITE = 0x7F800000  # the bits of infinity


@record
class FloatFormat:
    """A float format: a sign, an exponent with `bias`, and a mantissa of `point` bits.

    top: the bits of the greatest finite number.
    nan, infinity: the bits of nan and infinity; None if the format has none.
    unsigned_zero: there is no -0: its bits are nan.
    """

    bits: int
    point: int
    bias: int
    top: int
    nan: int | None
    infinity: int | None = None
    unsigned_zero: bool = False


@record
class NarrowType:
    """An element type of the standard that takes a byte here; `form` is None for integers and for bare exponents."""

    name: str
    bits: int
    stored: DType
    form: FloatFormat | None = None

    @property
    def is_exponent(self) -> bool:
        """Whether it is a power of 2, of which the exponent alone is stored."""
        return self.form is None and self.bits == 8

    @property
    def is_integer(self) -> bool:
        return self.form is None and not self.is_exponent

    @property
    def least(self) -> int:
        """The least value of an integer."""
        return -(1 << (self.bits - 1)) if self.stored is i8 else 0

    @property
    def most(self) -> int:
        """The greatest value of an integer."""
        return self.least + (1 << self.bits) - 1


@record(eq=False)
class NarrowValue:
    """A value of a model whose elements are of a narrow type: the bytes that stand for them."""

    value: Expr
    kind: NarrowType


_FORMS = {
    17: FloatFormat(8, 3, 7, 0x7E, 0x7F),
    18: FloatFormat(8, 3, 8, 0x7F, 0x80, unsigned_zero=True),
    19: FloatFormat(8, 2, 15, 0x7B, 0x7F, 0x7C),
    20: FloatFormat(8, 2, 16, 0x7F, 0x80, unsigned_zero=True),
    23: FloatFormat(4, 1, 1, 0x7, None),
}
_INTEGERS = {21: (4, u8), 22: (4, i8), 25: (2, u8), 26: (2, i8)}
_EXPONENT = 24

# By their numbers in onnx.TensorProto.DataType.
NARROW = MappingProxyType(
    {
        **{number: NarrowType(dtype_name(number), form.bits, u8, form) for number, form in _FORMS.items()},
        **{number: NarrowType(dtype_name(number), bits, stored) for number, (bits, stored) in _INTEGERS.items()},
        _EXPONENT: NarrowType(dtype_name(_EXPONENT), 8, u8),
    }
)


def unpacked(data: npt.NDArray[np.uint8], kind: NarrowType, count: int) -> npt.NDArray[np.generic]:
    """The `count` elements in bytes that hold several each, the first one in the lowest bits."""
    per_byte = 8 // kind.bits
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(kind.bits)
    fields = (data[:, None] >> shifts & np.uint8((1 << kind.bits) - 1)).reshape(-1)[:count]
    if kind.stored is i8:
        signed = fields.astype(np.int16) - ((fields >> (kind.bits - 1)).astype(np.int16) << kind.bits)
        return signed.astype(np.int8)
    return fields


def widened(b: Builder, x: Expr, kind: NarrowType) -> Expr:
    """The elements as numbers: integers in a byte, floats in f32, both exact."""
    if kind.is_integer:
        return x
    return b.gather(b.constant(_values(kind)), b.cast(x, i32), 0)


@cache
def _values(kind: NarrowType) -> npt.NDArray[np.float32]:
    """The value of each bit pattern."""
    bits = np.arange(1 << kind.bits)
    if kind.form is None:
        return np.where(bits == 0xFF, np.nan, np.ldexp(1.0, bits - 127)).astype(np.float32)
    form = kind.form
    sign, rest = bits >> (form.bits - 1), bits & ((1 << (form.bits - 1)) - 1)
    exponent, point = rest >> form.point, rest & ((1 << form.point) - 1)
    whole = np.where(exponent > 0, 1 << form.point, 0) + point
    made = np.ldexp(whole.astype(np.float64), np.maximum(exponent, 1) - form.bias - form.point)
    made = np.where(sign == 1, -made, made)
    made[rest > form.top] = np.nan
    if form.infinity is not None:
        made[rest == form.infinity] = np.where(sign == 1, -np.inf, np.inf)[rest == form.infinity]
    if form.unsigned_zero:
        made[form.nan] = np.nan
    numbers: npt.NDArray[np.float32] = made.astype(np.float32)
    return numbers


def narrowed(b: Builder, x: Expr, kind: NarrowType, *, saturate: bool, rounding: str = "up") -> Expr:
    """Numbers of f32, f16 or an integer type in a narrow one, to the nearest, the even one of two as near.

    Integers keep their lowest bits. What is beyond the greatest float becomes that one with `saturate`, or where the
    format knows nothing else, and else infinity or not-a-number. A bare exponent is rounded "up", "down" or "nearest".
    """
    if kind.is_integer:
        whole = b.cast(x, i32)
        room = b.constant(np.int32(32 - kind.bits))
        if kind.stored is i8:
            return b.cast(b.shift_right(b.shift_left(whole, room), room), i8)
        return b.cast(b.bitwise_and(whole, (1 << kind.bits) - 1), u8)
    x = b.cast(x, f32)
    return _exponent(b, x, saturate, rounding) if kind.form is None else _rounded(b, x, kind.form, saturate)


def _rounded(b: Builder, x: Expr, form: FloatFormat, saturate: bool) -> Expr:
    lost = _POINT - form.point
    least = 1 - form.bias  # the exponent of the least number that is not subnormal
    bits = b.bitcast(x, i32)
    size = b.minimum(b.bitwise_and(bits, 0x7FFFFFFF), _INFINITE)
    odd = b.bitwise_and(b.shift_right(size, b.constant(np.int32(lost))), 1)
    nearest = b.shift_right(b.add(b.add(size, odd), (1 << (lost - 1)) - 1), b.constant(np.int32(lost)))
    normal = b.subtract(nearest, (127 - form.bias) << form.point)
    is_nan = b.isnan(x)
    is_small = b.less(size, (least + 127) << _POINT)
    small = b.where(is_small, b.abs(x), 0.0)
    subnormal = b.cast(b.round(b.multiply(small, float(2.0 ** (form.point - least)))), i32)
    field = b.where(is_small, subnormal, normal)
    sign = b.where(b.less(bits, 0), 1 << (form.bits - 1), b.constant(np.int32(0)))
    if form.unsigned_zero:
        sign = b.where(b.equal(field, 0), b.constant(np.int32(0)), sign)
    known = [each for each in (form.infinity, form.nan) if each is not None]
    beyond = known[0] if known and not saturate else form.top
    signed = b.bitwise_or(b.minimum(field, form.top), sign)
    over = b.constant(np.int32(beyond)) if form.unsigned_zero and beyond == form.nan else b.bitwise_or(sign, beyond)
    made = b.where(b.greater(field, form.top), over, signed)
    nan = b.constant(np.int32(form.nan or 0))
    return b.cast(b.where(is_nan, nan, made), u8)


def _exponent(b: Builder, x: Expr, saturate: bool, rounding: str) -> Expr:
    """The exponent of f32 alone, one more where what is behind the point is rounded up."""
    bits = b.bitcast(x, i32)
    exponent = b.bitwise_and(b.shift_right(bits, b.constant(np.int32(_POINT))), 0xFF)
    rest = b.bitwise_and(bits, (1 << _POINT) - 1)
    half = 1 << (_POINT - 1)
    if rounding == "down":
        up = b.less(rest, 0)
    elif rounding == "up":
        up = b.greater(rest, 0)
    else:
        at_half = b.logical_and(b.equal(rest, half), b.greater(exponent, 0))
        up = b.logical_or(b.greater(rest, half), at_half)
    more = b.where(up, b.constant(np.int32(1)), 0)
    most = b.constant(np.int32(0xFE if saturate else 0xFF))
    return b.cast(b.where(b.equal(exponent, 0xFF), 0xFF, b.minimum(b.add(exponent, more), most)), u8)
