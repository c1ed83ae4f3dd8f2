"""Indices of an access in, the branch to a fault where one that is marked as checked lies outside of its axis out."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.codegen.faults import KernelFunction, any_of, as_bits
from tirlite.codegen.memory import Place
from tirlite.codegen.text import FunctionText
from tirlite.codegen.values import Value
from tirlite.ir import Call, Expr, IntImm, Op, Var, walk


def is_checked(index: object) -> bool:
    return type(index) is Call and index.op is Op.CHECKED


def has_check(index: Expr) -> bool:
    """Whether an index, or one inside of it, is marked."""
    return type(index) is not Var and type(index) is not IntImm and any(map(is_checked, walk(index)))


def bare(index: Expr) -> Expr:
    """An index without its mark."""
    return index.args[0] if type(index) is Call and index.op is Op.CHECKED else index


def require_inside(
    out: FunctionText, place: Place, axes: Sequence[int], indices: Sequence[Value], given: Sequence[Value]
) -> None:
    """Stops where an index is outside of its axis, of these axes. `indices` are what was `given`, as i64."""
    from tirlite.codegen.reports import IndexReport

    assert isinstance(out, KernelFunction)
    extents = [place.extents[axis] for axis in axes]
    # A negative index is above all extents, which are not negative.
    flags = [out.compare("icmp uge", a, out.splat(b, a.dtype.lanes)) for a, b in zip(indices, extents, strict=True)]
    wrong = any_of(out, [out.any_lane(flag) for flag in flags])
    types = tuple(value.dtype for value in given)

    def values() -> list[Value]:
        lanes = [first_flagged(out, value, flag) for value, flag in zip(given, flags, strict=True)]
        return [each for pair in zip(lanes, extents, strict=True) for each in pair]

    out.stop_if(wrong, IndexReport(out.module.span, place.buffer.name, tuple(axes), types), values)


def first_flagged(out: FunctionText, value: Value, flag: Value) -> Value:
    """The first flagged lane of a value, as bits; of a value without lanes, itself."""
    return as_bits(out, out.first_lane(flag, value) if value.dtype.lanes > 1 else value)
