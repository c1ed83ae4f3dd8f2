"""Expressions of the IR, and the buffers that they read.

Constructors do not convert: both sides of an `Add` must have the same type. The Python operators on expressions
(`a + 1`, `x[i] * y[j]`, `i < n`) promote first, as NumPy 2 does, with weak Python literals.
`==` compares identity; write `EQ(a, b)` for the comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from importlib import import_module
from numbers import Integral, Real
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from tirlite.ir.dtype import DType, bool_, f64, handle, i64, literal_type, promote, rounded
from tirlite.ir.node import Node, node
from tirlite.ir.op import Op
from tirlite.record import record
from tirlite.show import shown

if TYPE_CHECKING:
    from tirlite.sizes import Dim, Poly, Size


_Operator: TypeAlias = "Callable[[Expr, ExprLike], Expr]"


def _operators(kind: Callable[[], type[Binary] | type[Compare]]) -> tuple[_Operator, _Operator]:
    """Python's operator for a node class, and its reflected form; the class is defined further down."""
    return lambda self, other: binary(kind(), self, other), lambda self, other: binary(kind(), other, self)


class Expr(Node):
    """A value. `dtype` is its type, lanes included."""

    __slots__ = ()
    dtype: DType

    if TYPE_CHECKING:

        def children(self) -> tuple[Expr, ...]: ...

    __add__, __radd__ = _operators(lambda: Add)
    __sub__, __rsub__ = _operators(lambda: Sub)
    __mul__, __rmul__ = _operators(lambda: Mul)
    __truediv__, __rtruediv__ = _operators(lambda: Div)
    __floordiv__, __rfloordiv__ = _operators(lambda: FloorDiv)
    __mod__, __rmod__ = _operators(lambda: FloorMod)
    __lt__, __gt__ = _operators(lambda: LT)[0], _operators(lambda: GT)[0]
    __le__, __ge__ = _operators(lambda: LE)[0], _operators(lambda: GE)[0]

    def __neg__(self) -> Expr:
        return Neg(self)

    def __size__(self) -> Size | None:
        """This expression as a size; None if it is more than integer arithmetic on dims.

        So `plan.total == 4 * n * m` compares sizes, though expressions compare by identity.
        """
        # Imported by name, as the module depends on all expression classes.
        size: Size | None = import_module("tirlite.ir.size").size_over_dims(self)
        return size

    def _sympy_(self) -> object:
        return import_module("tirlite.sizes.exchange").sympified(self, self.__size__())

    def __bool__(self) -> bool:
        reason = f"the value of `{self}` is known only when the kernel runs, so Python cannot ask for it here"
        raise TypeError(f"{reason}; an annotation with `max` or `min` of dims is put in quotes")

    def astype(self, dtype: DType) -> Expr:
        """This value converted to `dtype`; itself if it has that type."""
        return self if self.dtype == dtype else Cast(dtype, self)


ExprLike: TypeAlias = "Expr | bool | int | float | Poly"


@node
class Var(Expr):
    """A named value. A *dim* is an i64 variable with facts, bound by the shapes of the arguments."""

    name: str
    dtype: DType = i64
    dim: Dim | None = None

    def __repr__(self) -> str:
        return self.name


@node
class IntImm(Expr):
    """An integer constant, or a bool as 0 or 1."""

    dtype: DType
    value: int


@node
class FloatImm(Expr):
    """A floating-point constant, rounded to its type."""

    dtype: DType
    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", rounded(self.value, self.dtype))


@node
class StringImm(Expr):
    """A text, as an argument of some calls: the name of an extern function, an access mask."""

    value: str
    dtype: DType = field(default=handle, init=False)


@node
class Cast(Expr):
    """`value` converted: integers wrap, floats round to even, float to integer saturates and maps nan to 0."""

    CHILDREN: ClassVar = ("value",)
    dtype: DType
    value: Expr


@node
class Unary(Expr):
    """One operand, and a result of its type."""

    CHILDREN: ClassVar = ("a",)
    a: Expr
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.a.dtype)


class Neg(Unary):
    """`-a`: the sign flipped, so that -(0.0) is -0.0."""

    __slots__ = ()


class BitNot(Unary):
    """`~a` on integers."""

    __slots__ = ()


