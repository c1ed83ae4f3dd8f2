"""Element types: kind, width and lanes of a value, and type promotion."""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from functools import cache
from math import copysign, frexp, inf, isfinite, ldexp
from operator import index
from typing import TYPE_CHECKING, NoReturn

from tirlite.diag import Message, boundary
from tirlite.record import record
from tirlite.show import shown
from tirlite.sizes import Dim, Poly
from tirlite.sizes.poly import is_of_sympy

if TYPE_CHECKING:
    import numpy as np


class TypeExtent(Message):
    """The shape of a type has an extent that no array has.

    Example: `tl.f32[2.5]`.
    Fix: Write an integer of at least 0, a dim (`n = tl.dim("n")`, and `n` without quotes), or arithmetic of these.
    """

    title = "extent {axis} of an array of tl.{dtype} is {given}"
    help = "an extent is an integer of at least 0, or an integer expression of dims{hint}"

    hint: str = ""


class OutsideKernel(Message):
    """A word of the kernel language was called as an ordinary Python function.

    Example: `tl.sqrt(2.0)` in plain Python.
    Fix: Write it inside a kernel; plain Python has `math` and NumPy.
    """

    title = "tl.{name} means something only inside a kernel"
    help = "write it in a function under @tl.kernel, or in text for tl.parse"


class TypeCode(Enum):
    """The family of a scalar type; the value is its prefix in full names."""

    BOOL = "bool"
    INT = "int"
    UINT = "uint"
    FLOAT = "float"
    BFLOAT = "bfloat"
    HANDLE = "handle"


# In Python 3.11, looking up a member through its enum takes ten times as long as a global name.
_BOOL, _INT, _UINT, _FLOAT, _BFLOAT, _HANDLE = TypeCode
_SHORT = {TypeCode.INT: "i", TypeCode.UINT: "u", TypeCode.FLOAT: "f", TypeCode.BFLOAT: "bf"}


