"""The expressions of a graph: immutable, compared by identity, each with a type that is inferred from its parts.

A graph is a DAG: an expression that is used twice is one object, computed once. `program` derives from its uses where
it is computed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from operator import attrgetter
from typing import Any, Self, cast

import numpy as np

from tirlite.diag import GraphMessage, Span, public
from tirlite.diag.error import demand_kind
from tirlite.graph.demands import Demand
from tirlite.graph.extents import is_equal
from tirlite.graph.op import Attrs, Op, OperandCount, Site
from tirlite.graph.run_dims import RunDim, run_dims, with_limits
from tirlite.graph.types import (
    Array,
    TensorType,
    TupleType,
    Type,
    extents_in,
    mapped_type,
    same_type,
    substituted,
    tensors,
)
from tirlite.ir import DType
from tirlite.needs import needs_first
from tirlite.record import parts_of, record, replace
from tirlite.sizes import Dim, Size, substitute
from tirlite.sizes.poly import atom_of


class NoSuchField(GraphMessage):
    """A field of a tuple was asked for that it does not have.

    Example: `g.item(pair, 2)`.
    """

    title = "field {index} of {type}"
    help = "fields count from 0, and only tuples have them"


class BadCondition(GraphMessage):
    """The condition of an `If` is not a single bool.

    Example: `g.if_(x, a, b)` where `x` is `f32[4]`.
    """

    code = "bad-graph-condition"
    title = "the condition has the type {type}, and must be bool_[()]"
    help = "compare, and reduce or reshape to one element without axes"


class BranchTypes(GraphMessage):
    """The branches of an `If` have different types, or types that are not proved to be equal.

    Example: `g.if_(c, x, y)` where `x` is `f32[n]` and `y` is `f32[m]`.
    Fix: Give both the same shape and element type.
    """

    title = "the branches have the types {then} and {other}"
    help = "both must have the same shapes, for all values of the dims, and element types"


@record(eq=False, repr=False)
class Expr(ABC):
    """A value in a graph. `span` is its source location, `device` a DLPack device type, or 0 if none is given.

    A subclass's `name` is for readers only and has no meaning.
    """

    type: Type = field(init=False)
    span: Span | None = field(default=None, kw_only=True)
    device: int = field(default=0, kw_only=True)

    @property
    @abstractmethod
    def operands(self) -> tuple[Expr, ...]:
        """The direct subexpressions, in the order in which they are visited."""

    def replaced(self, **changes: object) -> Self:
        """The same expression with some parts changed; the others, such as its span, are kept."""
        return cast(Self, replace(cast(Any, self), **changes))

    @property
    def tensor(self) -> TensorType:
        """Its type. Raises TypeError if that is not a tensor type."""
        if not isinstance(self.type, TensorType):
            raise TypeError(f"{self.type} is not a tensor")
        return self.type

    @property
    def sizes(self) -> list[Size]:
        """The extents in its type, and the sizes in its attributes that depend on dims, if it has attributes."""
        return extents_in((self.type,))

    @property
    def shape(self) -> tuple[Any, ...]:
        """The extents, which are sizes over dims."""
        return self.tensor.shape

    @property
    def dtype(self) -> DType:
        return self.tensor.dtype

    def __repr__(self) -> str:
        # One level only: a graph may be deeper than Python's stack.
        return f"<{type(self).__name__}: {self.type}>"

    def _put_type(self, found: Type) -> None:
        object.__setattr__(self, "type", found)

    def _demand(self, *parts: object) -> None:
        """Raises an error if a part is not an expression."""
        for part in parts:
            demand_kind(type(self).__name__, part, Expr)


@record(eq=False, repr=False)
class Var(Expr):
    """A parameter, or the variable of a Let."""

    name: str
    given: Type

    def __post_init__(self) -> None:
        self._put_type(self.given)

    @property
    def operands(self) -> tuple[Expr, ...]:
        return ()


@record(eq=False, repr=False)
class Constant(Expr):
    """A tensor with known elements. `value` must not be modified; for bfloat16 it has the bits as uint16."""

    value: Array
    given: DType
    name: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        demand_kind("Constant", self.value, np.ndarray)
        demand_kind("Constant", self.given, DType)
        self._put_type(TensorType(self.value.shape, self.given))

    @property
    def operands(self) -> tuple[Expr, ...]:
        return ()


@public
def constant(array: Array, dtype: DType, *, name: str = "", span: Span | None = None) -> Constant:
    """A constant of the array's current elements, C-contiguous; an array that could be modified is copied."""
    demand_kind("constant", array, np.ndarray)
    demand_kind("constant", dtype, DType)
    kept = np.require(array, requirements="C")
    if kept.flags.writeable or (kept.base is not None and kept is not array):
        kept = kept.copy()
        kept.flags.writeable = False
    return Constant(kept.reshape(array.shape), dtype, name=name, span=span)