class Not(Unary):
    """`not a` on bool."""

    __slots__ = ()


@node
class Binary(Expr):
    """Two operands of one type, and a result of that type."""

    CHILDREN: ClassVar = ("a", "b")
    a: Expr
    b: Expr
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.a.dtype)


class Add(Binary):
    __slots__ = ()


class Sub(Binary):
    __slots__ = ()


class Mul(Binary):
    __slots__ = ()


class Div(Binary):
    """True division, of floats only."""

    __slots__ = ()


class FloorDiv(Binary):
    """Quotient rounded to minus infinity."""

    __slots__ = ()


class FloorMod(Binary):
    """Remainder of FloorDiv: has the sign of the divisor."""

    __slots__ = ()


class TruncDiv(Binary):
    """Quotient rounded to zero, as in C; integers only."""

    __slots__ = ()


class TruncMod(Binary):
    """Remainder of TruncDiv: has the sign of the dividend."""

    __slots__ = ()


class Min(Binary):
    """`a` where `a < b` or `a` is nan, else `b`."""

    __slots__ = ()


class Max(Binary):
    """`a` where `a > b` or `a` is nan, else `b`."""

    __slots__ = ()


class BitAnd(Binary):
    __slots__ = ()


class BitOr(Binary):
    __slots__ = ()


class BitXor(Binary):
    __slots__ = ()


class ShiftLeft(Binary):
    __slots__ = ()


class ShiftRight(Binary):
    """Arithmetic on signed, logical on unsigned integers."""

    __slots__ = ()


@node
class Compare(Expr):
    """Two operands of one type, and a bool of as many lanes."""

    CHILDREN: ClassVar = ("a", "b")
    a: Expr
    b: Expr
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        lanes = self.a.dtype.lanes
        object.__setattr__(self, "dtype", bool_ if lanes == 1 else bool_.with_lanes(lanes))


class EQ(Compare):
    __slots__ = ()


class NE(Compare):
    __slots__ = ()


class LT(Compare):
    __slots__ = ()


class LE(Compare):
    __slots__ = ()


class GT(Compare):
    __slots__ = ()


class GE(Compare):
    __slots__ = ()


class And(Binary):
    """`a and b` on scalar bools: `b` is evaluated only where `a` holds."""

    __slots__ = ()


class Or(Binary):
    """`a or b` on scalar bools: `b` is evaluated only where `a` does not hold."""

    __slots__ = ()


@node
class Select(Expr):
    """`if_true` where the condition holds, else `if_false`; both are evaluated."""

    CHILDREN: ClassVar = ("condition", "if_true", "if_false")
    condition: Expr
    if_true: Expr
    if_false: Expr
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.if_true.dtype)


@record(eq=False, repr=False)
class Buffer:
    """A typed N-dimensional window on storage, row-major and dense. Compared by identity.
    A parameter may have `strides` instead, in elements; if it is written, its elements must not overlap. `scope`: rank
    and tag as in `local.UB`. `alignment`: in bytes, 0 for the element's own. `volatile`: accesses are kept as they are.
    Indexing a buffer (`x[i, j]`) makes a Load.
    """

    name: str
    dtype: DType
    shape: tuple[Expr, ...]
    scope: str = "global"
    alignment: int = 0
    volatile: bool = False
    strides: tuple[Expr, ...] = ()

    def __repr__(self) -> str:
        return f"Buffer({self.name}: {self.dtype}, rank {len(self.shape)}, {self.scope})"

    def __getitem__(self, indices: ExprLike | tuple[ExprLike, ...]) -> Load:
        given = indices if isinstance(indices, tuple) else (indices,)
        return Load(self, tuple(as_expr(index) for index in given))


@node
class Load(Expr):
    """The element of a buffer at the indices. A Ramp as the last index loads a vector."""

    CHILDREN: ClassVar = ("indices",)
    USES: ClassVar = ("buffer",)
    buffer: Buffer
    indices: tuple[Expr, ...]
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", access_type(self.buffer, self.indices))


@node
class BufferRef(Expr):
    """A bare mention of a buffer, as an argument: an opaque use of the whole of it."""

    USES: ClassVar = ("buffer",)
    buffer: Buffer
    dtype: DType = field(default=handle, init=False)


