"""Converts values of the kernel language to typed expressions: weak literals, promotion, implicit and explicit casts.

A value is the meaning of a source expression: an IR expression, a Python number (a weak literal), or something that is
not a number (a buffer, a type, a word, a string).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from tirlite.diag import Message, Span
from tirlite.dsl.parameters import checked, described
from tirlite.ir.dtype import DType, literal_type, promote, rounded
from tirlite.ir.expr import Buffer, Cast, Expr, FloatImm, const, widened
from tirlite.show import shown


class NotANumber(Message):
    """A buffer, a type or a text stands where a number belongs.

    Example: `y[i] = x + 1`, where `x` is a buffer.
    Fix: Take an element: `x[i] + 1`.
    """

    title = "{given} is not a number"
    help = "{advice}"


class NoCommonType(Message):
    """Two values have no type in which they meet.

    Example: A sum of a vector of 4 lanes and a vector of 8 lanes.
    """

    title = "{left} and {right} have no common type"
    help = "cast one of them, or give them the same number of lanes"


class LossyStore(Message):
    """A value would lose its kind where it is stored.

    Example: `counts[i] = 0.5 * x[i]`, where `counts` holds integers.
    Fix: Cast the value as you want it rounded: `tl.i32(tl.round(0.5 * x[i]))`.
    """

    title = "a value of type {source} does not go into `{name}` of type {target}"
    help = "{advice}"

    name: str
    source: DType
    target: DType
    advice: str


class ImpossibleCast(Message):
    """A cast between types that have no conversion.

    Example: `tl.f32x4(x[i])` of a scalar.
    Fix: Cast numbers to scalar types; make a vector of equal lanes with `tl.broadcast`.
    """

    code = "no-such-cast"
    title = "{given} cannot be cast to tl.{target}"
    help = "a cast takes a number, and a vector is cast to a vector of as many lanes"


class NotACondition(Message):
    """A number stands where true or false is asked for.

    Example: `if count:`.
    """

    title = "{given} is neither true nor false"
    label = "a condition is a bool"
    help = "compare it with something: `x != 0`"


class NotAnInteger(Message):
    """Something else stands where a scalar integer is asked for.

    Example: `for i in range(0.5 * n):`.
    Fix: Use an integer, as in `n // 2`, or cast with `tl.i64(...)`.
    """

    title = "{role} is {given}"
    help = "{role} is a scalar integer: cast with tl.i64(...)"


def is_literal(value: object) -> bool:
    return isinstance(value, (bool, int, float))


def number(value: object, span: Span, partner: DType | None = None) -> Expr:
    """`value` as an expression; a literal takes its type from `partner`, or its default."""
    if isinstance(value, Expr) and not value.dtype.is_handle:
        return value
    if isinstance(value, (bool, int, float)):
        return constant(value, literal_type(value, partner), span)
    raise NotANumber(described(value), _advice_for(value), span=span).error()


def _advice_for(value: object) -> str:
    if isinstance(value, Buffer):
        element = f"{value.name}[{', '.join(f'i{n}' for n in range(len(value.shape))) or '()'}]"
        return f"name an element of it, {element}, in a loop: whole arrays are not computed with"
    if isinstance(value, DType):
        return f"a type is called to cast: tl.{value}(x)"
    return "a number, an element of a buffer or a computed value belongs here"


def constant(value: bool | int | float, dtype: DType, span: Span) -> Expr:
    """A constant of type `dtype`. Raises KernelError if the type cannot hold it."""
    try:
        if dtype.is_float and isfinite(value) and not isfinite(rounded(float(value), dtype)):
            raise OverflowError
        return const(value, dtype)
    except (OverflowError, TypeError):
        if dtype.is_float:
            held = "no finite number as large; float('inf') is infinity"
        elif isinstance(value, float):
            held = "no fractions"
        else:
            held = f"{dtype.min} to {dtype.max}"
        from tirlite.ir.validate_types import ConstantRange

        raise ConstantRange(shown(value), dtype.scalar, held, span=span).error() from None


def together(values: Sequence[object], spans: Sequence[Span]) -> tuple[Expr, ...]:
    """The values as expressions of one type and number of lanes, promoted as by NumPy 2 with weak literals."""
    dtype: DType | None = None
    for value, span in zip(values, spans, strict=True):
        if not is_literal(value):
            dtype = _met(dtype, number(value, span).dtype, span)
    for value, span in zip(values, spans, strict=True):
        if isinstance(value, (bool, int, float)):
            dtype = _met(dtype, literal_type(value, dtype), span)
    assert dtype is not None
    return tuple(widened(number(value, span, dtype), dtype) for value, span in zip(values, spans, strict=True))


def _met(left: DType | None, right: DType, span: Span) -> DType:
    if left is None:
        return right
    dtype = promote(left, right)
    if dtype is None:
        raise NoCommonType(f"tl.{left}", f"tl.{right}", span=span).error()
    return checked(dtype, span)


def condition(value: object, span: Span) -> Expr:
    """`value` as a scalar bool."""
    made = number(value, span)
    if not made.dtype.is_bool or made.dtype.lanes != 1:
        raise NotACondition(described(value), span=span).error()
    return made


def integer(value: object, role: str, span: Span) -> Expr:
    """`value` as a scalar integer; a literal is i64."""
    made = number(value, span) if not isinstance(value, Buffer) else None
    if made is None or not made.dtype.is_integer or made.dtype.lanes != 1:
        raise NotAnInteger(role, described(value), span=span).error()
    return made


def cast(value: object, target: DType, span: Span) -> Expr:
    """`tl.TYPE(value)`: a literal becomes a constant of that type, anything else a Cast, even if it changes nothing."""
    checked(target, span)
    if isinstance(value, str) and target.is_float and value in ("nan", "inf", "-inf"):
        return FloatImm(target, float(value))
    if isinstance(value, (bool, int, float)):
        return constant(value, target, span)
    if not isinstance(value, Expr) or value.dtype.is_handle or value.dtype.lanes != target.lanes:
        raise ImpossibleCast(described(value), target, span=span).error()
    return Cast(target, value)


def stored(value: object, target: DType, name: str, span: Span) -> Expr:
    """`value` converted for storing to `name` of type `target`: cast within its kind, or to a wider kind."""
    if isinstance(value, (bool, int, float)):
        own = literal_type(value, None)
        if _rank(own) > _rank(target):
            raise _lossy(own, target, name, span)
        return constant(value, target, span)
    made = number(value, span)
    if _rank(made.dtype) > _rank(target):
        raise _lossy(made.dtype, target, name, span)
    if made.dtype.lanes not in (1, target.lanes):
        raise NoCommonType(f"tl.{made.dtype}", f"tl.{target}", span=span).error()
    return widened(made, target)


def _lossy(source: DType, target: DType, name: str, span: Span) -> Exception:
    advice = "compare it with something: `x != 0`" if target.is_bool else f"write tl.{target}(...)"
    return LossyStore(name, source, target, advice, span=span).error()


def _rank(dtype: DType) -> int:
    """The order of kinds for implicit casts: bools to integers to floats, not back."""
    return 2 if dtype.is_float else 1 if dtype.is_integer else 0
