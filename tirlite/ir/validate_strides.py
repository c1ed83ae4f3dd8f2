"""Tells what is wrong with the strides of a buffer, and with uses of a buffer that has strides."""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.diag import Message
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Buffer, BufferRef, Call, Expr, IntImm, Load, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.stmt import View


class Strides(Message):
    """A buffer has strides that it cannot have.

    Example: `Buffer("x", f32, (n, m), strides=(one,))`: two axes and one stride.
    Fix: Give parameters strides alone, one for each axis: an i64 constant, or a parameter of type i64.
    """

    code = "strides"
    title = "`{name}` has strides, and {problem}"
    help = "the strides of a parameter are i64 constants or parameters, one for each axis"

    name: str
    problem: str


class StridedUse(Message):
    """The bytes of a buffer with strides are used as if they were dense.

    Example: `View(v, x, zero)`, where `x` has strides.
    Fix: Load and store its elements one by one, or copy them to a buffer without strides.
    """

    code = "strided-use"
    title = "{use} `{name}`, which has strides"
    help = "load and store its elements, or copy them to a buffer without strides"

    use: str
    name: str


def strides_of_params(func: PrimFunc) -> Iterator[Message]:
    """What is wrong with the strides of the parameters."""
    for param in func.params:
        if isinstance(param, Buffer) and param.strides:
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
    """For a buffer that is declared in the body of a function."""
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
