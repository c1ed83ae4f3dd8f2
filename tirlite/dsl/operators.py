"""Makes the IR expression of an operator on its operands, and of a subscript.

On bare literals it computes the number, as Python does.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from tirlite.diag import Message, Span
from tirlite.dsl.convert import is_literal, number, together
from tirlite.dsl.parameters import described
from tirlite.ir import expr as e
from tirlite.ir.dtype import DType, TensorType, f64, u64
from tirlite.ir.expr import Buffer, Call, Cast, Expr, IntImm, LetExpr, Load, Var, const
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.walk import walk
from tirlite.record import record


class OperandType(Message):
    """An operator does not take values of this type.

    Example: `x[i] << 1`, where `x` holds floats.
    Fix: Cast the operand, or use arithmetic that its type has.
    """

    code = "wrong-operand"
    title = "`{operator}` does not take values of type tl.{dtype}"
    help = "{advice}"


class LiteralArithmetic(Message):
    """An operation on literals alone has no value, or one that is too big.

    Example: `y[i] = 1 // 0`.
    """

    title = "this has no value: {reason}"
    help = "literals are computed by Python, before the kernel is compiled"


class IntegerPower(Message):
    """A power of integers.

    Example: `i ** 2`.
    """

    title = "`**` of integers is not in the kernel language"
    help = "write the product, as in `i * i`, or cast the base to a float, as in `tl.f64(i) ** 2`"


class ShiftTooFar(Message):
    """A value is shifted by a constant that is negative, or as large as the type is wide.

    Example: `x[i] << 40`, where `x` holds tl.i32.
    Fix: Shift by less, or a wider value: `tl.i64(x[i]) << 40`.
    """

    title = "`{sign}` shifts tl.{dtype} by {count} bits"
    help = "a shift of tl.{dtype} is by 0 to {most} bits{advice}"


class ZeroDivisor(Message):
    """An integer is divided by a constant that is 0, which has no value.

    Example: `x[i] // 0`, where `x` holds integers.
    Fix: Divide by something else, or leave the line out by `if tl.static(...)`.
    """

    title = "an integer is divided by 0"
    help = "it has no value, unlike that of floats; `if tl.static(...)` around the line leaves it out"


class BadIndex(Message):
    """An index is not an integer, or a vector in the wrong place.

    Example: `x[0.5 * i]`.
    Fix: Use an integer, as in `x[i // 2]`, or cast with `tl.i64(...)`.
    """

    title = "index {axis} of `{name}` is {given}"
    help = "an index is an integer: `//` gives one, and tl.i64(...) casts; only the last may be a vector"


class NegativeIndex(Message):
    """A constant index is below zero.

    Example: `x[-1]`.
    Fix: Count from 0: the last element is `x[x.shape[0] - 1]`.
    """

    title = "index {axis} of `{name}` is {value}"
    help = "indices count from 0; the end is `{name}.shape[{axis}]{value}`"


class NoSuchExtent(Message):
    """`.shape` is indexed by something other than the number of an axis.

    Example: `x.shape[2]`, where `x` has two axes.
    Fix: Write a constant from 0 to the number of axes less one.
    """

    title = "`{name}` has no extent {given}"
    help = "{advice}"


class TupleIndex(Message):
    """A tuple from around the kernel is indexed by something other than a constant in its range.

    Example: `WEIGHTS[k]` in a `range` loop over `k`, where `WEIGHTS = (1, 2, 1)`.
    Fix: Loop over `tl.static(range(3))`, or pass the values as an array.
    """

    title = "a tuple of {count} is indexed by {given}"
    help = "the index is a constant; a loop over tl.static(range({count})) has constant variables"


@record
class Operator:
    """An operator: its sign, its node, Python's function for literals, and the types that it takes."""

    sign: str
    kind: type[e.Binary] | type[e.Compare] | None
    python: Callable[[Any, Any], object]
    takes: Callable[[DType], bool]
    advice: str


def _anything(dtype: DType) -> bool:
    return not dtype.is_handle


_OF_NUMBERS = (lambda dtype: dtype.is_number, "cast to a number first: tl.i64(...)")
_OF_BITS = (lambda dtype: dtype.is_bits, "cast to an integer first")
_OF_INTEGERS = (lambda dtype: dtype.is_integer, "cast to an integer first")
_OF_ANY = (_anything, "compare numbers or bools")

BINARY: Mapping[type[ast.operator], Operator] = {
    ast.Add: Operator("+", e.Add, operator.add, *_OF_NUMBERS),
    ast.Sub: Operator("-", e.Sub, operator.sub, *_OF_NUMBERS),
    ast.Mult: Operator("*", e.Mul, operator.mul, *_OF_NUMBERS),
    ast.Div: Operator("/", e.Div, operator.truediv, _anything, ""),
    ast.FloorDiv: Operator("//", e.FloorDiv, operator.floordiv, *_OF_NUMBERS),
    ast.Mod: Operator("%", e.FloorMod, operator.mod, *_OF_NUMBERS),
    ast.BitAnd: Operator("&", e.BitAnd, operator.and_, *_OF_BITS),
    ast.BitOr: Operator("|", e.BitOr, operator.or_, *_OF_BITS),
    ast.BitXor: Operator("^", e.BitXor, operator.xor, *_OF_BITS),
    ast.LShift: Operator("<<", e.ShiftLeft, operator.lshift, *_OF_INTEGERS),
    ast.RShift: Operator(">>", e.ShiftRight, operator.rshift, *_OF_INTEGERS),
    ast.Pow: Operator("**", None, operator.pow, *_OF_NUMBERS),
}

