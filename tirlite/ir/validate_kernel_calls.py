"""Tells what is wrong with the arguments that a KernelCall gives."""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.diag import Message
from tirlite.ir.expr import Buffer, BufferRef, Expr, IntImm, StringImm, Var
from tirlite.ir.kernel_call import KernelCall
from tirlite.ir.validate_types import Rule


class KernelCallArity(Message):
    """A KernelCall has more or fewer arguments than the function that it calls has parameters.

    Example: `KernelCall(add, (BufferRef(x),))`, where `add` has three parameters.
    Fix: Give each parameter one argument, outputs among them.
    """

    code = "kernel-call-arity"
    title = "{callee} takes {wanted} arguments, not {count}"

    callee: str
    wanted: int
    count: int


class KernelCallArgument(Message):
    """An argument of a KernelCall is not what the parameter takes.

    Example: `KernelCall(relu, (BufferRef(counts), BufferRef(y)))`, where `relu` takes f32 and `counts` holds i64.
    Fix: Give a BufferRef of a buffer of that type, rank and memory, at least as aligned; a scalar of that type.
    """

    code = "kernel-call-argument"
    title = "`{parameter}` of {callee} takes {wanted}, not {given}"

    parameter: str
    callee: str
    wanted: str
    given: str


class KernelCallExtent(Message):
    """Constant extents of a KernelCall do not fit together.

    Example: `KernelCall(add, ...)` of buffers of 4, 5 and 4 elements, where `add` takes three of one length.
    Fix: Give buffers whose shapes fit.
    """

    code = "kernel-call-extent"
    title = "axis {axis} of `{parameter}` of {callee} takes {wanted}, not {given}"

    parameter: str
    callee: str
    axis: int
    wanted: int
    given: int


def arity(node: KernelCall) -> Message | None:
    wanted, count = len(node.callee.params), len(node.args)
    return None if wanted == count else KernelCallArity(node.callee.name, wanted, count)


def arguments(node: KernelCall) -> Message | None:
    for param, arg in zip(node.callee.params, node.args, strict=False):
        if isinstance(param, Buffer):
            wanted, given = _array(param), _given(arg)
            fits = isinstance(arg, BufferRef) and _fits(param, arg.buffer)
        else:
            wanted, given = f"a number of type {param.dtype}", _given(arg)
            fits = not isinstance(arg, BufferRef | StringImm) and arg.dtype == param.dtype
        if not fits:
            return KernelCallArgument(param.name, node.callee.name, wanted, given)
    return None


def extents(node: KernelCall) -> Message | None:
    """Constants that contradict each other; all else is proved or checked where the call is compiled."""
    bound: dict[Var, int] = {}
    for param, axis, wanted, given in _extents(node):
        known = wanted.value if isinstance(wanted, IntImm) else bound.setdefault(wanted, given)
        if known != given:
            return KernelCallExtent(param.name, node.callee.name, axis, known, given)
    return None


def _extents(node: KernelCall) -> Iterator[tuple[Buffer, int, IntImm | Var, int]]:
    dims = {*node.callee.dims}
    for param, arg in zip(node.callee.params, node.args, strict=False):
        if isinstance(param, Buffer) and isinstance(arg, BufferRef):
            for axis, (wanted, given) in enumerate(zip(param.shape, arg.buffer.shape, strict=False)):
                is_plain = isinstance(wanted, IntImm) or (isinstance(wanted, Var) and wanted in dims)
                if isinstance(given, IntImm) and is_plain:
                    assert isinstance(wanted, IntImm | Var)
                    yield param, axis, wanted, given.value


def _fits(param: Buffer, given: Buffer) -> bool:
    alike = (param.dtype, len(param.shape), param.scope, param.volatile)
    return (
        not param.strides
        and alike == (given.dtype, len(given.shape), given.scope, given.volatile)
        and (param.alignment <= max(given.alignment, given.dtype.scalar.bytes))
    )


def _array(buffer: Buffer) -> str:
    promises = f", aligned to {buffer.alignment} bytes" if buffer.alignment else ""
    promises += ", with strides" if buffer.strides else ""
    kind = "a volatile array" if buffer.volatile else "an array"
    return f"{kind} of {buffer.dtype}, of rank {len(buffer.shape)}, in {buffer.scope} memory{promises}"


def _given(arg: Expr) -> str:
    if isinstance(arg, BufferRef):
        return f"`{arg.buffer.name}`, {_array(arg.buffer)}"
    return "a text" if isinstance(arg, StringImm) else f"a number of type {arg.dtype}"


RULES: tuple[Rule, ...] = (arity, arguments, extents)