@node
class Ramp(Expr):
    """The vector `base, base + stride, ...` of `lanes` lanes."""

    CHILDREN: ClassVar = ("base", "stride")
    base: Expr
    stride: Expr
    lanes: int
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.base.dtype.with_lanes(self.lanes))

    @classmethod
    def unit(cls, first: Expr | int, lanes: int) -> Ramp:
        """The vector `first, first + 1, ...`; i64 if `first` is a Python integer."""
        base = const(first, i64) if isinstance(first, int) else first
        return cls(base, const(1, base.dtype), lanes)


@node
class Broadcast(Expr):
    """`value` in each of `lanes` lanes."""

    CHILDREN: ClassVar = ("value",)
    value: Expr
    lanes: int
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.value.dtype.with_lanes(self.lanes))


@node
class Call(Expr):
    """An operation of the closed table `Op`: math functions, conditional evaluation, addresses, extern calls."""

    CHILDREN: ClassVar = ("args",)
    dtype: DType
    op: Op
    args: tuple[Expr, ...]


@node
class LetExpr(Expr):
    """`body` with `var` bound to `value`, which is evaluated once."""

    CHILDREN: ClassVar = ("value", "body")
    DEFINES: ClassVar = ("var",)
    var: Var
    value: Expr
    body: Expr
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.body.dtype)


def access_type(buffer: Buffer, indices: tuple[Expr, ...]) -> DType:
    """The type of the access at `indices`: the element type, times the lanes of a vector index."""
    lanes = indices[-1].dtype.lanes if indices else 1
    return buffer.dtype if lanes == 1 else buffer.dtype.with_lanes(buffer.dtype.lanes * lanes)


def as_expr(value: object, partner: DType | None = None, beside: Expr | None = None) -> Expr:
    """`value` as an expression; a number takes its type from `partner`, or its default.
    Sizes and sympy expressions become i64 over dims; symbols are the dims of those names in `beside`. Raises TypeError
    for other values.
    """
    if isinstance(value, Expr):
        return value
    if isinstance(value, int | float):
        return const(value, literal_type(value, partner))
    if isinstance(value, Real):  # a NumPy scalar
        return as_expr(int(value) if isinstance(value, Integral) else float(value), partner)
    expr: Expr = import_module("tirlite.ir.size").expr_of_size(value, beside)
    return expr


def const(value: bool | int | float, dtype: DType) -> Expr:
    """A constant of type `dtype`, in every lane.

    Raises OverflowError for an integer out of range, TypeError for a float if `dtype` is not a float type.
    """
    if dtype.is_float:
        imm: Expr = FloatImm(dtype.scalar, float(value))
    elif isinstance(value, float):
        raise TypeError(f"{value!r} is not a constant of type {dtype}")
    elif not dtype.min <= value <= dtype.max:
        raise OverflowError(f"{shown(value)} does not fit into {dtype.scalar} ({dtype.min} to {dtype.max})")
    else:
        imm = IntImm(dtype.scalar, int(value))
    return imm if dtype.lanes == 1 else Broadcast(imm, dtype.lanes)


def binary(kind: type[Binary] | type[Compare], a: ExprLike, b: ExprLike) -> Expr:
    """`kind` of two operands promoted to a common type; true division of integers is in f64."""
    left = as_expr(a, b.dtype, b) if isinstance(b, Expr) else as_expr(a)
    right = as_expr(b, left.dtype, left)
    if not isinstance(a, Expr):
        left = as_expr(a, right.dtype, right)
    dtype = promote(left.dtype, right.dtype)
    if dtype is None:
        raise TypeError(f"{kind.__name__} of {left.dtype} and {right.dtype}")
    if kind is Div and not dtype.is_float:
        dtype = f64.with_lanes(dtype.lanes)
    return kind(widened(left, dtype), widened(right, dtype))


def widened(value: Expr, dtype: DType) -> Expr:
    """`value` cast to the scalar type of `dtype`, and broadcast to its lanes if scalar."""
    cast = value.astype(dtype.scalar.with_lanes(value.dtype.lanes))
    return cast if cast.dtype.lanes == dtype.lanes else Broadcast(cast, dtype.lanes)
