"""An operator that is no instruction of LLVM's and the values of its operands in, the name of the result out."""

from __future__ import annotations

from collections.abc import Callable

from tirlite.codegen import integers, reals
from tirlite.codegen.divisions import Rule, by_function
from tirlite.codegen.text import FunctionText
from tirlite.ir import DType, Expr, FloorDiv, FloorMod, Max, Min, ShiftLeft, ShiftRight, TruncDiv, TruncMod

_DIVISIONS: dict[type[Expr], Rule] = {
    FloorDiv: integers.floor_div,
    FloorMod: integers.floor_mod,
    TruncDiv: integers.trunc_div,
    TruncMod: integers.trunc_mod,
}
_SHIFTS: dict[type[Expr], Rule] = {
    ShiftLeft: integers.shift_left,
    ShiftRight: integers.shift_right,
}
_REAL: dict[type[Expr], Callable[[FunctionText, DType, str, str], str]] = {
    FloorDiv: reals.floor_div,
    FloorMod: reals.floor_mod,
    Min: reals.minimum,
    Max: reals.maximum,
}


def sequence(out: FunctionText, kind: type[Expr], dtype: DType, a: str, b: str, known: int | None) -> str:
    """A division, a shift, or an extremum of floats; `known` is the integer that `b` is, where it is constant."""
    if dtype.is_float:
        return _REAL[kind](out, dtype, a, b)
    if kind in _SHIFTS:
        return _SHIFTS[kind](out, dtype, a, b, known)
    if out.conditions and known is None and dtype.lanes == 1:
        return by_function(out, kind.__name__, _DIVISIONS[kind], dtype, a, b)
    return _DIVISIONS[kind](out, dtype, a, b, known)
