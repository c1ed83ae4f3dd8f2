"""Builds a validated graph function from inputs, constants and operators.

g = Builder("net")
x = g.input("x", tl.f32[n, 64])
y = g.relu(g.dense(x, weights, bias))
f = g.function(y)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType, MethodType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tirlite.diag import GraphError, GraphMessage
from tirlite.graph.builder.calls import CallBuilder, Operand, Renewal, user_line
from tirlite.graph.closing import Closed, closed_over, depending
from tirlite.graph.demands import Demands
from tirlite.graph.expr import Call, Expr, If, Let, Tuple, Var
from tirlite.graph.extents import Extent, is_equal, size_of
from tirlite.graph.function import Function
from tirlite.graph.loop import LoopFunction, LoopSteps
from tirlite.graph.op import OPS, Reshape, Sizes
from tirlite.graph.operators.arrangement import Arrangement, Broadcast, Creation
from tirlite.graph.operators.binary import Binary
from tirlite.graph.operators.convolution import Convolution
from tirlite.graph.operators.elementwise import Elementwise
from tirlite.graph.operators.indexing import Indexing, Selection
from tirlite.graph.operators.linear import Linear
from tirlite.graph.operators.normalization import Normalization
from tirlite.graph.operators.pooling import Pooling
from tirlite.graph.operators.quantization import Quantization
from tirlite.graph.operators.recurrence import Recurrence
from tirlite.graph.operators.reduction import Reduction
from tirlite.graph.operators.sampling import Sampling, Scaling
from tirlite.graph.run_dims import run_dim, run_dims, with_limits
from tirlite.graph.types import TensorType, Type, same_type, tensor_type
from tirlite.graph.validate import validate
from tirlite.ir import DType, TensorType as Annotation, bool_, i64
from tirlite.sizes import Dim, Size, dims_of
from tirlite.sizes.dim import contradiction
from tirlite.sizes.terms import Origin

# From the step number, the condition so far and the carried values: the next condition, the carried values, results.
LoopBody: TypeAlias = "Callable[[Expr, Expr, list[Expr]], tuple[Expr, Sequence[Expr], Sequence[Expr]]]"


class NoExtent(GraphMessage):
    """An extent is to be the value of something that is not one integer.

    Example: `g.extent(x, 8)` where `x` is `f32[4]`.
    Fix: Give an integer without axes: reduce, or reshape, to one.
    """

    title = "a value of the type {type} is not an extent"
    help = "an extent is one integer without axes, such as `g.reduce_sum` gives"


_NONE: Mapping[int, Collection[int]] = MappingProxyType({})


class LoopBuilder(CallBuilder):
    """Builds sequential loops and run-time extents."""

    def __init__(self) -> None:
        super().__init__()
        self._origin = Origin()
        self._changed = 0

    def extent(self, value: Operand, most: Extent | None = None, name: str = "found", *, least: Extent = 0) -> Size:
        """A run-time extent: the value of a scalar integer, checked to be in `least` .. `most`.

        Tensors with this extent get storage for `most`. Without `most` their storage is planned during the run, once
        the extent is known; such a graph is compiled in segments.
        """
        span = self._here()
        source = self._operand(value, None, span)
        if not isinstance(source.type, TensorType) or source.type.rank or not source.dtype.is_integer:
            raise NoExtent(str(source.type), span=span).error()
        high = None if most is None else size_of(most, span)
        return run_dim(name, source, high, self._origin, size_of(least, span)) + 0

    def loop(
        self,
        step: LoopBody,
        limit: Operand,
        carried: Sequence[Expr],
        *,
        going: Operand = True,
        most: Extent = 0,
        changing: Mapping[int, Collection[int]] = _NONE,
    ) -> tuple[Expr, list[Expr], list[Expr]]:
        """Returns the number of steps, the carried values after the last step, and the results of all steps.

        step: called once to build the body, with the step number, the condition and the carried values; returns the
            next condition, the next carried values and the step's results. The results are stacked along a new first
            axis of extent `most`; rows after the last step are not written.
        limit: a scalar i64; steps are numbered from 0 to below it, and end earlier if the condition becomes false.
        going: the condition before the first step.
        changing: for the numbers of carried values, the axes whose extent a step may change. These extents are carried
            too; such a loop runs in Python, its steps in native code.
        """
        span, name = self._here(), self._name or "loop"
        start, last, go = (self._operand(each, None, span) for each in (np.int64(0), limit, going))
        head = tuple(Var(each, TensorType((), of)) for each, of in _FIRST)
        axes = [sorted(changing.get(place, ())) for place in range(len(carried))]
        states = [
            Var(f"carried{place}", self._inside(*each)) for place, each in enumerate(zip(carried, axes, strict=True))
        ]
        numbers = [[Var(f"extent{place}_{axis}", _LENGTH) for axis in some] for place, some in enumerate(axes)]
        seen = [self._known(*each) for each in zip(states, axes, numbers, strict=True)]
        goes, after, made = step(head[0], head[2], seen)
        for before, then, some in zip(carried, after, axes, strict=True):
            if not _may_become(before.type, then.type, some):
                raise LoopSteps(name, f"makes {then.type} of {before.type}", span=span).error()
        inside = depending((*head, *states, *chain(*numbers)), (goes, *after, *made), self._stops)
        rows = [_found_in(inside, each) for each in made]
        numbers += [[Var(f"extent_of{place}_{axis}", _LENGTH) for axis in some] for place, some in enumerate(rows)]
        begin = [*self._lengths(carried, axes), *(self.constant(np.int64(0)) for _ in chain(*rows))]
        end = [*self._lengths(after, axes), *self._lengths(made, rows)]
        given = (*head, *states, *chain(*numbers))
        inner = closed_over(given, (goes, *after, *end, *made), [size_of(most, span)], self._stops)
        params, outside = inner.params, inner.outside
        if (extents := inner.untold()) and (told := tuple(inner.outer(each) for each in extents)):
            # An empty tensor passes the dims that no other parameter's shape has.
            params += (Var("told", TensorType((*extents, 0), bool_)),)
            false = self.constant(np.array(False))
            outside += (self.call("broadcast_to", false, attrs=Broadcast((*told, 0))),)
        count = len(states) + len(end)
        behind = self._behind(inner, count, axes, rows) if end else ()
        function = LoopFunction(name, params, inner.body, carried=count, most=inner.room[0], behind=behind, span=span)
        call = self.invoke(function, start, last, go, *carried, *begin, *outside, name=name)
        steps, *items = [self.item(call, place) for place in range(1 + count + len(made))]
        lengths = iter(items[len(states) : count])
        left = [self.found(*each, lengths) for each in zip(items, axes, strict=False)]
        results = [self.found(*each, lengths) for each in zip(items[count:], map(_one_on, rows), strict=True)]
        return steps, left, results

    def _stops(self, expr: Expr) -> bool:
        """Whether the expression checks extents and may stop the run; a loop without steps must not check any."""
        if not isinstance(expr, Call) or expr.op is not OPS["assume"]:
            return False
        now = self.demands.now
        return not all(is_equal(now(a), now(b)) for a, b in zip(expr.shape, expr.args[0].shape, strict=True))

    def _lengths(self, values: Sequence[Expr], axes: Sequence[Sequence[int]]) -> list[Expr]:
        return [self.length(value, axis) for value, some in zip(values, axes, strict=True) for axis in some]

    def _behind(
        self, inner: Closed, count: int, axes: Sequence[Sequence[int]], rows: Sequence[Sequence[int]]
    ) -> tuple[Type, ...]:
        """The types of a loop's results: carried values, carried extents, and stacked results of steps."""
        carried = [each.type for each in inner.params[len(_FIRST) : len(_FIRST) + count]]
        made = [TensorType((*inner.room, *each.shape), each.dtype) for each in inner.body.fields[1 + count :]]
        opened = [*axes, *([[]] * (count - len(axes))), *map(_one_on, rows)]
        types: list[Type] = [*carried, *made]
        return tuple(self.left(of, some) if some else of for of, some in zip(types, opened, strict=True))

    def length(self, value: Expr, axis: int) -> Expr:
        """The extent of a value along an axis, as a scalar i64."""
        return self.call("sizes", attrs=Sizes((value.shape[axis],), ()))

    def left(self, of: Type, axes: Collection[int], where: str = "left") -> TensorType:
        """The type with new dims along some axes, whose values are read from the value's shape.

        Used for results of loops and branches whose extents have no bound; see `found`.
        """
        self._changed += 1
        assert isinstance(of, TensorType)
        shape = [
            Dim(f"{where}_{self._changed}_{axis}", 0) + 0 if axis in axes else extent
            for axis, extent in enumerate(of.shape)
        ]
        return TensorType(tuple(shape), of.dtype)

    def found(self, value: Expr, axes: Collection[int], lengths: Iterator[Expr]) -> Expr:
        """A value of a type made by `left`, reshaped to the extents that `lengths` has for the axes."""
        if not axes:
            return value
        extents = {axis: self.extent(next(lengths), name="left") for axis in axes}
        shape = tuple(extents.get(axis, extent) for axis, extent in enumerate(value.shape))
        return self.call("assume", value, attrs=Reshape(shape))

    def _inside(self, value: Expr, axes: Collection[int]) -> Type:
        return self.left(value.tensor, axes, "carried") if axes else value.type

    def _known(self, state: Var, axes: Collection[int], lengths: Sequence[Expr]) -> Expr:
        """A carried value with run-time extents instead of its own dims, which must not occur elsewhere in the step."""
        if not axes:
            return state
        shape = list(state.shape)
        for axis, length in zip(axes, lengths, strict=True):
            shape[axis] = self.extent(length, shape[axis], "carried", least=shape[axis])
        return self.call("assume", state, attrs=Reshape(tuple(shape)))