COMPARE: Mapping[type[ast.cmpop], Operator] = {
    ast.Eq: Operator("==", e.EQ, operator.eq, *_OF_ANY),
    ast.NotEq: Operator("!=", e.NE, operator.ne, *_OF_ANY),
    ast.Lt: Operator("<", e.LT, operator.lt, *_OF_ANY),
    ast.LtE: Operator("<=", e.LE, operator.le, *_OF_ANY),
    ast.Gt: Operator(">", e.GT, operator.gt, *_OF_ANY),
    ast.GtE: Operator(">=", e.GE, operator.ge, *_OF_ANY),
}

# The comparison of `b` with `a` that equals `a op b`.
_MIRRORED: Mapping[str, Operator] = {
    op.sign: COMPARE[mirrored]
    for op, mirrored in zip(COMPARE.values(), (ast.Eq, ast.NotEq, ast.Gt, ast.GtE, ast.Lt, ast.LtE), strict=True)
}

# Integer literals with more bits are refused early; no type holds them.
_MOST_BITS = 4096
# The powers that are not calls, and the number of nodes from which on the base of a square is bound to a name.
_SQUARE, _ROOT = 2, 0.5
_LONG = 32


def binary(op: Operator, a: object, b: object, spans: tuple[Span, Span]) -> object:
    if is_literal(a) and is_literal(b):
        return _of_literals(op, a, b, spans[0])
    if op.sign in _MIRRORED and isinstance(a, Expr) and isinstance(b, Expr):
        if _is_wide_unsigned(a) and b.dtype.is_signed:
            return _unsigned_beside_signed(op, a, b, spans)
        if _is_wide_unsigned(b) and a.dtype.is_signed:
            return _unsigned_beside_signed(_MIRRORED[op.sign], b, a, spans[::-1])
    left, right = together((a, b), spans)
    dtype = left.dtype
    if not op.takes(dtype):
        raise OperandType(op.sign, dtype, op.advice, span=spans[0]).error()
    if op.kind is None:
        if not dtype.is_float:
            raise IntegerPower(span=spans[0]).error()
        made = Call(dtype, Op.POW, (left, right))
        return _power(left, b, made) if isinstance(b, int | float) else made
    if op.sign in ("<<", ">>") and isinstance(b, int) and not 0 <= b < dtype.bits:
        wide = f"; cast first: tl.{'i' if dtype.is_signed else 'u'}64(...)" if dtype.bits <= b < 64 else ""
        raise ShiftTooFar(op.sign, dtype, b, dtype.bits - 1, wide, span=spans[1]).error()
    if op.kind is e.Div and not dtype.is_float:
        real = f64.with_lanes(dtype.lanes)
        return e.Div(left.astype(real), right.astype(real))
    return op.kind(left, right)


def _power(base: Expr, exponent: float, made: Expr) -> Expr:
    """A power by a literal: square, root or reciprocal for 2, 0.5 and -1, as in NumPy, else `made`."""
    if exponent == _SQUARE:
        if _may_stand_twice(base):
            return e.Mul(base, base)
        value = Var("value", base.dtype)
        return LetExpr(value, base, e.Mul(value, value))
    if exponent == _ROOT:
        return Call(base.dtype, Op.SQRT, (base,))
    return e.Div(const(1, base.dtype), base) if exponent == -1 else made


def _may_stand_twice(value: Expr) -> bool:
    """Whether a value is short, cheap, and the same if evaluated twice."""
    nodes = [*islice(walk(value), _LONG)]
    dear = (node for node in nodes if isinstance(node, Call | LetExpr | e.Div) or _is_volatile(node))
    return len(nodes) < _LONG and next(dear, None) is None


def _is_volatile(node: Node) -> bool:
    return isinstance(node, Load) and node.buffer.volatile


def _is_wide_unsigned(value: Expr) -> bool:
    return value.dtype.is_integer and not value.dtype.is_signed and value.dtype.bits == 64


def _unsigned_beside_signed(op: Operator, a: Expr, b: Expr, spans: tuple[Span, Span]) -> Expr:
    """`a op b` of a u64 and a signed integer, exact as in NumPy 2; their common type f64 would round."""
    least = b if isinstance(b, (Var, IntImm)) else Var("signed", b.dtype)
    compared = binary(op, a, Cast(u64.with_lanes(b.dtype.lanes), least), spans)
    holds_of_negative = op.sign in (">", ">=", "!=")
    sign = binary(COMPARE[ast.Lt if holds_of_negative else ast.GtE], least, 0, spans)
    result = binary(BINARY[ast.BitOr if holds_of_negative else ast.BitAnd], sign, compared, spans)
    assert isinstance(result, Expr)
    return LetExpr(least, b, result) if isinstance(least, Var) and least is not b else result


