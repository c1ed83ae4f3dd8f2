"""Rules for buffers, their uses, and functions as a whole; each returns a message or None."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tirlite.diag import Message, PlanError
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Buffer, BufferRef, Call, Expr, IntImm, LetExpr, Load, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.stmt import View
from tirlite.ir.validate_statements import bodies
from tirlite.ir.walk import distinct
from tirlite.plan.scope import StorageScope
from tirlite.show import shown


class Alignment(Message):
    """A buffer has an alignment that no memory has.

    Example: `Buffer("t", f32, (n,), alignment=3)`.
    Fix: Give a power of two in bytes, or 0.
    """

    title = "buffer `{name}` is to be aligned to {alignment} bytes"
    help = "an alignment is a power of two up to 2**32, or 0 for that of the element"


class ExtentType(Message):
    """An extent of a buffer is not a scalar i64.

    Example: `Buffer("t", f32, (IntImm(i32, 4),))`.
    Fix: Cast it to i64.
    """

    title = "extent {axis} of `{name}` has the type {dtype}"
    help = "an extent is a scalar i64"


class NegativeExtent(Message):
    """An extent of a buffer is a constant below zero.

    Example: `Buffer("t", f32, (const(-1, i64),))`.
    Fix: Give an extent of at least 0.
    """

    title = "extent {axis} of `{name}` is {extent}"

    name: str
    axis: int
    extent: int


class DuplicateParameter(Message):
    """One object is a parameter twice.

    Example: `PrimFunc("f", (x, x), body)`.
    Fix: Make a second buffer or variable.
    """

    title = "`{name}` is a parameter twice"


class OutputNotParameter(Message):
    """An output of a function is none of its parameters.

    Example: `PrimFunc("f", (x,), body, outputs=(y,))`.
    Fix: Make it a parameter.
    """

    title = "output `{name}` is not a parameter"


class UndeterminedDim(Message):
    """A dim occurs in a function, and no extent of a parameter tells it, as `2 * n + 1` would.

    Example: `def f(x: tl.f32[n * m]):`.
    Fix: Make the dim an extent of some parameter, or a scalar parameter.
    """

    title = "no argument tells the value of dim `{name}`"
    help = "let `{name}`, or a multiple of it plus a constant, be an extent of a parameter, or make it a parameter"


class ShapeNotFixed(Message):
    """The shape of a parameter depends on what only the running kernel knows.

    Example: A parameter whose extent is a `Load`.
    """

    title = "the shape of parameter `{name}` is computed by {kind}"
    help = "extents of parameters are integers, dims, and arithmetic of these"


class Strides(Message):
    """A buffer has strides that it cannot have.

    Example: `Buffer("x", f32, (n, m), strides=(one,))`: two axes and one stride.
    """

    title = "`{name}` has strides, and {problem}"
    help = "the strides of a parameter are i64 constants or parameters, one for each axis"


class StridedUse(Message):
    """The bytes of a buffer with strides are used as if they were dense.

    Example: `View(v, x, zero)`, where `x` has strides.
    """

    title = "{use} `{name}`, which has strides"
    help = "load and store its elements, or copy them to a buffer without strides"


class WrongDefault(Message):
    """A default stands where no scalar parameter does, or is not a value of the parameter's type.

    Example: `PrimFunc("f", (x,), body, defaults=(1,))`, where `x` is a buffer.
    Fix: Give one number, or None, for each parameter, each a value of its type.
    """

    title = "`{name}` cannot be {given} by default"
    help = "a scalar parameter has a number of its type as its default, or None"


def can_align(alignment: int) -> bool:
    """Whether an alignment is supported; LLVM's limit is 2**32."""
    return 0 <= alignment <= 1 << 32 and alignment & (alignment - 1) == 0


def alignment(buffer: Buffer) -> Message | None:
    return None if can_align(buffer.alignment) else Alignment(buffer.name, buffer.alignment)


def storage_scope(buffer: Buffer) -> Message | None:
    try:
        StorageScope.parse(buffer.scope)
    except PlanError as error:
        return error.messages[0]
    return None