@record
class DType:
    """A scalar type of `bits` bits, or a vector of `lanes` of them. Equal by value.

    `DType[...]` gives a tensor type, as in `f32[n, m]`: an element type with a shape.
    `name` is the short one that the DSL uses: `f32`, `bool_`, `u8x16`. `bytes` are those of one element in memory, all
    lanes; a bool takes one byte a lane.
    """

    code: TypeCode
    bits: int
    lanes: int = 1
    name: str = field(init=False, compare=False, repr=False)
    bytes: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        lanes = f"x{self.lanes}" if self.lanes > 1 else ""
        scalar = f"{_SHORT[self.code]}{self.bits}" if self.code in _SHORT else ("bool_" if self.is_bool else "handle")
        object.__setattr__(self, "name", scalar + lanes)
        object.__setattr__(self, "bytes", (self.bits + 7) // 8 * self.lanes)

    def __call__(self, *values: object) -> NoReturn:
        """A cast, which is valid only in kernels."""
        with boundary:
            raise OutsideKernel(self.name).error()

    @property
    def is_bool(self) -> bool:
        return self.code is _BOOL

    @property
    def is_integer(self) -> bool:
        """Signed or unsigned, but not bool."""
        return self.code is _INT or self.code is _UINT

    @property
    def is_number(self) -> bool:
        """An integer or a float: with arithmetic."""
        return self.is_integer or self.is_float

    @property
    def is_bits(self) -> bool:
        """An integer or a bool."""
        return self.is_integer or self.is_bool

    @property
    def is_signed(self) -> bool:
        return self.code is _INT

    @property
    def is_float(self) -> bool:
        return self.code is _FLOAT or self.code is _BFLOAT

    @property
    def is_handle(self) -> bool:
        """An address, opaque to the IR."""
        return self.code is _HANDLE

    @property
    def scalar(self) -> DType:
        """The type of one lane."""
        return self.with_lanes(1)

    def with_lanes(self, lanes: int) -> DType:
        return self if lanes == self.lanes else _dtype(self.code, self.bits, lanes)

    @property
    def min(self) -> int:
        """The least value of an integer type or bool."""
        return -(1 << (self.bits - 1)) if self.is_signed else 0

    @property
    def max(self) -> int:
        """The greatest value of an integer type or bool."""
        return (1 << (self.bits - 1 if self.is_signed else self.bits)) - 1

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy type of one lane; bfloat16 and handles have none."""
        return _numpy(self.code, self.bits)

    @property
    def stored(self) -> np.dtype[np.generic]:
        """The element type of NumPy arrays that hold it; for bfloat16, unsigned integers with its bits."""
        return u16.numpy if self.code is TypeCode.BFLOAT else self.numpy

    def __getitem__(self, shape: object) -> TensorType:
        extents = shape if isinstance(shape, tuple) else (shape,)
        if any(type(extent) is not int or extent < 0 for extent in extents):
            with boundary:
                extents = _with_sizes(extents)
                _check_extents(self, extents)
        return TensorType(self, extents)

    def __str__(self) -> str:
        return self.name


@record
class TensorType:
    """An element type with a shape: `f32[n, 4]`. `f32[()]` has no axis and one element.
    The extents are kept as given, integers or expressions. Indexing a type refuses values that can be no extent; making
    a buffer checks the rest, when its name is known.
    """

    dtype: DType
    shape: tuple[object, ...]


def _with_sizes(extents: tuple[object, ...]) -> tuple[object, ...]:
    """The extents, with sympy expressions converted to sizes. Raises KernelError for those that cannot be."""
    if not any(map(is_of_sympy, extents)):
        return extents
    from tirlite.sizes import from_sympy

    return tuple(from_sympy(each, {}) if is_of_sympy(each) else each for each in extents)


def _check_extents(dtype: DType, extents: tuple[object, ...]) -> None:
    """Raises KernelError for an extent that is neither a nonnegative integer nor an integer expression."""
    for axis, extent in enumerate(extents):
        kind = getattr(extent, "dtype", None)
        if isinstance(extent, (Dim, Poly)):
            fits = True
        elif isinstance(kind, DType):
            fits = kind.is_integer and kind.lanes == 1
        else:
            whole = None if isinstance(extent, bool) or not hasattr(extent, "__index__") else index(extent)
            fits = whole is not None and whole >= 0
        if not fits:
            given = f"an expression of type {kind}" if isinstance(kind, DType) else shown(extent)
            hint = f": {extent} = tl.dim({extent!r})" if isinstance(extent, str) and extent.isidentifier() else ""
            hint = ': n = tl.dim("n") stands for any' if given in _ANY else hint
            hint = "; integers are divided by //" if isinstance(kind, DType) and kind.is_float else hint
            raise TypeExtent(axis, str(dtype), given, hint).error()


# How other libraries write an unknown extent.
_ANY = ("None", "-1", "Ellipsis", "slice(None, None, None)")


@cache
def _dtype(code: TypeCode, bits: int, lanes: int) -> DType:
    """The one type of these that others are made of: most questions of types are answered by `is`, then."""
    return DType(code, bits, lanes)


@cache
def _numpy(code: TypeCode, bits: int) -> np.dtype[np.generic]:
    import numpy as np

    if code is TypeCode.BFLOAT or code is TypeCode.HANDLE:
        raise TypeError(f"NumPy has no type for {code.value}{bits}")
    return np.dtype("bool" if code is TypeCode.BOOL else f"{code.value}{bits}")


bool_ = DType(TypeCode.BOOL, 1)
i8, i16, i32, i64 = (DType(TypeCode.INT, bits) for bits in (8, 16, 32, 64))
u8, u16, u32, u64 = (DType(TypeCode.UINT, bits) for bits in (8, 16, 32, 64))
f16, f32, f64 = (DType(TypeCode.FLOAT, bits) for bits in (16, 32, 64))
bf16 = DType(TypeCode.BFLOAT, 16)
handle = DType(TypeCode.HANDLE, 64)

SCALARS = (bool_, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64)


def dtype_of(name: str) -> DType | None:
    """The type of a short name (`f32`, `u8x16`), or None."""
    for scalar in (*SCALARS, handle):
        if name == scalar.name:
            return scalar
        lanes = name.removeprefix(f"{scalar.name}x")
        if lanes != name and lanes.isdecimal() and int(lanes) > 1 and str(int(lanes)) == lanes:
            return scalar.with_lanes(int(lanes))
    return None


def rounded(value: float, dtype: DType) -> float:
    """`value` rounded once, ties to even, to the precision and range of a float type narrower than f64."""
    form = _FORMATS.get((dtype.code, dtype.bits))
    if form is None or not isfinite(value):
        return value
    digits, least, most = form
    unit = max(frexp(value)[1], least) - digits
    size = ldexp(round(ldexp(abs(value), -unit)), unit)
    return copysign(size if size < ldexp(1.0, most) else inf, value)


def float_text(value: float, dtype: DType) -> str:
    """The shortest digits that identify a float of this type, as Python writes those of f64."""
    if (dtype.code, dtype.bits) not in _FORMATS or not isfinite(value):
        return repr(value)
    texts = (repr(float(f"{value:.{digits}g}")) for digits in range(1, 18))
    return next(text for text in texts if rounded(float(text), dtype) == value)


# Digits of the significand, the least exponent of normal numbers, and the exponent of infinity, as in frexp.
_FORMATS = {
    (TypeCode.FLOAT, 16): (11, -13, 16),
    (TypeCode.BFLOAT, 16): (8, -125, 128),
    (TypeCode.FLOAT, 32): (24, -125, 128),
}


def promote(a: DType, b: DType) -> DType | None:
    """The common type of `a` and `b`; None if there is none (handles, or different numbers of lanes above one)."""
    if a == b:
        return a
    if a.lanes != b.lanes and 1 not in (a.lanes, b.lanes):
        return None
    scalar = _promote_scalars(a.scalar, b.scalar)
    return scalar.with_lanes(max(a.lanes, b.lanes)) if scalar else None


def _promote_scalars(a: DType, b: DType) -> DType | None:
    if a == b:
        return a
    if TypeCode.HANDLE in (a.code, b.code):
        return None
    if a.is_bool or b.is_bool:
        return b if a.is_bool else a
    if a.is_float and b.is_float:
        if a.bits == b.bits:
            return f32
        return a if a.bits > b.bits else b
    if a.is_float or b.is_float:
        real, integer = (a, b) if a.is_float else (b, a)
        return _promote_integer_to(real, integer)
    return _promote_integers(a, b)


def _promote_integer_to(real: DType, integer: DType) -> DType:
    """The least float type for both as in NumPy, by width and not by exactness at 64 bits."""
    if integer.bits == 8:
        return real
    if integer.bits == 16:
        return real if real.bits >= 32 else f32
    return f64


def _promote_integers(a: DType, b: DType) -> DType:
    if a.code is b.code:
        return a if a.bits > b.bits else b
    signed, unsigned = (a, b) if a.is_signed else (b, a)
    if signed.bits > unsigned.bits:
        return signed
    return DType(TypeCode.INT, unsigned.bits * 2) if unsigned.bits < 64 else f64


def literal_type(value: bool | int | float, partner: DType | None) -> DType:
    """The type of a Python literal next to an operand of type `partner`, or alone (None)."""
    if isinstance(value, bool):
        return partner.scalar if partner is not None else bool_
    if isinstance(value, int):
        return i64 if partner is None or partner.is_bool else partner.scalar
    return partner.scalar if partner is not None and partner.is_float else f64