class RunDimOfFunction(GraphMessage):
    """A function is called whose result has a run-time extent.

    Example: `g.invoke(f, x)`, where `f` returns the indices of what is not zero in `x`.
    """

    title = "`{function}` returns {type}, with an extent known only at run time, and is called by another function"
    help = "build what it does into the function that calls it"


@record(eq=False, repr=False)
class Call(Expr):
    """A call of an operator or a function.

    `sources` are the expressions whose values are extents in its type and attributes, and only known during the run.
    """

    op: Op | FunctionNode
    args: tuple[Expr, ...]
    attrs: Attrs = Attrs()  # frozen, and equal by value
    name: str = field(default="", kw_only=True)
    sources: tuple[Expr, ...] = field(init=False)

    def __post_init__(self) -> None:
        demand_kind("Call", self.args, tuple)
        self._demand(*self.args)
        if not isinstance(self.op, Op):
            demand_kind("Call", self.op, FunctionNode)
        site = Site(self.op.name, tuple(arg.type for arg in self.args), self.attrs, self.name, self.span)
        if isinstance(self.op, Op):
            self._put_type(self.op.infer(site))
        else:
            if _found_by_run(self.op.result, ()):
                raise RunDimOfFunction(self.op.name, str(self.op.result), span=self.span).error()
            self._put_type(matched(site, tuple(param.type for param in self.op.params), self.op.result))
        object.__setattr__(self, "sources", _found_by_run(self.type, self.attrs.symbolic_sizes()))

    @property
    def operands(self) -> tuple[Expr, ...]:
        return (*self.args, *self.sources) if self.sources else self.args

    @property
    def sizes(self) -> list[Size]:
        return [*extents_in((self.type,)), *self.attrs.symbolic_sizes()]

    @property
    def tells(self) -> frozenset[Dim]:
        """The dims whose values are read from the result's shape: extents that steps of a loop change."""
        return frozenset() if isinstance(self.op, Op) else _own_dims(self.type, self.args)

    @property
    def is_view(self) -> bool:
        """Whether the result is the operand's bytes under another shape."""
        return isinstance(self.op, Op) and self.op.is_view


def _found_by_run(of: Type, sizes: Iterable[Size]) -> tuple[Expr, ...]:
    """The expressions of the extents in a type, and in further sizes, that are only known during the run."""
    return tuple(dict.fromkeys(dim.source for dim in run_dims(with_limits((*extents_in((of,)), *sizes)))))


@record(eq=False, repr=False)
class Tuple(Expr):
    """Several values as a tuple."""

    fields: tuple[Expr, ...]

    def __post_init__(self) -> None:
        demand_kind("Tuple", self.fields, tuple)
        self._demand(*self.fields)
        self._put_type(TupleType(tuple(each.type for each in self.fields)))

    @property
    def operands(self) -> tuple[Expr, ...]:
        return self.fields


@record(eq=False, repr=False)
class TupleGetItem(Expr):
    """One field of a tuple."""

    value: Expr
    index: int

    def __post_init__(self) -> None:
        self._demand(self.value)
        demand_kind("TupleGetItem", self.index, int)
        of = self.value.type
        if not isinstance(of, TupleType) or not 0 <= self.index < len(of.fields):
            raise NoSuchField(self.index, str(of), span=self.span).error()
        self._put_type(of.fields[self.index])

    @property
    def operands(self) -> tuple[Expr, ...]:
        return (self.value,)

    @property
    def tensor_slice(self) -> slice:
        """The positions of this field's tensors among all tensors of the tuple, from left to right."""
        assert isinstance(self.value.type, TupleType)
        start = sum(len(tensors(each)) for each in self.value.type.fields[: self.index])
        return slice(start, start + len(tensors(self.type)))