def _found_in(inside: Collection[Expr], value: Expr) -> list[int]:
    """The axes of a result whose extents are found inside of the step."""
    extents = enumerate(value.shape)
    return [axis for axis, extent in extents if any(dim.source in inside for dim in run_dims(with_limits([extent])))]


def _one_on(axes: Sequence[int]) -> list[int]:
    """The numbers of the axes after a new first axis is inserted."""
    return [axis + 1 for axis in axes]


def _may_become(before: Type, behind: Type, axes: Collection[int]) -> bool:
    """Whether a step may turn a carried value's type `before` into `behind`, changing only extents of these axes."""
    if not axes or not (isinstance(before, TensorType) and isinstance(behind, TensorType)):
        return same_type(before, behind)
    pairs = enumerate(zip(before.shape, behind.shape, strict=False))
    is_alike = (before.dtype, before.rank) == (behind.dtype, behind.rank)
    return is_alike and all(axis in axes or is_equal(a, b) for axis, (a, b) in pairs)


_FIRST = (("number", i64), ("limit", i64), ("going", bool_))
_LENGTH = TensorType((), i64)


class CellBuilder(Elementwise, Binary, Linear, Arrangement):
    """Recurrent cells, for one time step: inputs `[batch, inputs]`, states `[batch, hidden]`."""

    def lstm_cell(
        self, x: Operand, hidden: Operand, cell: Operand, weight: Operand, recurrence: Operand, bias: Operand
    ) -> tuple[Call, Call]:
        """The next hidden state and the next cell state.

        `weight` is `[4 * hidden, inputs]`, `recurrence` `[4 * hidden, hidden]`, `bias` `[4 * hidden]`, each with the
        rows of the input gate, the output gate, the forget gate and the candidate, in this order, as in ONNX.
        """
        sums = self.add(self.dense(x, weight, bias), self.dense(hidden, recurrence))
        write, read, keep, candidate = self.split(sums, 4, axis=1)
        kept = self.multiply(self.sigmoid(keep), cell)
        state = self.add(kept, self.multiply(self.sigmoid(write), self.tanh(candidate)))
        return self.multiply(self.sigmoid(read), self.tanh(state)), state


