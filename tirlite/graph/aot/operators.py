"""A call of an operator in, the function of the IR that computes it out; equal calls share one function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TypeAlias

from tirlite.analysis.extents import expr_of
from tirlite.diag import GraphError, Message
from tirlite.graph.expr import Call
from tirlite.graph.op import Op
from tirlite.graph.types import TensorType, tensors
from tirlite.ir import PrimFunc, Var
from tirlite.ir import TensorType as KernelType
from tirlite.kernels.operators import (
    arrange,
    conv,
    elementwise,
    gather,
    join,
    matmul,
    normalize,
    order,
    pad,
    pool,
    reduce,
    softmax,
)
from tirlite.kernels.operators.formulas import FORMULAS
from tirlite.sizes import Dim, Poly

Factory: TypeAlias = Callable[..., PrimFunc]


class NoKernelFor(Message):
    """An operator of a graph has no kernel.

    Example: `tl.graph.compile(f)`, where `f` calls an operator of your own.
    Fix: Compose it of operators that have kernels.
    """

    code = "operator-without-kernel"
    raises = GraphError
    title = "operator `{op}` has no kernel"
    label = "called here"

    op: str


# The factories whose attributes say what the type of the result says already.
_BY_TYPES: Mapping[str, Factory] = {
    "cast": elementwise.cast,
    "broadcast_to": arrange.broadcast_to,
}
_WITH_ATTRS: Mapping[str, Factory] = {
    "transpose": arrange.transpose,
    "tile": arrange.tile,
    "slice": arrange.slice_,
    "pad": pad.pad,
    "concat": join.concat,
    "gather": gather.gather,
    "matmul": matmul.matmul,
    "gemm": matmul.gemm,
    "conv": conv.conv,
    "conv_transpose": conv.conv_transpose,
    "max_pool": pool.max_pool,
    "average_pool": pool.average_pool,
    "batch_norm": normalize.batch_norm,
    "instance_norm": normalize.instance_norm,
    "layer_norm": normalize.layer_norm,
    "lrn": normalize.lrn,
    "softmax": softmax.softmax,
    "log_softmax": softmax.log_softmax,
    "argmax": order.argmax,
    "argmin": order.argmin,
    "cumsum": order.cumsum,
}
_GLOBAL = {"global_max_pool": "reduce_max", "global_average_pool": "reduce_mean"}


class OperatorFunctions:
    """The functions of operators that were asked for so far, by operator, types and attributes."""

    def __init__(self, variables: Mapping[Dim, Var]) -> None:
        """`variables` stand for the dims in types and attributes."""
        self._variables = variables
        self._made: dict[tuple[object, ...], PrimFunc] = {}

    def of(self, call: Call) -> PrimFunc:
        """The function with the operands of `call` as its parameters, then its results. Raises GraphError."""
        assert isinstance(call.op, Op)
        key = (call.op.name, tuple(arg.type for arg in call.args), call.attrs)
        if key not in self._made:
            self._made[key] = self._make(call, call.op)
        return self._made[key]

    def copy(self, of: TensorType) -> PrimFunc:
        """The function that copies a tensor."""
        key = ("copy", of)
        if key not in self._made:
            kind = self._type(of)
            self._made[key] = elementwise.elementwise("identity", kind, kind)
        return self._made[key]

    def _make(self, call: Call, op: Op) -> PrimFunc:
        given: list[KernelType | None] = [self._type(arg.tensor) for arg in call.args]
        results = [self._type(each) for each in tensors(call.type)]
        attrs = {each.name: self._value(getattr(call.attrs, each.name)) for each in fields(call.attrs)}
        if op.name in _WITH_ATTRS:
            absent = [None] * ((op.most or len(given)) - len(given))
            return _WITH_ATTRS[op.name](*given, *absent, *results, **attrs)
        if op.name in _BY_TYPES:
            return _BY_TYPES[op.name](*given, *results)
        if op.name == "split":
            return join.split(*given, *results, axis=attrs["axis"])
        if op.name in FORMULAS:
            return elementwise.elementwise(op.name, *given, *results, **attrs)
        if op.name in reduce.REDUCTIONS:
            return reduce.reduce(op.name, *given, *results, **attrs)
        if op.name in _GLOBAL:
            axes = tuple(range(2, call.args[0].tensor.rank))
            return reduce.reduce(_GLOBAL[op.name], *given, *results, axes=axes, keepdims=True)
        raise NoKernelFor(op.name, span=call.span).error()

    def _type(self, of: TensorType) -> KernelType:
        return KernelType(of.dtype, tuple(self._value(extent) for extent in of.shape))

    def _value(self, value: object) -> object:
        """An attribute as factories take it: sizes as integers, or as expressions of the dims of main."""
        if isinstance(value, tuple):
            return tuple(map(self._value, value))
        return expr_of(value, self._variables) if isinstance(value, Poly) else value