def extent_types(buffer: Buffer) -> Message | None:
    for axis, extent in enumerate(buffer.shape):
        if extent.dtype != i64:
            return ExtentType(axis, buffer.name, extent.dtype)
    return None


def negative_extent(buffer: Buffer) -> Message | None:
    for axis, extent in enumerate(buffer.shape):
        if isinstance(extent, IntImm) and extent.value < 0:
            return NegativeExtent(buffer.name, axis, extent.value)
    return None


BUFFER_RULES: tuple[Callable[[Buffer], Message | None], ...] = (
    alignment,
    storage_scope,
    extent_types,
    negative_extent,
)


def function_violations(func: PrimFunc) -> Iterator[Message]:
    """Violations in the parameters, outputs, dims and defaults of a function."""
    seen: dict[Var | Buffer, None] = {}
    for param in func.params:
        if param in seen:
            yield DuplicateParameter(param.name)
        seen[param] = None
    for output in func.outputs:
        if output not in seen:
            yield OutputNotParameter(output.name)
    buffers = [param for param in seen if isinstance(param, Buffer)]
    for buffer in buffers:
        for node in (part for extent in buffer.shape for part in distinct(extent)):
            if isinstance(node, (Load, Call, LetExpr)):
                yield ShapeNotFixed(buffer.name, type(node).__name__)
    bare = {extent for buffer in buffers for extent in buffer.shape}
    for dim in func.dims:
        if dim not in bare and not _is_solvable(dim, buffers):
            yield UndeterminedDim(dim.name)
    wrong_body = bodies(func)
    if wrong_body is not None:
        yield wrong_body
    yield from _wrong_strides(func)
    yield from _wrong_defaults(func)


def _is_solvable(dim: Var, buffers: list[Buffer]) -> bool:
    from tirlite.ir.size import times_and_plus

    return any(times_and_plus(extent, (dim,)) for buffer in buffers for extent in buffer.shape)


def _wrong_strides(func: PrimFunc) -> Iterator[Message]:
    for param in func.arrays:
        if param.strides:
            problem = _problem(param, func)
            if problem:
                yield Strides(param.name, problem)


def _problem(param: Buffer, func: PrimFunc) -> str:
    if len(param.strides) != len(param.shape):
        return f"{len(param.strides)} of them for {len(param.shape)} axes"
    if param.dtype.lanes > 1:
        return "its elements are vectors"
    return "" if all(_is_known(each, func) for each in param.strides) else "one of them is computed"


def _is_known(stride: Expr, func: PrimFunc) -> bool:
    return stride.dtype == i64 and (isinstance(stride, IntImm) or (isinstance(stride, Var) and stride in func.params))


def strides_inside(buffer: Buffer) -> Message | None:
    """For a buffer that is declared in the body."""
    return Strides(buffer.name, "is no parameter") if buffer.strides else None


def strided_use(node: Node) -> Message | None:
    """For views, bare mentions, and calls."""
    if isinstance(node, View) and node.source.strides:
        return StridedUse(f"`{node.buffer.name}` is a view of", node.source.name)
    if isinstance(node, BufferRef) and node.buffer.strides:
        return StridedUse("a call gets the whole of", node.buffer.name)
    if isinstance(node, Call) and node.op is Op.ADDRESS_OF:
        element = node.args[0]
        if isinstance(element, Load) and element.buffer.strides:
            return StridedUse("a call gets the address of an element of", element.buffer.name)
    return None


def _wrong_defaults(func: PrimFunc) -> Iterator[Message]:
    names = [param.name for param in func.params]
    for position, value in enumerate(func.defaults):
        param = func.params[position] if position < len(names) else None
        if value is not None and not (isinstance(param, Var) and _fits(value, param)):
            name = names[position] if param is not None else f"parameter {position} of {len(names)}"
            yield WrongDefault(name, shown(value))


def _fits(value: object, param: Var) -> bool:
    dtype = param.dtype
    if dtype.is_handle or dtype.lanes != 1 or not isinstance(value, (bool, int, float)):
        return False
    return dtype.is_float or (isinstance(value, int) and dtype.min <= value <= dtype.max)