class NoOutputs(GraphMessage):
    """A graph was finished without a result.

    Example: `g.function([])`.
    """

    code = "graph-without-outputs"
    title = "`{name}` has no outputs"
    help = "a function returns at least one value: `g.function(y)`, or `g.function({{'scores': y}})`"


class Builder(
    CellBuilder,
    Convolution,
    Creation,
    Indexing,
    Normalization,
    Pooling,
    Quantization,
    Recurrence,
    Reduction,
    Sampling,
    Scaling,
    Selection,
    LoopBuilder,
):
    """Builds one function. Every method returns an expression, whose span is the line of the call.

    Operands are expressions, arrays (which become constants), or numbers (which get the other operand's element type).
    With `demands`, a condition on extents that is not proved is no error: it is added there, and checked at each call.
    """

    def __init__(self, name: str, *, demands: Demands | None = None) -> None:
        super().__init__()
        if demands is not None:
            self.demands, self.renewal = demands, Renewal(demands)
        self.name = name
        self._params: list[Var] = []
        self._lets: list[tuple[Var, Expr]] = []
        self._dims: dict[Dim, None] = {}
        self._place = user_line()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., object]:
            """The method of an operator that is declared outside of this class's bases."""
            if name.startswith("_") or name not in OPS:
                raise AttributeError(f"a builder has no `{name}`", name=name, obj=self)
            return MethodType(OPS[name].method, self)

    def input(self, name: str, of: Annotation | TensorType | DType) -> Var:
        """Adds a parameter: `g.input("x", tl.f32[n, 3])`, or `tl.f32` for a scalar. Parameters are in order of calls.

        Raises GraphError if `of` is not a type, or if dims of one name have different facts.
        """
        span = self._here()
        made = tensor_type(of, name, span)
        if self.renewal is not None:
            for dim in (dim for extent in made.shape for dim in dims_of(extent)):
                self.renewal.demands.know(dim)
            made = TensorType(self.renewal.shape(made.shape), made.dtype)
        self._dims.update(dict.fromkeys(dim for extent in made.shape for dim in dims_of(extent)))
        if (message := contradiction(self._dims)) is not None:
            raise GraphError(message.replaced(span=span))
        var = Var(name, made, span=span, device=self._device)
        self._params.append(var)
        return var

    def let(self, name: str, value: Operand) -> Var:
        """Binds a value to a name; it is computed even if it is not used."""
        span = self._here()
        bound = self._operand(value, None, span)
        var = Var(name, bound.type, span=span, device=self._device)
        self._lets.append((var, bound))
        return var

    def if_(
        self, condition: Operand, then: Operand, other: Operand, name: str = "", *, given: Type | None = None
    ) -> If:
        """`then` if the condition, a scalar bool, is true, else `other`.

        Expressions that only one branch uses are computed only if it is taken. If the branches' extents differ, `given`
        is the type of the result, with run-time extents.
        """
        span = self._here()
        test = self._operand(condition, None, span)
        first, second = self._operands((then, other), span)
        if self.renewal is not None and given is None:
            first, second = self.renewal.branches(first, second, name or self._name, span)
        return If(test, first, second, name=name or self._name, given=given, span=span, device=self._device)

    def function(
        self, outputs: Expr | Sequence[Expr] | Mapping[str, Expr], *, name: str | None = None, primitive: bool = False
    ) -> Function:
        """The function of all inputs so far that returns `outputs`: one value, several as a tuple, or several by name.

        Raises GraphError if the function is ill-formed.
        """
        single = isinstance(outputs, Expr)
        values = [outputs] if isinstance(outputs, Expr) else list(getattr(outputs, "values", lambda: outputs)())
        if not values:
            raise NoOutputs(name or self.name, span=self._here()).error()
        params = self._params
        if self.renewal is not None:
            params, values = self.renewal.settled(params, values)
        body = values[0] if single or len(values) == 1 else Tuple(tuple(values), span=self._here())
        for var, value in reversed(self._lets):
            body = Let(var, value, body, span=var.span)
        names = tuple(outputs) if isinstance(outputs, Mapping) else ()
        made = Function(
            name or self.name,
            tuple(params),
            body,
            primitive=primitive,
            outputs=names,
            demands=self.demands.settled(),
            declared=() if params == self._params else tuple(param.type for param in self._params),
            span=self._place,
        )
        validate(made)
        return made
