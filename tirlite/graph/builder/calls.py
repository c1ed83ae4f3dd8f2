"""Builds the calls of a builder's methods from expressions, arrays or numbers.

`operator` declares a method of a class of calls as an operator, which `OPS` finds. Where an operator demands that two
extents are equal, one gives way to the other. Values that were made before still have it in their types: they are seen
through `assume`, which costs nothing, and made anew once the graph is finished.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MethodType
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

from tirlite.diag import GraphMessage, Source, Span, hint
from tirlite.graph.demands import Demands
from tirlite.graph.expr import (
    Call,
    Constant,
    Expr,
    FunctionNode,
    If,
    Tuple,
    TupleGetItem,
    Var,
    constant,
    operands_first,
    rebuilt,
)
from tirlite.graph.extents import Shape
from tirlite.graph.op import OPS, Attrs, Lowering, Meaning, Op, Reshape, Site, Sizes, Spelling, plain
from tirlite.graph.run_dims import RunDim, mapped_run_dim, run_dims
from tirlite.graph.types import Array, TensorType, Type, bfloat_bits, tensors
from tirlite.ir import SCALARS, DType, TypeCode, literal_type
from tirlite.record import replace
from tirlite.sizes import Dim, Proof, Size, prove_eq, substitute
from tirlite.sizes.poly import atom_of


class Renewal:
    """The current form of values made before."""

    def __init__(self, demands: Demands) -> None:
        self.demands = demands
        self._known: dict[Expr, Expr] = {}
        self._changes = (0, 0)
        self._extents: dict[RunDim, Size] = {}

    def value(self, value: Expr, name: str = "", span: Span | None = None) -> Expr:
        """The value with its current extents; the check that it has them belongs to the node that uses it."""
        if not self.demands.has_changed or not isinstance(value.type, TensorType):
            return value
        if self._changes != self.demands.changes:
            self._changes = self.demands.changes
            self._known.clear()
        if value not in self._known:
            self._known[value] = self._renewed(value, self.shape(value.type.shape), name, span)
        return self._known[value]

    def shape(self, shape: Shape) -> Shape:
        """The extents in their current form."""
        return tuple(map(self._now, shape))

    def operands(
        self, op: Op, args: tuple[Expr, ...], attrs: Attrs, name: str, span: Span | None
    ) -> tuple[tuple[Expr, ...], Attrs]:
        """Operands and attributes of a call, renewed once what the operator demands of them is noted."""
        args, attrs = self._operands(args, attrs, name, span)
        before, self.demands.found_equal = self.demands.changes, []
        try:
            op.infer(Site(op.name, tuple(arg.type for arg in args), attrs, name, span, self.demands))
            pairs = self.demands.found_equal
        finally:
            self.demands.found_equal = None
        if self.demands.changes != before:
            args, attrs = self._operands(args, attrs, name, span)
        return tuple(_seen_as(arg, pairs, name, span) for arg in args) if pairs else args, attrs

    def is_open(self, a: Size, b: Size, asked_by: str, span: Span | None) -> bool:
        """Whether the equality of two sizes depends on dims and cannot be solved for one of them."""
        a, b = self.demands.now(a), self.demands.now(b)
        return not self.demands.ask(a, b, asked_by, span) and prove_eq(a, b) is Proof.UNKNOWN

    def branches(self, then: Expr, other: Expr, name: str, span: Span | None) -> tuple[Expr, Expr]:
        """The values of two branches, which must have the same type."""
        site = Site("if", (then.type, other.type), Attrs(), name, span, self.demands)
        for a, b in zip(tensors(then.type), tensors(other.type), strict=False):
            if a.rank == b.rank:
                all(map(site.is_equal, a.shape, b.shape))
        return self.value(then), self.value(other)

    def settled(self, params: Sequence[Var], values: Sequence[Expr]) -> tuple[list[Var], list[Expr]]:
        """Parameters and values of a finished graph by the extents that are left, each expression made once."""
        if not self.demands.has_changed:
            return [*params], [*values]
        renewed = [replace(param, given=self._type(param)) for param in params]
        made: dict[Expr, Expr] = dict(zip(params, renewed, strict=True))
        for expr in operands_first(Tuple(tuple(values))):
            if expr not in made:
                self._renew_extents(expr, made)
                made[expr] = self._again(expr, made)
        return renewed, [self.value(made[value]) for value in values]

    def _renew_extents(self, expr: Expr, made: Mapping[Expr, Expr]) -> None:
        """Gives run-time extents the renewed values."""
        if not isinstance(expr, Call | If) or not expr.sources:
            return
        for dim in run_dims(expr.sizes):
            if dim not in self._extents:
                self._extents[dim] = mapped_run_dim(dim, made[dim.source], self._now) + 0

    def _now(self, size: Size) -> Size:
        """The size in its current form."""
        now = self.demands.now(size)
        return substitute(now, self._extents) if self._extents else now

    def _operands(
        self, args: tuple[Expr, ...], attrs: Attrs, name: str, span: Span | None
    ) -> tuple[tuple[Expr, ...], Attrs]:
        if not self.demands.has_changed:
            return args, attrs
        return tuple(self.value(arg, name, span) for arg in args), attrs.mapped(self._now)

    def _type(self, param: Var) -> TensorType:
        return TensorType(self.shape(param.tensor.shape), param.dtype)

    def _renewed(self, value: Expr, shape: Shape, name: str, span: Span | None) -> Expr:
        if isinstance(value, Call) and isinstance(value.attrs, Sizes):
            return value.replaced(attrs=value.attrs.mapped(self._now))
        if shape == value.shape:
            return value
        where = span or value.span
        return Call(OPS["assume"], (value,), Reshape(shape), name=name, span=where, device=value.device)

    def _again(self, expr: Expr, made: Mapping[Expr, Expr]) -> Expr:
        """The same expression of renewed operands and current sizes."""
        if isinstance(expr, If) or (isinstance(expr, Call) and isinstance(expr.op, Op)):
            again = rebuilt(expr, lambda each: self.value(made[each]), self._now)
        else:
            again = rebuilt(expr, made.__getitem__)
        if isinstance(again, Call) and again.op is OPS["assume"] and again.shape == again.args[0].shape:
            return again.args[0]
        return again


def _seen_as(arg: Expr, pairs: Sequence[tuple[Size, Size]], name: str, span: Span | None) -> Expr:
    """An operand seen with extents that must equal its own; a run in which they differ stops."""
    for first, second in pairs:
        # Keep the extent that is known before the run; if both are, the one that is a plain dim.
        stays = bool(run_dims([second])) or (bool(atom_of(first, Dim)) and not run_dims([first]))
        old, new = (second, first) if stays else (first, second)
        if isinstance(arg.type, TensorType) and old in arg.shape:
            shape = tuple(new if extent == old else extent for extent in arg.shape)
            arg = Call(OPS["assume"], (arg,), Reshape(shape), name=name, span=span, device=arg.device)
    return arg


Exprs: TypeAlias = "tuple[Expr, ...]"
Operand: TypeAlias = "Expr | Array | np.generic | bool | int | float"
_OURS = ("tirlite.graph", "tirlite.diag")


class BadConstant(GraphMessage):
    """A value cannot be a constant of a graph.

    Example: `g.constant(np.array(["a"]))`.
    Fix: Give an array of numbers or bools.
    """

    code = "bad-graph-constant"
    title = "{given} is not a constant of a graph{why}"
    help = "give an array or a number of one of the types {known}"

    given: str
    why: str = ""
    known: str = ", ".join(dtype.name for dtype in SCALARS)


class NotAnOperand(GraphMessage):
    """A method of a graph's builder was given something that is not a value of a graph.

    Example: `g.relu("x")`.
    """

    title = "{given} is not an operand"
    help = "give what another method of the builder returned, an array or a number"


class UnknownOperator(GraphMessage):
    """There is no operator of this name.

    Example: `g.call("reciprocl", x)`.
    Fix: Take one of the names in `tl.graph.OPS`.
    """

    title = "there is no operator `{name}`"
    help = "`tl.graph.OPS` holds all operators by name{hint}"

    name: str
    hint: str = ""


class CallBuilder:
    """Makes calls, each with the user's line as its span, and the device and the name that are set."""

    def __init__(self) -> None:
        self._span: Span | None = None
        self._name = ""
        self._device = 0
        self.demands = Demands()
        self.renewal: Renewal | None = None

    def call(self, op: str, *operands: Operand, attrs: Attrs | None = None, name: str = "") -> Call:
        """A call of the operator of this name, with these attributes."""
        span = self._here()
        if op not in OPS:
            raise UnknownOperator(op, hint(op, OPS), span=span).error()
        args = self._operands(operands, span)
        made = attrs if attrs is not None else OPS[op].attrs()
        called = name or self._name
        if self.renewal is not None:
            args, made = self.renewal.operands(OPS[op], args, made, called, span)
        return Call(OPS[op], args, made, name=called, span=span, device=self._device)

    def invoke(self, function: FunctionNode, *operands: Operand, name: str = "") -> Call:
        """A call of a function."""
        span = self._here()
        args = self._operands(operands, span)
        return Call(function, args, name=name or self._name, span=span, device=self._device)

    def constant(self, value: npt.ArrayLike, dtype: DType | None = None, name: str = "") -> Constant:
        """A tensor with the array's current elements; for bfloat16 give their bits as uint16.

        Without `dtype` it has the array's element type; a Python number becomes an i64, an f64 or a bool.
        """
        return self._constant(value, dtype, name, self._here())

    def tuple(self, *fields: Operand) -> Tuple:
        """Several values as a tuple."""
        span = self._here()
        return Tuple(self._operands(fields, span), span=span, device=self._device)

    def item(self, value: Expr, index: int) -> TupleGetItem:
        """One field of a tuple, counted from 0."""
        return TupleGetItem(value, index, span=self._here(), device=self._device)

    @contextmanager
    def on(self, device: int) -> Iterator[None]:
        """Puts all values built in the block on this device, a DLPack device type."""
        before, self._device = self._device, device
        try:
            yield
        finally:
            self._device = before

    @contextmanager
    def at(self, span: Span | None, name: str = "") -> Iterator[None]:
        """Gives all values built in the block this span and name, for importers."""
        before = self._span, self._name
        self._span, self._name = span, name
        try:
            yield
        finally:
            self._span, self._name = before

    def _asking(self, what: str) -> str:
        """The name of the operator that makes a demand, for messages, with the name of the value if one is set."""
        return f"{self._name} = {what}" if self._name else what

    def _here(self) -> Span | None:
        return self._span or user_line()

    def _operands(self, given: Iterable[Operand], span: Span | None) -> Exprs:
        """The operands as expressions; a number takes the element type of the first tensor beside it."""
        operands = [*given]
        typed = [each for each in operands if not isinstance(each, bool | int | float)]
        partner = next((self._operand(each, None, span) for each in typed), None)
        dtype = partner.dtype if partner is not None and hasattr(partner.type, "dtype") else None
        return (*(self._operand(each, dtype, span) for each in operands),)

    def _operand(self, given: object, partner: DType | None, span: Span | None) -> Expr:
        if isinstance(given, Expr):
            return given
        if isinstance(given, bool | int | float):
            return self._constant(given, literal_type(given, partner), "", span)
        if isinstance(given, np.ndarray | np.generic):
            return self._constant(given, None, "", span)
        raise NotAnOperand(repr(given), span=span).error()

    def _constant(self, value: object, dtype: DType | None, name: str, span: Span | None) -> Constant:
        if dtype is None and isinstance(value, bool | int | float):
            dtype = literal_type(value, None)
        if isinstance(value, np.ma.MaskedArray):
            raise BadConstant("a MaskedArray", ": its mask would be lost", span=span).error()
        try:
            array = _array(value, dtype)
        except (OverflowError, TypeError, ValueError) as error:
            raise BadConstant(repr(value), f": {error}", span=span).error() from None
        found = dtype or next((each for each in SCALARS if each.stored == array.dtype), None)
        if found is None:
            raise BadConstant(f"an array of {array.dtype}", span=span).error()
        return constant(array, found, name=name, span=span)