def _of_literals(op: Operator, a: object, b: object, span: Span) -> object:
    try:
        _refuse_giants(op, a, b)
        result = op.python(a, b)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise LiteralArithmetic(str(error), span=span).error() from None
    if not is_literal(result):
        raise LiteralArithmetic("it is not a real number", span=span).error()
    return result


def _refuse_giants(op: Operator, a: object, b: object) -> None:
    """Raises OverflowError before Python computes a huge integer that no type can hold."""
    if isinstance(a, int) and isinstance(b, int):
        bits = a.bit_length() * abs(b) if op.sign == "**" else a.bit_length() + (b if op.sign == "<<" else 0)
        if max(bits, a.bit_length(), b.bit_length()) > _MOST_BITS:
            raise OverflowError("the integer is too big for any type")


def unary(op: ast.unaryop, a: object, span: Span) -> object:
    """`-a`, `+a`, `~a`, `not a`."""
    if isinstance(op, ast.Not):
        return _logical_not(a, span)
    if isinstance(a, (bool, int, float)):
        if isinstance(op, ast.Invert):
            if isinstance(a, int) and not isinstance(a, bool):
                return ~a
            raise OperandType("~", number(a, span).dtype, "cast to an integer first", span=span).error()
        return -a if isinstance(op, ast.USub) else +a
    made = number(a, span)
    if isinstance(op, ast.Invert):
        if not made.dtype.is_integer:
            advice = "write `not x`" if made.dtype.is_bool else "cast to an integer first"
            raise OperandType("~", made.dtype, advice, span=span).error()
        return e.BitNot(made)
    if made.dtype.is_bool:
        raise OperandType("-", made.dtype, "cast to a number first, or write `not x`", span=span).error()
    return e.Neg(made) if isinstance(op, ast.USub) else made


def _logical_not(a: object, span: Span) -> object:
    if isinstance(a, bool):
        return not a
    made = number(a, span)
    if not made.dtype.is_bool:
        raise OperandType("not", made.dtype, "compare it with something: `x == 0`", span=span).error()
    return e.Not(made)


def logical(op: ast.boolop, a: Expr, b: Expr) -> Expr:
    """`a and b`, `a or b` of scalar bools."""
    return e.And(a, b) if isinstance(op, ast.And) else e.Or(a, b)


@record
class Shape:
    """`x.shape` without an index."""

    buffer: Buffer


def element(buffer: Buffer, values: Sequence[object], spans: Sequence[Span], span: Span) -> Load:
    rank, name = len(buffer.shape), buffer.name
    if len(values) != rank:
        from tirlite.ir.validate_types import IndexCount

        example = ", ".join(f"i{axis}" for axis in range(rank)) if rank else "()"
        advice = f"write {name}[{example}]"
        if 0 < len(values) < rank:
            advice += ", all indices between one pair of brackets; what has fewer axes is gone over by a loop"
        raise IndexCount(name, rank, len(values), advice, span=span).error()
    last = rank - 1
    return Load(
        buffer, tuple(_index(name, n, n == last, *each) for n, each in enumerate(zip(values, spans, strict=True)))
    )


def _index(name: str, axis: int, may_be_vector: bool, value: object, span: Span) -> Expr:
    if isinstance(value, (bool, float)) or not isinstance(value, (int, Expr)):
        raise BadIndex(axis, name, described(value), span=span).error()
    index = number(value, span)
    if not index.dtype.is_integer or (index.dtype.lanes > 1 and not may_be_vector):
        raise BadIndex(axis, name, described(value), span=span).error()
    if isinstance(index, IntImm) and index.value < 0:
        raise NegativeIndex(axis, name, index.value, span=span).error()
    return index


def chosen(values: tuple[object, ...], index: object, span: Span) -> object:
    """The element of a constant tuple at a constant index."""
    if isinstance(index, bool) or not isinstance(index, int) or not -len(values) <= index < len(values):
        raise TupleIndex(len(values), described(index), span=span).error()
    return values[index]


def _extents_of(buffer: Buffer) -> str:
    """Advice on how to write the extents of a buffer."""
    last = len(buffer.shape) - 1
    if last < 0:
        return f"`{buffer.name}` has no axes"
    return f"write {buffer.name}.shape[0]" + (f" to {buffer.name}.shape[{last}], with a constant" if last else "")


def extent_of(shape: Shape, values: Sequence[object], span: Span) -> Expr:
    """`x.shape[axis]`."""
    extents = shape.buffer.shape
    axis = values[0] if len(values) == 1 else None
    if isinstance(axis, bool) or not isinstance(axis, int) or not 0 <= axis < len(extents):
        given = " ".join(described(value) for value in values)
        raise NoSuchExtent(shape.buffer.name, given, _extents_of(shape.buffer), span=span).error()
    return extents[axis]


def tensor_type(dtype: DType, values: Sequence[object]) -> TensorType:
    """`tl.f32[values]`; a tuple from outside of the kernel counts as its elements."""
    return TensorType(dtype, tuple(values))
