"""Elementwise operators of several operands, which broadcast: each with its type rule, its NumPy value and its formula.

Integers wrap; `floor_divide` and `floor_mod` round down, `trunc_*` towards zero.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tirlite.graph.builder.calls import CallBuilder, Operand, binary, formula, operator
from tirlite.graph.expr import Call
from tirlite.graph.op import Array, Attrs, Site, Spelling, plain
from tirlite.graph.operators.operands import (
    BITS,
    BOOLS,
    FLOATS,
    INTEGERS,
    NUMBERS,
    NUMBERS_OR_BOOLS,
    Elements,
    broadcast,
)
from tirlite.graph.types import TensorType
from tirlite.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BitAnd,
    BitOr,
    BitXor,
    Div,
    DType,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mul,
    Or,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
    bool_,
)
from tirlite.kernels.operators import formulas as f


def _binary(elements: Elements, result: DType | None = None) -> Callable[..., TensorType]:
    def rule(site: Site, attrs: Attrs) -> TensorType:
        dtype = elements.shared(site)
        shape = broadcast(site, [each.shape for each in site.tensors()])
        return TensorType(shape, result or dtype)

    return rule


def _where_type(site: Site, attrs: Attrs) -> TensorType:
    condition, x, y = site.tensors()
    if not condition.dtype.is_bool:
        raise site.wrong_type(f"operand 0 must be bool_, and is {condition.dtype}")
    if x.dtype != y.dtype:
        raise site.wrong_type(f"operand 2 has elements {y.dtype}, operand 1 {x.dtype}")
    return TensorType(broadcast(site, [condition.shape, x.shape, y.shape]), x.dtype)


def _power(x: Array, y: Array) -> Array:
    if x.dtype.kind == "f":
        return np.asarray(np.power(x, y))
    # NumPy rejects negative exponents of integers: only 1 and -1 have such powers, all other bases give 0.
    positive = np.power(x, np.maximum(y, 0))
    inverse = np.where(x == 1, 1, np.where(x == np.asarray(-1).astype(x.dtype), 1 - 2 * (y & 1), 0))
    return np.where(y >= 0, positive, inverse).astype(x.dtype)


def _trunc_divide(x: Array, y: Array) -> Array:
    if x.dtype.kind == "f":
        return np.asarray(np.trunc(x / y))
    floored = np.floor_divide(x, y)
    return np.asarray(floored + ((floored < 0) & (floored * y != x)).astype(x.dtype))


def _shift(x: Array, y: Array, *, left: bool) -> Array:
    # A shift by the width or more shifts out every bit.
    bits = x.dtype.itemsize * 8
    inside = np.clip(y, 0, bits - 1)
    moved = np.left_shift(x, inside) if left else np.right_shift(x, inside)
    out = np.zeros_like(x) if left or x.dtype.kind == "u" else np.where(x < 0, -1, 0)
    return np.where((y >= 0) & (y < bits), moved, out).astype(x.dtype)


_numbers, _floats, _logic, _bits, _integers = map(_binary, (NUMBERS, FLOATS, BOOLS, BITS, INTEGERS))
_order, _equality = _binary(NUMBERS, bool_), _binary(NUMBERS_OR_BOOLS, bool_)


class Binary(CallBuilder):
    """Elementwise functions of two operands, which share an element type and broadcast as in NumPy.

    Comparisons return bools.
    """

    add = binary("x + y.", _numbers, np.add, Add, "Add")
    subtract = binary("x - y.", _numbers, np.subtract, Sub, "Sub")
    multiply = binary("x * y.", _numbers, np.multiply, Mul, "Mul")
    divide = binary("x / y, of floats.", _floats, np.divide, Div)
    floor_divide = binary("x / y, floored.", _numbers, np.floor_divide, FloorDiv)
    floor_mod = binary("The remainder of floor_divide, with the sign of y.", _numbers, np.remainder, FloorMod)
    trunc_divide = binary("x / y, cut towards zero.", _numbers, _trunc_divide, f.trunc_divide)
    trunc_mod = binary("The remainder of trunc_divide, with the sign of x.", _numbers, np.fmod, f.trunc_mod)
    power = binary("x to the power y.", _numbers, _power, f.power)
    maximum = binary("The greater one; nan where one is nan.", _numbers, np.maximum, Max)
    minimum = binary("The lesser one; nan where one is nan.", _numbers, np.minimum, Min)
    less = binary("Whether x < y.", _order, np.less, LT, "Less")
    less_equal = binary("Whether x <= y.", _order, np.less_equal, LE, "LessOrEqual")
    greater = binary("Whether x > y.", _order, np.greater, GT, "Greater")
    greater_equal = binary("Whether x >= y.", _order, np.greater_equal, GE, "GreaterOrEqual")
    equal = binary("Whether x == y.", _equality, np.equal, EQ, "Equal")
    not_equal = binary("Whether x != y.", _equality, np.not_equal, NE)
    logical_and = binary("Whether both hold.", _logic, np.logical_and, And, "And")
    logical_or = binary("Whether one holds.", _logic, np.logical_or, Or, "Or")
    logical_xor = binary("Whether exactly one holds.", _logic, np.logical_xor, NE, "Xor")
    bitwise_and = binary("The bits that both have.", _bits, np.bitwise_and, f.bits(BitAnd, And), "BitwiseAnd")
    bitwise_or = binary("The bits that one has.", _bits, np.bitwise_or, f.bits(BitOr, Or), "BitwiseOr")
    bitwise_xor = binary("The bits that exactly one has.", _bits, np.bitwise_xor, f.bits(BitXor, NE), "BitwiseXor")
    shift_left = binary(
        "x * 2**y; 0 where y is the width or more.",
        _integers,
        lambda x, y: _shift(x, y, left=True),
        f.shift(ShiftLeft),
    )
    shift_right = binary("x // 2**y, for any y.", _integers, lambda x, y: _shift(x, y, left=False), f.shift(ShiftRight))

    @operator(
        _floats,
        plain(lambda x, slope: np.where(x < 0, slope * x, x)),
        formula("prelu", lambda x, slope: Select(x < 0, x * slope, x)),
        least=2,
    )
    def prelu(self, x: Operand, slope: Operand) -> Call:
        """x, or slope * x where x is negative."""
        return self.call("prelu", x, slope)

    @operator(
        _where_type,
        plain(np.where),
        formula("where", Select),
        least=3,
        onnx=Spelling("Where"),
    )
    def where(self, condition: Operand, x: Operand, y: Operand) -> Call:
        """The elements of x where the condition is true, of y elsewhere. A number gets the other one's element type."""
        span = self._here()
        x, y = self._operands((x, y), span)
        return self.call("where", condition, x, y)