def _array(value: object, dtype: DType | None) -> Array:
    """The elements as stored: for bfloat16, a Python number becomes the bits of the nearest bfloat16."""
    if dtype is not None and dtype.code is TypeCode.BFLOAT and isinstance(value, bool | int | float):
        return bfloat_bits(np.asarray(value, np.float32))
    return np.asarray(value, None if dtype is None else dtype.stored)


def user_line() -> Span | None:
    """The line outside of this package that is being executed."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    file, number = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(file, number).rstrip("\n")
    column = len(text) - len(text.lstrip())
    return Span(Source(file, (text,) if text else (), number), number, column, number, max(len(text), column + 1))


F = TypeVar("F", bound=Callable[..., object])
Rule = Callable[..., Type]
Formula = Callable[..., object]


def operator(
    rule: Rule,
    meaning: Meaning | None = None,
    lowering: Lowering | str | None = None,
    *,
    least: int = 1,
    most: int | None = -1,
    attrs: type[Attrs] = Attrs,
    is_view: bool = False,
    overwrites: bool = False,
    onnx: Spelling | None = None,
) -> Callable[[F], F]:
    """Declares an operator named like the decorated method, which calls it; `most` defaults to `least`."""
    made = Lowering(lowering) if isinstance(lowering, str) else lowering
    is_elementwise = made is not None and made.formula is not None and made.aligned is None

    def declared(method: F) -> F:
        method.operator = Op(  # type: ignore[attr-defined]
            method.__name__,
            rule,
            least,
            least if most == -1 else most,
            attrs,
            is_view,
            is_elementwise,
            overwrites,
            meaning,
            made,
            onnx,
            method,
        )
        return method

    return declared


M = TypeVar("M")


class Member(Generic[M]):
    """An operator of a family, as a member of a builder's class: a method, made when it gets its name."""

    def __init__(
        self, doc: str, method: Callable[[str], Callable[..., object]], declare: Callable[[str], Callable[[Any], Any]]
    ) -> None:
        self._doc, self._make, self._declare = doc, method, declare

    def __set_name__(self, owner: type, name: str) -> None:
        method = self._make(name)
        method.__name__, method.__qualname__, method.__doc__ = name, f"{owner.__qualname__}.{name}", self._doc
        self._method = self._declare(name)(method)
        self.operator: Op = self._method.operator

    @overload
    def __get__(self, builder: None, owner: type) -> Callable[..., Call]: ...

    @overload
    def __get__(self, builder: CallBuilder, owner: type) -> M: ...

    def __get__(self, builder: CallBuilder | None, owner: type) -> object:
        return self._method if builder is None else MethodType(self._method, builder)


