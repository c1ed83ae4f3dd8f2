"""Evaluates a function on NumPy arrays: the reference meaning of graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tirlite.diag import KernelIndexError, KernelRunError, Message, Span, public
from tirlite.diag.error import demand_kind
from tirlite.graph.arguments import bind
from tirlite.graph.expr import Call, Constant, Expr, FunctionNode, If, Let, Tuple, TupleGetItem, Var
from tirlite.graph.extents import values as extents
from tirlite.graph.loop import LoopFunction, stepping
from tirlite.graph.op import Attrs, Op
from tirlite.graph.program import Block, Program, extents_found, program
from tirlite.graph.run_dims import RunDim, check_extent
from tirlite.graph.types import Array, TensorType, bfloat_bits, bfloat_values, mapped_tensors
from tirlite.ir import DType, Steps, TypeCode, run
from tirlite.sizes import Dim

Value: TypeAlias = "Array | tuple[Value, ...]"


class NoSuchElement(Message):
    """An operator of a graph is asked for an element that is not there.

    Example: `evaluate(f, x, 9)` where the result is `g.gather(x, index, 0)`, and `x` has 4 rows.
    Fix: Give indices from `-n` to `n - 1` along an axis of `n` elements.
    """

    raises = KernelIndexError
    title = "`{operator}`: {why}"


class NoValue(Message):
    """An operator of a graph has no value for its operands.

    Example: A convolution whose padded input would fill more memory than there is.
    Fix: Give operands for which it has one.
    """

    raises = KernelRunError
    title = "`{operator}` has no value here: {why}"


@public
def evaluate(function: FunctionNode, *arrays: npt.ArrayLike) -> Value:
    """The result of the function: an array, or a tuple of arrays.

    bfloat16 comes and goes as the uint16 of its bits. float16 and bfloat16 are computed in f32 and rounded after each
    operator. Raises CallError for arguments that do not match the parameters.
    """
    return run(_called(function, arrays))


@public
def trace(function: FunctionNode, *arrays: npt.ArrayLike) -> Mapping[Expr, Value]:
    """The value of each expression that was computed, the result `function.body` and the parameters among them."""
    values, binding = bind(function, arrays)
    return run(_function(function, values, binding))


def _function(function: FunctionNode, args: Sequence[Value], binding: Mapping[Dim, int]) -> Steps[dict[Expr, Value]]:
    made = program(function)
    values: dict[Expr, Value] = dict(zip(function.params, args, strict=True))
    sizes = _Sizes(made, dict(binding), extents_found(made))
    for param in function.params:
        sizes.measure(param, values)
    yield _block(made, made.body, values, sizes)
    values[function.body] = values[made.resolved(function.body)]
    return values


@dataclass(slots=True)
class _Sizes:
    """The values of dims so far, and the extents that steps are the values of."""

    made: Program
    binding: dict[Dim, int]
    found: Mapping[Expr | Block, tuple[RunDim, ...]]

    def measure(self, place: Expr | Block, values: Mapping[Expr, Value]) -> None:
        """Binds the extents that are known after a step, or at the start of a branch."""
        for dim in self.found.get(place, ()):
            value = values[self.made.resolved(dim.source)]
            assert isinstance(value, np.ndarray)
            self.binding[dim] = int(value.item())
            check_extent(dim, self.binding[dim], self.binding, dim.source.span)


def _block(made: Program, block: Block, values: dict[Expr, Value], sizes: _Sizes) -> Steps[None]:
    sizes.measure(block, values)
    for step in block.steps:
        yield _step(made, step, values, sizes)
        sizes.measure(step, values)


def _step(made: Program, step: Expr, values: dict[Expr, Value], sizes: _Sizes) -> Steps[None]:
    if isinstance(step, If):
        chosen = made.branches[step][0 if values[made.resolved(step.condition)] else 1]
        yield _block(made, chosen, values, sizes)
        values[step] = values[made.resolved(chosen.result)]
    elif isinstance(step, Call):
        values[step] = yield _call(step, [values[made.resolved(arg)] for arg in step.args], sizes.binding)
    elif isinstance(step, Constant):
        values[step] = step.value
    elif isinstance(step, Tuple):
        values[step] = tuple(values[made.resolved(each)] for each in step.fields)
    elif isinstance(step, TupleGetItem):
        values[step] = values[made.resolved(step.value)][step.index]
    elif isinstance(step, Let):
        values[step.var] = values[made.resolved(step.value)]
        values[step] = values[made.resolved(step.body)]
    else:
        assert isinstance(step, Var)


def _call(call: Call, args: list[Value], binding: Mapping[Dim, int]) -> Steps[Value]:
    if isinstance(call.op, Op):
        return applied(call, args, binding)
    came: Value = yield _called(call.op, args)
    return came


def _called(function: FunctionNode, args: Sequence[Any]) -> Steps[Value]:
    inner, sizes = bind(function, args)
    if isinstance(function, LoopFunction):
        came: Value = yield stepping(function, inner, sizes, partial(_loop_step, function, sizes))
        return came
    values: dict[Expr, Value] = yield _function(function, inner, sizes)
    return values[function.body]


def _loop_step(loop: LoopFunction, binding: Mapping[Dim, int], given: list[Any]) -> Steps[Any]:
    now = bind(loop, given)[1] if loop.changes else binding
    values: dict[Expr, Any] = yield _function(loop, given, now)
    return values[loop.body]


def applied(call: Call, args: Sequence[Value], binding: Mapping[Dim, int]) -> Value:
    """As `apply`; raises KernelRunError, with the place of the call, where the operator has no value."""
    try:
        return apply(call, args, binding)
    except KernelIndexError as error:
        raise error.at(call.span) from None
    except IndexError as error:
        named = [arg.name for arg in call.args if isinstance(arg, Var | Call) and arg.name and _is_index(arg)]
        where = f"input `{named[-1]}`: " if named else ""
        raise NoSuchElement(call.op.name, where + str(error), span=call.span).error() from None
    except (ArithmeticError, MemoryError, ValueError) as error:
        raise NoValue(call.op.name, str(error), span=call.span).error() from None


@public
def apply(call: Call, args: Sequence[Value], binding: Mapping[Dim, int]) -> Value:
    """The value of one operator call, given the values of its operands and of the dims in its attributes."""
    demand_kind("apply", call, Call)
    op = call.op
    demand_kind("apply", op, Op)
    assert isinstance(op, Op)
    if op.meaning is None:
        return _defined(call, args, binding)
    wide = [mapped_tensors(_widened, value, arg.type) for value, arg in zip(args, call.args, strict=True)]
    with np.errstate(all="ignore"):
        made: Value = mapped_tensors(_rounded, op.means(call.attrs.at(binding), *wide), call.type)
    return made


# The number of kernels kept for later calls: steps of a loop call the same ones again.
_KEPT = 64


def _defined(call: Call, args: Sequence[Any], binding: Mapping[Dim, int]) -> Value:
    """The value of an operator without a NumPy function, by its kernel, compiled for these shapes."""
    types = tuple(TensorType(extents(arg.tensor.shape, binding), arg.tensor.dtype) for arg in call.args)
    attrs = call.attrs.at(binding)
    came: Any = _kernel(call.op, types, attrs, attrs.bits, call.name, call.span)(*args)
    return came  # type: ignore[no-any-return]


@lru_cache(_KEPT)
def _kernel(
    op: Any, types: tuple[TensorType, ...], attrs: Attrs, bits: object, name: str, span: Span | None
) -> Callable[..., Any]:
    """The kernel of a call, cached. `bits` separates equal attributes with different meaning, such as 0.0 and -0.0."""
    from tirlite.driver import Kernel
    from tirlite.graph.aot.operators import OperatorFunctions
    from tirlite.rewrite.options import Options

    known = Call(op, tuple(Var("", of) for of in types), attrs, name=name, span=span)
    return Kernel(OperatorFunctions().of(known), Options(schedule=None))


def _widened(value: Any, of: TensorType) -> Array:
    if of.dtype.code is TypeCode.BFLOAT:
        return bfloat_values(value)
    return np.asarray(value, np.float32) if _is_half(of.dtype) else value


def _rounded(value: Any, of: TensorType) -> Array:
    array = np.asarray(value, order="C")
    if of.dtype.code is TypeCode.BFLOAT:
        return bfloat_bits(array)
    if _is_half(of.dtype):
        return array.astype(np.float16)
    assert array.dtype == of.dtype.numpy, f"{array.dtype} for {of}"
    return array


def _is_index(arg: Expr) -> bool:
    return isinstance(arg.type, TensorType) and arg.dtype.is_integer


def _is_half(dtype: DType) -> bool:
    return dtype.is_float and dtype.bits == 16
