"""Makes the function of the IR that computes a call of an operator; equal calls share one function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from typing import TypeAlias

from tirlite.diag import GraphError, Message
from tirlite.graph.aot.plain_dims import PlainDims
from tirlite.graph.aot.told_asserts import has_asserts, told_for
from tirlite.graph.expr import Call
from tirlite.graph.op import Attrs, Op
from tirlite.graph.ops.convolution import Conv, Pool, pads_of
from tirlite.graph.types import TensorType, tensors
from tirlite.ir import PrimFunc, Var, i64
from tirlite.ir import TensorType as KernelType
from tirlite.ir.size import expr_of
from tirlite.kernels.operators import (
    arrange,
    conv,
    determinant,
    elementwise,
    fill,
    gather,
    join,
    matmul,
    nonzero,
    normalize,
    order,
    pad,
    pool,
    quantize,
    reduce,
    resize,
    sampling,
    scatter,
    sequence,
    softmax,
    sort,
    suppression,
)
from tirlite.kernels.operators.formulas import FORMULAS
from tirlite.sizes import Dim, Poly, Size, dims_of

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
    "bitcast": elementwise.bitcast,
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
    "det": determinant.det,
    "conv": conv.conv,
    "conv_transpose": conv.conv_transpose,
    "max_pool": pool.max_pool,
    "max_pool_indices": pool.max_pool_indices,
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
    "cumprod": order.cumprod,
    "topk": order.topk,
    "gather_elements": gather.gather_elements,
    "gather_nd": gather.gather_nd,
    "scatter_elements": scatter.scatter_elements,
    "scatter_nd": scatter.scatter_nd,
    "one_hot": fill.one_hot,
    "nonzero": nonzero.nonzero,
    "sort_rows": sort.sort_rows,
    "non_max_suppression": suppression.non_max_suppression,
    "range": fill.range_,
    "resize": resize.resize,
    "quantize_linear": quantize.quantize_linear,
    "dequantize_linear": quantize.dequantize_linear,
    "matmul_integer": quantize.matmul_integer,
    "grid_sample": sampling.grid_sample,
    "roi_align": sampling.roi_align,
    "lstm": sequence.lstm,
    "gru": sequence.gru,
    "rnn": sequence.rnn,
}
# What the types of the results say already.
_SAID = frozenset(
    {
        *((name, "count") for name in ("topk", "range", "nonzero", "non_max_suppression")),
        *(("one_hot", "depth"), ("resize", "shape"), ("roi_align", "height"), ("roi_align", "width")),
        *(("quantize_linear", "dtype"), ("dequantize_linear", "dtype")),
    }
)
# Calls with functions of their own, for what they tell; beyond, all share one that tells less.
_MOST_TOLD = 256
_GLOBAL = {"global_max_pool": "reduce_max", "global_average_pool": "reduce_mean"}


class OperatorFunctions:
    """The functions of operators that were asked for so far, by operator, types and attributes."""

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], PrimFunc] = {}
        self._asserting: dict[tuple[object, ...], bool] = {}
        self._told = 0

    def of(self, call: Call) -> PrimFunc:
        """The function with the operands of `call` as its parameters, then its results. Raises GraphError."""
        assert isinstance(call.op, Op)
        key = (call.op.name, tuple(arg.type for arg in call.args), call.attrs.bits)
        if key not in self._made:
            self._made[key] = self._make(call, call.op)
            self._asserting[key] = has_asserts(self._made[key])
        made = self._made[key]
        if not self._asserting[key] or self._told >= _MOST_TOLD:
            return made
        # One for each call, so that a fault tells which one it was.
        self._told += 1
        return told_for(made, call)

    def copy(self, of: TensorType) -> PrimFunc:
        """The function that copies a tensor."""
        key = ("copy", of)
        if key not in self._made:
            kind = _Own(of.shape).type(of)
            self._made[key] = elementwise.elementwise("identity", kind, kind)
        return self._made[key]

    def _make(self, call: Call, op: Op) -> PrimFunc:
        kinds = [arg.tensor for arg in call.args], list(tensors(call.type))
        own = _Own(extent for part in kinds for of in part for extent in of.shape)
        given: list[KernelType | None] = [own.type(each) for each in kinds[0]]
        results = [own.type(each) for each in kinds[1]]
        said = own.padded(call)
        attrs = {
            each.name: own.value(getattr(said, each.name), call)
            for each in fields(said)
            if (op.name, each.name) not in _SAID and each.name != "same"
        }
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


class UnboundSize(Message):
    """An attribute of an operator depends on a dim that no extent of its operands and results tells.

    Example: `g.slice(x, [n], [n + 4])` of an `x` that is `f32[64]`.
    Fix: Hand over something that has the dim as an extent, or compute the operator's result in another way.
    """

    code = "operator-dim-unbound"
    raises = GraphError
    title = "operator `{op}`: its attribute {size} depends on more than the extents of its operands and results"
    label = "called here"

    op: str
    size: str


class _Own:
    """The types and attributes of one operator, as factories take them: over dims that its arguments tell."""

    def __init__(self, extents: Iterable[Size]) -> None:
        self._plain = PlainDims(extents)
        self._variables: dict[Dim, Var] = {}

    def type(self, of: TensorType) -> KernelType:
        return KernelType(of.dtype, tuple(self._expr(self._plain(extent)) for extent in of.shape))

    def padded(self, call: Call) -> Attrs:
        """The attributes of a call; padding that follows from extents said by those that the arguments tell."""
        attrs = call.attrs
        if not isinstance(attrs, Conv | Pool) or not attrs.same:
            return attrs
        window = attrs.window if isinstance(attrs, Pool) else call.args[1].shape[2:]
        extents = [self._plain(each) for each in call.args[0].shape[2:]]
        return replace(attrs, pads=pads_of(attrs, extents, [self._plain(each) for each in window]), same="")

    def value(self, value: object, call: Call) -> object:
        """An attribute: sizes as integers, or as expressions of dims."""
        if isinstance(value, tuple):
            return tuple(self.value(each, call) for each in value)
        if not isinstance(value, Poly):
            return value
        made = self._plain(value)
        if not self._plain.is_bound(made):
            assert isinstance(call.op, Op)
            raise UnboundSize(call.op.name, str(value), span=call.span).error()
        return self._expr(made)

    def _expr(self, size: Size) -> object:
        if isinstance(size, int):
            return size
        for dim in dims_of(size):
            self._variables.setdefault(dim, Var(dim.name, i64, dim))
        return expr_of(size, self._variables)
