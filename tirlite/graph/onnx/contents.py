"""Determines the elements of values that are known before a run: constants, and integers made of dims.

Sizes are followed through float arithmetic too, as in `Cast(Floor(Cast(extent) * 1.5))`. Such values stay operators of
the graph, and their elements are known as quotients of a size and a number. Floats equal these as long as they are not
too large: if a size results in the end, that becomes a demand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from tirlite.graph.expr import Call, Constant, Expr, TupleGetItem
from tirlite.graph.extents import Shape
from tirlite.graph.op import OPS, Op, Sizes
from tirlite.graph.operators.arrangement import Slice, SplitSizes
from tirlite.graph.types import Array, TensorType
from tirlite.ir import DType, TypeCode
from tirlite.record import record
from tirlite.sizes import Size, as_size, is_at_most

Contents = Array

# Operators that leave the elements in their order.
_SAME_ORDER = frozenset({"reshape", "assume", "identity"})

# More elements than any shape has are data, not sizes.
_MOST = 4096


def contents(expr: Expr) -> Contents | None:
    """The elements as an array of sizes, if they are integers known for all values of the dims; else None."""
    if isinstance(expr, Constant) and expr.dtype.is_integer and expr.value.size <= _MOST:
        return boxed(expr.value.tolist(), expr.value.shape)
    if isinstance(expr, Call) and isinstance(expr.attrs, Sizes):
        return boxed(list(expr.attrs.elements), tuple(map(int, map(str, expr.attrs.extents))))
    return None


def boxed(elements: Any, shape: tuple[int, ...]) -> Contents:
    """An array of Python objects."""
    made = np.empty(shape, object)
    flat = np.empty(made.size, object)
    values = [elements]
    while values and isinstance(values[0], list):
        values = [inner for each in values for inner in each]
    flat[:] = [as_size(each) for each in values] if made.size else []
    return flat.reshape(shape)


def of_each(function: Callable[..., object], *arrays: Contents) -> Contents | None:
    """A function applied to the elements of arrays, which broadcast; None if it returns None for some."""
    given = np.broadcast_arrays(*(np.asarray(each, object) for each in arrays))
    flat = np.empty(given[0].size, object)
    flat[:] = [function(*each) for each in zip(*(array.reshape(-1) for array in given), strict=True)]
    return None if any(each is None for each in flat) else flat.reshape(given[0].shape)


def moved(call: Call, given: Sequence[Any]) -> tuple[Contents, ...]:
    """The result of an operator that moves elements, applied to sizes."""
    made = OPS[operator(call)].means(call.attrs, *given)
    return tuple(np.asarray(each, object) for each in (made if isinstance(made, tuple) else (made,)))


def of_sizes(values: Contents, dtype: DType, like: Expr) -> Expr:
    """A value with these elements: a constant where none of them depends on a dim, else a call of `sizes`."""
    elements: list[Size] = [as_size(each) for each in np.asarray(values, object).reshape(-1).tolist()]
    shape: Shape = values.shape
    if all(isinstance(each, int) for each in elements):
        array = np.array([_wrapped(each, dtype) for each in elements], dtype.numpy).reshape(values.shape)
        array.flags.writeable = False
        return Constant(array, dtype, span=like.span, device=like.device)
    attrs = Sizes(tuple(elements), shape, dtype)
    return Call(OPS["sizes"], (), attrs, span=like.span, device=like.device)


def _wrapped(value: Any, dtype: DType) -> int:
    """The integer modulo the width of the type."""
    low = value & ((1 << dtype.bits) - 1)
    signed = dtype.code is TypeCode.INT and low >> (dtype.bits - 1)
    return int(low - (1 << dtype.bits) if signed else low)


def operator(expr: Expr) -> str:
    """The name of the operator that an expression calls, or ""."""
    return expr.op.name if isinstance(expr, Call) and isinstance(expr.op, Op) else ""


def taken_from(one: Expr, place: int) -> tuple[Expr, int] | None:
    """The operand from which the last operator takes an element, and its place there; None if it computes the element.

    Places are row-major numbers.
    """
    call = one.value if isinstance(one, TupleGetItem) else one
    if not isinstance(call, Call) or not call.args:
        return None
    x, attrs = call.args[0], call.attrs
    if operator(call) in _SAME_ORDER:
        return x, place
    if not isinstance(x.type, TensorType) or x.tensor.rank != 1:
        return None
    if isinstance(attrs, SplitSizes) and isinstance(one, TupleGetItem):
        start = sum(attrs.sizes[: one.index], start=as_size(0))
        return (x, start + place) if isinstance(start, int) else None
    if isinstance(attrs, Slice) and isinstance(start := attrs.starts[0], int):
        return x, start + place * attrs.steps[0]
    if operator(call) == "gather" and isinstance(index := call.args[1], Constant) and isinstance(x.shape[0], int):
        return x, int(index.value.reshape(-1)[place]) % x.shape[0]
    return None


# The most floats that are traced; the largest denominator of a factor; the integers that a factor is checked with.
_MOST_FLOATS = 64
_DENOMINATOR = 4096
_TRIED = 1 << 17


@record
class Limit:
    """Float arithmetic equals integer arithmetic as long as the size is at most this number."""

    size: Size
    most: int


@record(eq=False)
class Ratio:
    """The number `size / by`, under limits."""

    size: Size
    by: int = 1
    limits: tuple[Limit, ...] = ()

    @property
    def floored(self) -> Ratio:
        return Ratio(self.size // self.by, 1, self.limits)

    @property
    def truncated(self) -> Ratio | None:
        """The ratio rounded towards zero, as by casts to integers."""
        return self.floored if self.by == 1 or is_at_most(0, self.size) else None

    @property
    def ceiled(self) -> Ratio:
        return Ratio(-(-self.size // self.by), 1, self.limits)


Rule: TypeAlias = "Callable[[Ratio, Ratio, DType], Ratio | None]"


class FloatSizes:
    """The known ratios for floats that are computed from sizes."""

    def __init__(self) -> None:
        self._known: dict[Expr, Contents] = {}

    def of(self, expr: Expr) -> Contents | None:
        """The elements as ratios: of a value that was noted, of integers, of a constant of few simple numbers."""
        if expr in self._known:
            return self._known[expr]
        if isinstance(expr, Constant) and expr.dtype.is_float and expr.value.size <= _MOST_FLOATS:
            return of_each(_of_number, expr.value)
        found = contents(expr)
        return None if found is None or found.size > _MOST_FLOATS else of_each(Ratio, found)

    def note(self, call: Call) -> None:
        """Records the ratios of a call with floats as its result, if its operands are known."""
        name = operator(call)
        if not call.args or not hasattr(call.type, "dtype") or not call.dtype.is_float or call.dtype.bits < 32:
            return
        if name not in _MOVERS and name not in _EACH and name != "cast":
            return
        if all(isinstance(arg, Constant) for arg in call.args):
            return
        given = [self.of(arg) for arg in (call.args[:1] if name == "gather" else call.args)]
        made = None if any(each is None for each in given) else _made(call, name, given)
        if made is not None:
            self._known[call] = made


def _made(call: Call, name: str, given: Sequence[Any]) -> Contents | None:
    dtype = call.dtype
    if name == "cast":
        return of_each(lambda each: _limited(each, _exact(dtype)), given[0])
    if name in _MOVERS:
        if name == "gather" and not isinstance(call.args[1], Constant):
            return None
        indices = [call.args[1].value] if name == "gather" and isinstance(call.args[1], Constant) else []
        return moved(call, (*given, *indices))[0]
    return of_each(lambda x, y: _EACH[name](x, y, dtype), given[0], given[-1])


def _of_number(value: Any) -> Ratio | None:
    """A constant as the simple fraction that rounds to it; None if there is none."""
    number = float(value)
    if not np.isfinite(number) or abs(number) > 2**24:
        return None
    found = Fraction(number).limit_denominator(_DENOMINATOR)
    return Ratio(found.numerator, found.denominator) if type(value)(float(found)) == value else None


def _limited(ratio: Ratio, most: int) -> Ratio:
    """The ratio, whose size is to be at most this number too."""
    least = min([most, *(each.most for each in ratio.limits if each.size == ratio.size)])
    others = [each for each in ratio.limits if each.size != ratio.size]
    own = [] if is_at_most(ratio.size, least) else [Limit(ratio.size, least)]
    return Ratio(ratio.size, ratio.by, (*others, *own))


def _reduced(size: Size, by: int, *of: Ratio) -> Ratio:
    limits = tuple(dict.fromkeys(limit for each in of for limit in each.limits))
    fraction = Fraction(size, by) if isinstance(size, int) else None
    return Ratio(size, by, limits) if fraction is None else Ratio(fraction.numerator, fraction.denominator, limits)


def _sum(sign: int) -> Rule:
    def rule(a: Ratio, b: Ratio, dtype: DType) -> Ratio | None:
        return _reduced(a.size + sign * b.size, 1, a, b) if a.by == b.by == 1 else None

    return rule


def _product(a: Ratio, b: Ratio, dtype: DType) -> Ratio | None:
    """The product of a ratio and a number; rounding of inexact numbers is checked by trying."""
    if not isinstance(b.size, int):
        a, b = b, a
    if not isinstance(b.size, int) or b.size < 0:
        return _limited(_reduced(a.size * b.size, 1, a, b), _exact(dtype)) if a.by == b.by == 1 else None
    if a.by != 1:
        return None
    factor = dtype.numpy.type(b.size / b.by)
    return _tried(a, b.size, b.by, dtype, lambda whole: whole * factor)


def _quotient(a: Ratio, b: Ratio, dtype: DType) -> Ratio | None:
    if not isinstance(b.size, int) or b.size <= 0 or a.by != 1:
        return None
    divisor = dtype.numpy.type(b.size / b.by)
    return _tried(a, b.by, b.size, dtype, lambda whole: whole / divisor)


def _tried(a: Ratio, times: int, by: int, dtype: DType, floats: Callable[[Array], Array]) -> Ratio | None:
    """`a * times / by`, as long as the floats are rounded to the same integers: it is tried for the first ones."""
    if not is_at_most(0, a.size):
        return None
    if by & (by - 1) == 0:
        return _reduced(a.size * times, by, _limited(a, _exact(dtype) // max(times, 1)))
    whole = np.arange(_TRIED)
    made = floats(whole.astype(dtype.numpy))
    right = (np.floor(made) == whole * times // by) & (np.ceil(made) == -(-whole * times // by))
    most = _TRIED - 1 if right.all() else int(np.argmin(right)) - 1
    if most < _DENOMINATOR:
        return None
    return _reduced(a.size * times, by, _limited(a, most))


def _exact(dtype: DType) -> int:
    return 2**24 if dtype.bits == 32 else 2**53


_MOVERS = ("concat", "gather", "reshape", "slice", "transpose", "broadcast_to")
_EACH: Mapping[str, Rule] = {
    "add": _sum(1),
    "subtract": _sum(-1),
    "multiply": _product,
    "divide": _quotient,
    "floor": lambda a, _, dtype: a.floored,
    "ceil": lambda a, _, dtype: a.ceiled,
    "round": lambda a, _, dtype: a if a.by == 1 else None,
    "identity": lambda a, _, dtype: a,
}
