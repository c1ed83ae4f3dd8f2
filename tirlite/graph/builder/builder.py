"""Builds a validated function of inputs, constants and operators: the way to build a graph by hand.

g = Builder("net")
x = g.input("x", tl.f32[n, 64])
y = g.relu(g.dense(x, weights, bias))
f = g.function(y)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MethodType
from typing import TYPE_CHECKING

from tirlite.diag import GraphError, GraphMessage
from tirlite.graph.builder.calls import Operand, user_line
from tirlite.graph.builder.loops import LoopBuilder
from tirlite.graph.builder.renewal import Renewal
from tirlite.graph.demands import Demands
from tirlite.graph.expr import Call, Expr, If, Let, Tuple, Var
from tirlite.graph.function import Function
from tirlite.graph.operators.arrangement import Arrangement
from tirlite.graph.operators.binary import Binary
from tirlite.graph.operators.convolution import Convolution
from tirlite.graph.operators.creation import Creation
from tirlite.graph.operators.elementwise import Elementwise
from tirlite.graph.operators.indexing import Indexing
from tirlite.graph.operators.linear import Linear
from tirlite.graph.operators.normalization import Normalization
from tirlite.graph.operators.pooling import Pooling
from tirlite.graph.operators.quantization import Quantization
from tirlite.graph.operators.recurrence import Recurrence
from tirlite.graph.operators.reduction import Reduction
from tirlite.graph.operators.sampling import Sampling, Scaling
from tirlite.graph.operators.selection import Selection
from tirlite.graph.registry import OPS
from tirlite.graph.types import TensorType, Type, tensor_type
from tirlite.graph.validate import validate
from tirlite.ir import DType, TensorType as Annotation
from tirlite.sizes import Dim, dims_of
from tirlite.sizes.dim import contradiction


class CellBuilder(Elementwise, Binary, Linear, Arrangement):
    """One step in time: inputs `[batch, inputs]`, states `[batch, hidden]`."""

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

    Operands are expressions, arrays, which become constants, or numbers, which take the element type of the operand
    beside them. With `demands`, what operators ask of extents and is not proved is no error, but noted there.
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
            """An operator of a file that no base of this class is in."""
            if name.startswith("_") or name not in OPS:
                raise AttributeError(f"a builder has no `{name}`", name=name, obj=self)
            return MethodType(OPS[name].method, self)

    def input(self, name: str, of: Annotation | TensorType | DType) -> Var:
        """A parameter: `g.input("x", tl.f32[n, 3])`, or `tl.f32` for a single number. The order is that of calls.

        Raises GraphError for what is not a type, and for dims of one name with different facts.
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
        """A name for a value, which is computed whether or not it is used."""
        span = self._here()
        bound = self._operand(value, None, span)
        var = Var(name, bound.type, span=span, device=self._device)
        self._lets.append((var, bound))
        return var

    def if_(
        self, condition: Operand, then: Operand, other: Operand, name: str = "", *, given: Type | None = None
    ) -> If:
        """`then` where the condition, a bool without axes, holds, else `other`.

        What only one of them uses is computed only if it is chosen. Where their extents differ, `given` is the type of
        the result, with extents that the run finds.
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

        Raises GraphError where it is ill-formed.
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
            span=self._place,
        )
        validate(made)
        return made
