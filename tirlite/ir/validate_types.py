"""Rules for the types of expressions' operands; each returns a message or None."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from tirlite.diag import Message
from tirlite.ir import expr as e
from tirlite.ir.dtype import DType
from tirlite.ir.node import Node
from tirlite.show import shown

Rule: TypeAlias = Callable[[Any], Message | None]


class OperandTypesDiffer(Message):
    """The two sides of an operation have different types.

    Example: `Add(IntImm(i64, 1), FloatImm(f32, 1.0))`.
    Fix: Cast one side.
    """

    title = "the operands of {kind} have the types {left} and {right}"
    help = "both sides have one type: cast one of them"


class OperandType(Message):
    """An operation does not take operands of this type.

    Example: `BitAnd(x, y)` of f32.
    Fix: Cast the operands.
    """

    title = "{kind} takes {wanted}, not {dtype}"
    help = "cast the operand"


class SelectLanes(Message):
    """The lanes of a condition do not fit those of the values that it selects from.

    Example: A condition of 4 lanes over values of 8 lanes.
    """

    title = "a condition of {condition} lanes selects between values of {values} lanes"
    help = "the condition has one lane, or as many as the values"


class ImpossibleCast(Message):
    """A cast changes the number of lanes, or is from or to a handle.

    Example: `Cast(f32.with_lanes(4), x)` of a scalar.
    Fix: Use `Broadcast` for lanes; keep handles as they are.
    """

    title = "a value of type {source} cannot be cast to {target}"
    help = "a cast keeps the number of lanes, and handles have no other type"


class ConstantType(Message):
    """A constant has a type that its kind of node does not hold.

    Example: `IntImm(f32, 1)`.
    Fix: Use `FloatImm` for floats and `Broadcast` for vectors.
    """

    title = "{kind} cannot have the type {dtype}"
    help = "IntImm is a scalar integer or bool, FloatImm a scalar float; other lanes are made by Broadcast"


class ConstantRange(Message):
    """A constant is not a value of its type.

    Example: `a[i] = 300`, where `a` holds `tl.u8`.
    Fix: Correct the value, or use a wider type.
    """

    title = "{value} is not a value of tl.{dtype}"
    help = "tl.{dtype} holds {range}"


class VectorLanes(Message):
    """A vector is made with fewer than two lanes.

    Example: `Ramp(base, stride, 1)`.
    Fix: Use the scalar itself.
    """

    title = "{kind} makes a vector of {lanes} lanes"
    help = "a vector has two lanes or more"


class LetType(Message):
    """A variable is bound to a value of another type.

    Example: `Let(Var("t", f32), IntImm(i64, 1))`.
    Fix: Cast the value, or declare the variable with its type.
    """

    title = "`{name}` of type {declared} is bound to a value of type {dtype}"


class IndexCount(Message):
    """A buffer is indexed by more or fewer indices than it has axes.

    Example: `x[i]`, where `x` has the type `tl.f32[n, m]`.
    Fix: Write an index for each axis: `x[i, j]`.
    """

    title = "`{name}` has rank {rank}, and is indexed by {count}"
    help = "{advice}"

    advice: str = ""


class IndexType(Message):
    """An index in the IR is not an integer.

    Example: `Load(x, (FloatImm(f64, 0.0),))`.
    Fix: Cast the index to i64.
    """

    title = "index {axis} of `{name}` has the type {dtype}"
    help = "an index is an integer"


class IndexLanes(Message):
    """An index that is not the last one is a vector.

    Example: `Load(x, (Ramp(i, one, 4), j))`.
    Fix: Only the last index may have lanes: loop over the others.
    """

    title = "index {axis} of `{name}` is a vector of {lanes} lanes"
    help = "only the last index may be a vector"


class MisplacedArgument(Message):
    """A text or a bare buffer stands where a value belongs.

    Example: `Add(StringImm("a"), x)`.
    Fix: Give texts and buffers to calls only.
    """

    title = "{kind} stands in {parent}"
    help = "a string or a buffer without indices may only be an argument of a call"


def same_types(node: e.Binary | e.Compare) -> Message | None:
    left, right = node.a.dtype, node.b.dtype
    return None if left == right else OperandTypesDiffer(type(node).__name__, left, right)


def operand(wanted: str, allowed: Callable[[DType], bool]) -> Rule:
    """A rule that the first operand has an allowed type; `same_types` checks the second."""

    def rule(node: e.Unary | e.Binary | e.Compare) -> Message | None:
        dtype = node.a.dtype
        return None if allowed(dtype) else OperandType(type(node).__name__, wanted, dtype)

    return rule


def select_condition(node: e.Select) -> Message | None:
    dtype = node.condition.dtype
    return None if dtype.is_bool else OperandType("the condition of Select", "a bool", dtype)


def select_values(node: e.Select) -> Message | None:
    left, right = node.if_true.dtype, node.if_false.dtype
    return None if left == right else OperandTypesDiffer("Select", left, right)


def select_lanes(node: e.Select) -> Message | None:
    condition, values = node.condition.dtype.lanes, node.dtype.lanes
    return None if condition in (1, values) else SelectLanes(condition, values)


def cast(node: e.Cast) -> Message | None:
    source, target = node.value.dtype, node.dtype
    is_possible = source.lanes == target.lanes and not (source.is_handle or target.is_handle)
    return None if is_possible else ImpossibleCast(source, target)


def integer_constant(node: e.IntImm) -> Message | None:
    dtype = node.dtype
    if dtype.lanes != 1 or not dtype.is_bits:
        return ConstantType("IntImm", dtype)
    fits = dtype.min <= node.value <= dtype.max
    return None if fits else ConstantRange(shown(node.value), dtype, f"{dtype.min} to {dtype.max}")


def float_constant(node: e.FloatImm) -> Message | None:
    dtype = node.dtype
    return None if dtype.lanes == 1 and dtype.is_float else ConstantType("FloatImm", dtype)


def lanes(node: e.Ramp | e.Broadcast) -> Message | None:
    return None if node.lanes >= 2 else VectorLanes(type(node).__name__, node.lanes)


def ramp_base(node: e.Ramp) -> Message | None:
    dtype = node.base.dtype
    fits = dtype.is_integer and dtype.lanes == 1
    return None if fits else OperandType("Ramp", "a scalar integer", dtype)


def ramp_stride(node: e.Ramp) -> Message | None:
    base, stride = node.base.dtype, node.stride.dtype
    return None if base == stride else OperandTypesDiffer("Ramp", base, stride)


def broadcast_value(node: e.Broadcast) -> Message | None:
    dtype = node.value.dtype
    fits = dtype.lanes == 1 and not dtype.is_handle
    return None if fits else OperandType("Broadcast", "a scalar", dtype)


def index_count(node: Any) -> Message | None:
    rank, count = len(node.buffer.shape), len(node.indices)
    return None if rank == count else IndexCount(node.buffer.name, rank, count)


def index_types(node: Any) -> Message | None:
    for axis, index in enumerate(node.indices):
        if not index.dtype.is_integer:
            return IndexType(axis, node.buffer.name, index.dtype)
    return None


def index_lanes(node: Any) -> Message | None:
    for axis, index in enumerate(node.indices[:-1]):
        if index.dtype.lanes != 1:
            return IndexLanes(axis, node.buffer.name, index.dtype.lanes)
    return None


def let_type(node: Any) -> Message | None:
    declared, dtype = node.var.dtype, node.value.dtype
    return None if declared == dtype else LetType(node.var.name, declared, dtype)


def no_stray_argument(node: Node) -> Message | None:
    """Strings and bare buffers may occur in calls only; for every node but Call."""
    for child in node.children():
        if isinstance(child, (e.StringImm, e.BufferRef)):
            return MisplacedArgument(type(child).__name__, type(node).__name__)
    return None


ACCESS: tuple[Rule, ...] = (index_count, index_types, index_lanes, no_stray_argument)

_NUMBERS = (same_types, operand("numbers", lambda dtype: dtype.is_number))
_INTEGERS = (same_types, operand("integers", lambda dtype: dtype.is_integer))
_BITS = (same_types, operand("integers or bools", lambda dtype: dtype.is_bits))
_SCALAR_BOOLS = (same_types, operand("scalar bools", lambda dtype: dtype.is_bool and dtype.lanes == 1))
_VALUES = (same_types, operand("numbers or bools", lambda dtype: not dtype.is_handle))

EXPRESSION_RULES: Mapping[type[Node], tuple[Rule, ...]] = {
    e.IntImm: (integer_constant,),
    e.FloatImm: (float_constant,),
    e.Cast: (cast,),
    e.Neg: (operand("a number", lambda dtype: dtype.is_number),),
    e.BitNot: (operand("an integer", lambda dtype: dtype.is_integer),),
    e.Not: (operand("a bool", lambda dtype: dtype.is_bool),),
    e.Div: (same_types, operand("floats", lambda dtype: dtype.is_float)),
    **dict.fromkeys((e.Add, e.Sub, e.Mul, e.FloorDiv, e.FloorMod), _NUMBERS),
    **dict.fromkeys((e.TruncDiv, e.TruncMod, e.ShiftLeft, e.ShiftRight), _INTEGERS),
    **dict.fromkeys((e.BitAnd, e.BitOr, e.BitXor), _BITS),
    **dict.fromkeys((e.And, e.Or), _SCALAR_BOOLS),
    **dict.fromkeys((e.Min, e.Max, e.EQ, e.NE, e.LT, e.LE, e.GT, e.GE), _VALUES),
    e.Select: (select_condition, select_values, select_lanes, no_stray_argument),
    e.Load: ACCESS,
    e.Ramp: (lanes, ramp_base, ramp_stride),
    e.Broadcast: (lanes, broadcast_value),
    e.LetExpr: (let_type, no_stray_argument),
}
