"""The expressions of a graph: immutable, compared by identity, each with its type, which follows from its parts.

A graph is a DAG: an expression that is used twice is one object, computed once. Where it is computed follows from
where it is used, see `program`.
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
    """A value in a graph. `span` is the place it came from; `device` a DLPack device type, 0 where none is given.

    `name` is what people call the value; it means nothing.
    """

    type: Type = field(init=False)
    span: Span | None = field(default=None, kw_only=True)
    device: int = field(default=0, kw_only=True)

    @property
    @abstractmethod
    def operands(self) -> tuple[Expr, ...]:
        """The expressions directly below, in the order in which they are visited."""

    def replaced(self, **changes: object) -> Self:
        """The same expression with some parts changed, all others (its span among them) as they are."""
        return cast(Self, replace(cast(Any, self), **changes))

    @property
    def tensor(self) -> TensorType:
        """Its type, where it is a tensor."""
        if not isinstance(self.type, TensorType):
            raise TypeError(f"{self.type} is not a tensor")
        return self.type

    @property
    def sizes(self) -> list[Size]:
        """The extents in its type, and the sizes in its attributes that depend on dims."""
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
        """Returns if all of them are expressions."""
        for part in parts:
            demand_kind(type(self).__name__, part, Expr)


@record(eq=False, repr=False)
class Var(Expr):
    """A parameter, or the name that a Let gives to a value."""

    name: str
    given: Type

    def __post_init__(self) -> None:
        self._put_type(self.given)

    @property
    def operands(self) -> tuple[Expr, ...]:
        return ()


@record(eq=False, repr=False)
class Constant(Expr):
    """A tensor whose elements are known. `value` may not be written to; for bfloat16 it holds the bits as uint16."""

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
    """The array as it is now, C-contiguous: one that can be written to is copied."""
    demand_kind("constant", array, np.ndarray)
    demand_kind("constant", dtype, DType)
    kept = np.require(array, requirements="C")
    if kept.flags.writeable or (kept.base is not None and kept is not array):
        kept = kept.copy()
        kept.flags.writeable = False
    return Constant(kept.reshape(array.shape), dtype, name=name, span=span)


class RunDimOfFunction(GraphMessage):
    """A function is called whose result has an extent that its run finds.

    Example: `g.invoke(f, x)`, where `f` returns the indices of what is not zero in `x`.
    """

    title = "`{function}` returns {type}, with an extent known only at run time, and is called by another function"
    help = "build what it does into the function that calls it"


@record(eq=False, repr=False)
class Call(Expr):
    """An operator, or a function, applied to values.

    `sources` are the values of the extents in its type and its attributes that a run finds.
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
        """The dims that the value tells: extents that steps of a loop change."""
        return frozenset() if isinstance(self.op, Op) else _own_dims(self.type, self.args)

    @property
    def is_view(self) -> bool:
        """Whether it gives the bytes of its operand another shape."""
        return isinstance(self.op, Op) and self.op.is_view


def _found_by_run(of: Type, sizes: Iterable[Size]) -> tuple[Expr, ...]:
    """The values of the extents in a type, and of those in other sizes, that a run finds."""
    return tuple(dict.fromkeys(dim.source for dim in run_dims(with_limits((*extents_in((of,)), *sizes)))))


@record(eq=False, repr=False)
class Tuple(Expr):
    """Several values as one."""

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
    """One of the values of a tuple."""

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
        """Which of the tensors in the tuple, from left to right, are those of this value."""
        assert isinstance(self.value.type, TupleType)
        start = sum(len(tensors(each)) for each in self.value.type.fields[: self.index])
        return slice(start, start + len(tensors(self.type)))


@record(eq=False, repr=False)
class Let(Expr):
    """`body`, in which `var` is `value`."""

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
    """`then` where the condition holds, else `other`. What only one of them uses is computed only there.

    Both have one type, or that of `given`, whose extents are those of the branch that is taken: a run finds them, or
    the value itself tells them, where they are dims that neither branch mentions.
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
        """The dims that the value tells."""
        return _own_dims(self.given, (self.then, self.other)) if self.given is not None else frozenset()


def _own_dims(of: Type, parts: Iterable[Expr]) -> frozenset[Dim]:
    """The extents of a type that are dims by themselves, and are none of the parts'."""
    return frozenset(_dims(of)).difference(*(_dims(each.type) for each in parts))


def _dims(of: Type) -> Iterator[Dim]:
    """The extents of a type that are dims by themselves."""
    for extent in extents_in((of,)):
        yield from (dim for dim in atom_of(extent, Dim) if not isinstance(dim, RunDim))


def _may_be(given: Type | None, of: Type) -> bool:
    """Whether a value of type `of` may be one of type `given`: extents that a run finds may be any."""
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
    """Parameters and a body over them: what a `Function` is, without its text.

    `demands` is what its operators ask of extents beyond what is proved of them: each call is checked for it.
    `declared` are the types of the parameters before these were told by it, if there are others.

    Operators and functions can be called; calls hold this, so that the printer can stand between it and `Function`.
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
        """The type of what it returns."""
        return self.body.type

    @property
    def extents(self) -> list[Size]:
        """The extents in the types of its parameters, from left to right."""
        return extents_in(param.type for param in self.params)

    def replaced(self, **changes: object) -> Self:
        """The same function with some parts changed."""
        return cast(Self, replace(cast(Any, self), **changes))

    def __reduce__(self) -> tuple[object, ...]:
        # What is pickled first is not entered again: in this order, a deep graph takes no deep stack.
        parts = [getattr(self, name) for name in parts_of(type(self))]
        return _restored, (type(self), operands_first(self.body), parts)


def _restored(kind: type[FunctionNode], _: list[Expr], parts: list[object]) -> FunctionNode:
    made = object.__new__(kind)
    for name, value in zip(parts_of(kind), parts, strict=True):
        object.__setattr__(made, name, value)
    return made


def rebuilt(expr: Expr, value: Callable[[Expr], Expr], size: Callable[[Size], Size] | None = None) -> Expr:
    """The same expression of what one function makes of its operands, another one of the sizes that were said in it.

    Those are sizes in attributes, and in the type that an If is given. What changes in nothing is itself.
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
    """All expressions below one, and itself, each once and after its operands."""
    return needs_first((root,), attrgetter("operands"))


def callees_first(function: FunctionNode) -> list[FunctionNode]:
    """The functions that it calls, and those that these call, and itself: each behind those that it needs."""
    return needs_first(
        (function,),
        lambda each: [
            s.op for s in operands_first(each.body) if isinstance(s, Call) and isinstance(s.op, FunctionNode)
        ],
    )


def matched(site: Site, params: tuple[Type, ...], result: Type) -> Type:
    """`result` with the function's dims as the call gives them: a parameter `f32[n, 3]` takes `f32[2*m, 3]`."""
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