@record(eq=False, repr=False)
class Let(Expr):
    """`body`, in which `var` stands for `value`."""

    var: Var
    value: Expr
    body: Expr

    def __post_init__(self) -> None:
        demand_kind("Let", self.var, Var)
        self._demand(self.value, self.body)
        self._put_type(self.body.type)

    @property
    def operands(self) -> tuple[Expr, ...]:
        return (self.value, self.body)


@record(eq=False, repr=False)
class If(Expr):
    """`then` if the condition is true, else `other`. Expressions that only one branch uses are computed only there.

    Both branches have the same type. With `given`, they may differ in extents, and the result has the type `given` with
    the taken branch's extents: these are run-time extents, or read from the result if they are dims of its own.
    """

    condition: Expr
    then: Expr
    other: Expr
    name: str = field(default="", kw_only=True)
    given: Type | None = field(default=None, kw_only=True)
    sources: tuple[Expr, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._demand(self.condition, self.then, self.other)
        of = self.condition.type
        if not (isinstance(of, TensorType) and of.rank == 0 and of.dtype.is_bool):
            raise BadCondition(str(of), span=self.span).error()
        if not all(_may_be(self.given, each.type) for each in (self.then, self.other)):
            raise BranchTypes(str(self.then.type), str(self.other.type), span=self.span).error()
        if self.given is None and not same_type(self.then.type, self.other.type):
            raise BranchTypes(str(self.then.type), str(self.other.type), span=self.span).error()
        self._put_type(self.then.type if self.given is None else self.given)
        object.__setattr__(self, "sources", _found_by_run(self.type, ()))

    @property
    def operands(self) -> tuple[Expr, ...]:
        return (self.condition, self.then, self.other, *self.sources)

    @property
    def tells(self) -> frozenset[Dim]:
        """The dims whose values are read from the result's shape."""
        return _own_dims(self.given, (self.then, self.other)) if self.given is not None else frozenset()


def _own_dims(of: Type, parts: Iterable[Expr]) -> frozenset[Dim]:
    """The extents of a type that are plain dims and do not occur in the types of the parts."""
    return frozenset(_dims(of)).difference(*(_dims(each.type) for each in parts))


def _dims(of: Type) -> Iterator[Dim]:
    """The extents of a type that are plain dims."""
    for extent in extents_in((of,)):
        yield from (dim for dim in atom_of(extent, Dim) if not isinstance(dim, RunDim))


def _may_be(given: Type | None, of: Type) -> bool:
    """Whether a value of type `of` may have the type `given`, whose dims and run-time extents match any extent."""
    if given is None:
        return True
    mine, theirs = tensors(given), tensors(of)
    return len(mine) == len(theirs) and all(
        a.dtype == b.dtype
        and a.rank == b.rank
        and all(is_equal(m, n) or run_dims([m]) or atom_of(m, Dim) for m, n in zip(a.shape, b.shape, strict=True))
        for a, b in zip(mine, theirs, strict=True)
    )


@record(eq=False, repr=False)
class FunctionNode:
    """A function without its printer: parameters and a body.

    primitive: it is implemented by one kernel, so that planners do not look inside.
    outputs: the names of the result, or of the fields of a result that is a tuple; empty if they have no names.
    demands: conditions on extents that are not proved, checked at each call.
    declared: the declared types of the parameters, if demands have refined these since.

    Calls refer to this class, and not to its subclass `Function`, so that the printer can import both.
    """

    name: str
    params: tuple[Var, ...]
    body: Expr
    primitive: bool = field(default=False, kw_only=True)
    outputs: tuple[str, ...] = field(default=(), kw_only=True)
    demands: tuple[Demand, ...] = field(default=(), kw_only=True)
    declared: tuple[Type, ...] = field(default=(), kw_only=True)
    span: Span | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        demand_kind("Function", self.params, tuple)
        for param in self.params:
            demand_kind("Function", param, Var)
        demand_kind("Function", self.body, Expr)

    @property
    def result(self) -> Type:
        """The type of the returned value."""
        return self.body.type

    @property
    def extents(self) -> list[Size]:
        """The extents in the types of its parameters, from left to right."""
        return extents_in(param.type for param in self.params)

    def replaced(self, **changes: object) -> Self:
        """The same function with some parts changed."""
        return cast(Self, replace(cast(Any, self), **changes))

    def __reduce__(self) -> tuple[object, ...]:
        # Pickle operands before their users: a deep graph then needs no deep recursion.
        parts = [getattr(self, name) for name in parts_of(type(self))]
        return _restored, (type(self), operands_first(self.body), parts)


def _restored(kind: type[FunctionNode], _: list[Expr], parts: list[object]) -> FunctionNode:
    made = object.__new__(kind)
    for name, value in zip(parts_of(kind), parts, strict=True):
        object.__setattr__(made, name, value)
    return made


def rebuilt(expr: Expr, value: Callable[[Expr], Expr], size: Callable[[Size], Size] | None = None) -> Expr:
    """Rebuilds an expression: `value` maps its operands, `size` the sizes in attributes and in an If's `given` type.

    Returns the same object if nothing changes.
    """
    changes: dict[str, object] = {}
    if isinstance(expr, Call):
        attrs = expr.attrs if size is None else expr.attrs.mapped(size)
        changes = {"args": tuple(map(value, expr.args)), "attrs": attrs}
    elif isinstance(expr, If):
        given = expr.given if size is None or expr.given is None else mapped_type(expr.given, size)
        changes = {name: value(getattr(expr, name)) for name in ("condition", "then", "other")} | {"given": given}
    elif isinstance(expr, Tuple):
        changes = {"fields": tuple(map(value, expr.fields))}
    elif isinstance(expr, TupleGetItem):
        changes = {"value": value(expr.value)}
    is_same = all(getattr(expr, name) == each for name, each in changes.items())
    return expr if is_same else expr.replaced(**changes)


def operands_first(root: Expr) -> list[Expr]:
    """All expressions that `root` depends on, and itself, each once and after its operands."""
    return needs_first((root,), attrgetter("operands"))


def callees_first(function: FunctionNode) -> list[FunctionNode]:
    """The function and all functions that it calls, directly or not, each after its callees."""
    return needs_first(
        (function,),
        lambda each: [
            s.op for s in operands_first(each.body) if isinstance(s, Call) and isinstance(s.op, FunctionNode)
        ],
    )


def matched(site: Site, params: tuple[Type, ...], result: Type) -> Type:
    """`result` with the callee's dims replaced by the extents of the call: `f32[n, 3]` matches `f32[2*m, 3]`."""
    if len(site.args) != len(params):
        raise OperandCount(str(site), site.op, str(len(params)), len(site.args), span=site.span).error()
    sizes: dict[Dim, Size] = {}
    pairs = []
    for number, (param, arg) in enumerate(zip(params, site.args, strict=True)):
        wanted, given = tensors(param), tensors(arg)
        if isinstance(param, TensorType) != isinstance(arg, TensorType) or len(wanted) != len(given):
            raise site.wrong_type(f"parameter {number} is {param}")
        for a, b in zip(wanted, given, strict=True):
            if a.dtype != b.dtype:
                raise site.wrong_type(f"parameter {number} is {param}")
            if a.rank != b.rank:
                raise site.mismatch(f"parameter {number} is {param}")
            pairs += [(number, param, extent, value) for extent, value in zip(a.shape, b.shape, strict=True)]
    for _, _, extent, value in pairs:
        for dim in atom_of(extent, Dim):
            sizes.setdefault(dim, value)
    for number, param, extent, value in pairs:
        if not is_equal(substitute(extent, sizes), value):
            raise site.mismatch(f"parameter {number} is {param}; {extent} is not proved to be {value}")
    return substituted(result, sizes)
