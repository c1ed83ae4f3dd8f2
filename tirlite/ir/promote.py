"""Gives the type of the sum of two types: NumPy 2's promotion, with Python's literals weak."""

from __future__ import annotations

from tirlite.ir.dtype import DType, TypeCode, bool_, f32, f64, i64


def promote(a: DType, b: DType) -> DType | None:
    """The type in which `a` and `b` meet; None where they do not (handles, different numbers of lanes above one)."""
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
    """The least float type that holds both, as NumPy counts it: by width, not by exactness at 64 bits."""
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
    """The type that a Python literal takes beside an operand of type `partner`, or alone (None)."""
    if isinstance(value, bool):
        return partner.scalar if partner is not None else bool_
    if isinstance(value, int):
        return i64 if partner is None or partner.is_bool else partner.scalar
    return partner.scalar if partner is not None and partner.is_float else f64
