"""Gives the function of NumPy values that computes a math operation: one of NumPy's, or a formula carried out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from fractions import Fraction
from functools import cache
from struct import pack, unpack
from typing import Any

import numpy as np

from tirlite.interp.bfloat import in_bfloat, is_bfloat, lanewise, nearest
from tirlite.ir import DType, Op, bf16, f16, f32
from tirlite.ir.arithmetic import FUNCTIONS, Function
from tirlite.ir.formula import Kind, Term
from tirlite.ir.functions import formula_of
from tirlite.ir.functions.table import Formula
from tirlite.record import record

_NUMPY: dict[Op, Function] = {
    Op.ABS: np.abs,
    Op.SQRT: np.sqrt,
    Op.FLOOR: np.floor,
    Op.CEIL: np.ceil,
    Op.ROUND: np.rint,
    Op.TRUNC: np.trunc,
    Op.ISNAN: np.isnan,
}


def math_function(op: Op, dtype: DType) -> Function:
    """What `op` does to values of type `dtype`, which may be lanes."""
    scalar = dtype.scalar
    if is_bfloat(dtype):
        return _of_bfloat(op)
    if op is Op.FMA:
        return fused_singles if scalar == f32 else lanewise(lambda *each: fused(*each, narrow=dtype.bits < 64), dtype)
    if scalar == f16:
        return _of_f16(op)
    formula = formula_of(op, scalar)
    return _NUMPY[op] if formula is None else apply_formula(formula, scalar)


def _of_f16(op: Op) -> Function:
    """In f32, rounded once more."""
    function = math_function(op, f32)

    def apply(*values: Any) -> Any:
        result = function(*(value.astype(np.float32) for value in values))
        return result.astype(np.float16) if result.dtype == np.float32 else result

    return apply


def _of_bfloat(op: Op) -> Function:
    """In f32, rounded once more; a fused product from f64, as f32 would round it wrongly."""
    if op is Op.FMA:
        return lanewise(lambda a, b, c: nearest(fused(a, b, c, narrow=True)), bf16)
    return in_bfloat(math_function(op, f32))


def fused(a: float, b: float, c: float, *, narrow: bool) -> float:
    """`a * b + c` rounded once to f64.

    With `narrow` it is rounded to odd, so that rounding the result once more to a narrower type gives the right value.
    """
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b + c
    if not math.isfinite(c):
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c
    try:
        near = float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
    if not narrow or Fraction(near) == exact or int(np.float64(near).view(np.int64)) & 1:
        return near
    return math.nextafter(near, math.inf if exact > Fraction(near) else -math.inf)


_CALLS: dict[Op, Function] = {Op.ROUND: np.rint, Op.SQRT: np.sqrt, Op.ABS: abs}


@record(eq=False)
class Recorder:
    """Writes down the steps of a formula; its items are places in `values`, which holds constants at the start.

    A step is the function, the places of what it takes, and that of its result.
    """

    values: list[Any] = field(default_factory=list)
    steps: list[tuple[Function, tuple[int, ...], int]] = field(default_factory=list)

    def place(self, value: Any = None) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def _step(self, function: Function, *items: Any) -> int:
        self.steps.append((function, items, self.place()))
        return self.steps[-1][-1]

    def constant(self, value: int | float, dtype: DType) -> int:
        return self.place(dtype.numpy.type(value))

    def apply(self, kind: Kind, dtype: DType, *items: Any) -> int:
        return self._step(FUNCTIONS[kind], *items)

    def call(self, op: Op, dtype: DType, item: Any) -> int:
        return self._step(_CALLS[op], item)

    def fused(self, a: Any, b: Any, c: Any) -> int:
        return self._step(fused_singles, a, b, c)

    def select(self, dtype: DType, condition: Any, yes: Any, no: Any) -> int:
        return self._step(_chosen, condition, yes, no)

    def select_rare(self, dtype: DType, condition: Any, usual: Any, rare: Callable[[], Any]) -> int:
        return self.select(dtype, condition, usual, rare())

    def convert(self, source: DType, target: DType, item: Any) -> int:
        return self._step(converted(target.numpy), item)

    def reinterpret(self, source: DType, target: DType, item: Any) -> int:
        kind = target.numpy
        return self._step(lambda value: value.view(kind), item)

    def lookup(self, table: tuple[float, ...], item: Any) -> int:
        return self._step(np.array(table).__getitem__, item)


def _chosen(condition: Any, yes: Any, no: Any) -> Any:
    return np.where(condition, yes, no) if condition.ndim else yes if condition else no


def converted(item: np.dtype[Any]) -> Function:
    """What makes another NumPy type of values."""
    return lambda value: value.astype(item) if value.ndim else item.type(value)


def fused_singles(a: Any, b: Any, c: Any) -> Any:
    """`a * b + c` of f32, rounded once: in f64, where the product is exact, with the sum rounded to odd."""
    if not (a.ndim or b.ndim or c.ndim):
        return _fused_single(float(a), float(b), float(c))
    product, addend = np.multiply(a, b, dtype=np.float64), np.asarray(c, np.float64)
    near = np.asarray(product + addend)
    moved = near - product
    rest = (product - (near - moved)) + (addend - moved)
    bits = near.view(np.int64)
    is_even = np.isfinite(near) & (rest != 0) & (bits & 1 == 0)
    away = np.where((rest > 0) == (near > 0), 1, -1)
    return (bits + np.where(is_even, away, 0)).view(np.float64).astype(np.float32)


def _fused_single(a: float, b: float, c: float) -> np.float32:
    """The same of one lane, which takes a tenth of the time so."""
    product = a * b
    near = product + c
    moved = near - product
    rest = (product - (near - moved)) + (c - moved)
    if rest and math.isfinite(near) and not unpack("<q", pack("<d", near))[0] & 1:
        near = math.nextafter(near, math.inf if rest > 0 else -math.inf)
    return np.float32(near)


def apply_formula(formula: Formula, dtype: DType) -> Function:
    """The formula as a function of values of type `dtype`."""

    def apply(*given: Any) -> Any:
        recorded, result = _recorded(formula, dtype, len(given))
        values = [*given, *recorded.values[len(given) :]]
        for function, items, place in recorded.steps:
            values[place] = function(*[values[item] for item in items])
        return values[result]

    return apply


@cache
def _recorded(formula: Formula, dtype: DType, operands: int) -> tuple[Recorder, int]:
    """The steps of a formula of so many operands, which have the first places, and the place of its result."""
    recorder = Recorder()
    found = formula(*[Term(recorder, dtype, recorder.place()) for _ in range(operands)]).item
    assert isinstance(found, int)
    return recorder, found