class OfOne(Protocol):
    """A method that takes one operand."""

    def __call__(self, x: Operand) -> Call: ...


class OfTwo(Protocol):
    """A method that takes two operands."""

    def __call__(self, x: Operand, y: Operand) -> Call: ...


def formula(name: str, of: Formula) -> Lowering:
    """The kernel of an element-wise operator: this formula, an expression of expressions, at each element."""
    return Lowering("elementwise.elementwise", (name, of), formula=of)


def unary(doc: str, rule: Rule, value: Formula, kernel: Formula, onnx: str = "") -> Member[OfOne]:
    """An operator of one operand: what it gives, its rule, its NumPy function, its formula, and its name in ONNX."""

    def method(name: str) -> Callable[[CallBuilder, Operand], Call]:
        def one(self: CallBuilder, x: Operand) -> Call:
            return self.call(name, x)

        return one

    return Member(doc, method, _elementwise(rule, value, kernel, onnx, 1))


def binary(doc: str, rule: Rule, value: Formula, kernel: Formula, onnx: str = "") -> Member[OfTwo]:
    """As `unary`, of two operands that broadcast."""

    def method(name: str) -> Callable[[CallBuilder, Operand, Operand], Call]:
        def two(self: CallBuilder, x: Operand, y: Operand) -> Call:
            return self.call(name, x, y)

        return two

    return Member(doc, method, _elementwise(rule, value, kernel, onnx, 2))


def _elementwise(
    rule: Rule, value: Formula, kernel: Formula, onnx: str, least: int
) -> Callable[[str], Callable[[F], F]]:
    spelling = Spelling(onnx) if onnx else None
    return lambda name: operator(rule, plain(value), formula(name, kernel), least=least, onnx=spelling)
