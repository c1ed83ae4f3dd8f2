"""Rules for the arguments of Call and KernelCall, and for the places of prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tirlite.diag import Message
from tirlite.ir.checked import fits_mask
from tirlite.ir.dot import dot_lanes, fits_dot
from tirlite.ir.dtype import DType, bool_, handle, i32, i64
from tirlite.ir.expr import Buffer, BufferRef, Call, Expr, IntImm, Load, StringImm, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import KernelCall, closure_of
from tirlite.ir.node import Node
from tirlite.ir.op import INTERLEAVES, Op
from tirlite.ir.printer import text
from tirlite.ir.printing import is_print, prints_in
from tirlite.ir.stmt import For, ForKind
from tirlite.ir.validate_buffers import UndeterminedDim
from tirlite.ir.validate_types import Rule

ACCESS_MASKS = ("r", "w", "rw")
_ORDERED = (ForKind.SERIAL, ForKind.UNROLLED)


class CallArity(Message):
    """A call in the IR has too many or too few arguments.

    Example: `Call(f32, Op.SQRT, (a, b))`, or `KernelCall(add, (BufferRef(x),))`, where `add` has three parameters.
    Fix: Give as many as the function takes; a KernelCall has one for each parameter, outputs among them.
    """

    title = "{callee} takes {wanted} arguments, not {count}"


class CallArgument(Message):
    """An argument of a call in the IR is not of the kind that belongs there.

    Example: `Call(f32, Op.SQRT, (IntImm(i64, 2),))`.
    Fix: Cast the argument, or give what the message asks for.
    """

    position: int
    op: str
    given: str
    wanted: str

    title = "argument {position} of tl.{op} is {given}, where {wanted} belongs"


class CallResult(Message):
    """A call in the IR is declared to give another type than it gives.

    Example: `Call(i64, Op.SQRT, (x,))`, where `x` is f32.
    Fix: Declare the type that the message names, and cast the result.
    """

    title = "tl.{op} gives {wanted}, and is declared to give {dtype}"


def check_call(node: Call) -> Message | None:
    """The first violation of a call, by its operation."""
    op, count = node.op, len(node.args)
    if op is Op.CALL_EXTERN:
        return _extern(node)
    if op is Op.PRINT:
        return _print(node)
    if count != op.arity:
        return CallArity(f"tl.{op.label}", str(op.arity), count)
    if op is Op.BARRIER:
        return _expect(node, 0, isinstance(node.args[0], StringImm), "a text")
    if op is Op.CHECKED:
        index = node.args[0].dtype
        return _expect(node, 0, index.is_integer, "an index") or _gives(node, index)
    if op is Op.MASKED:
        return _masked(node)
    if op is Op.ANY:
        lanes = node.args[0].dtype
        return _expect(node, 0, lanes.is_bool and lanes.lanes > 1, "a vector of bools") or _gives(node, bool_)
    if op in INTERLEAVES:
        a, b = node.args
        is_even = a.dtype.lanes % 2 == 0 and not a.dtype.is_handle
        wrong = _expect(node, 0, is_even, "a vector with an even number of lanes")
        return wrong or _expect(node, 1, b.dtype == a.dtype, f"a vector of type {a.dtype}") or _gives(node, a.dtype)
    if op is Op.DOT:
        return _dot(node)
    if op is Op.ADDRESS_OF:
        return _expect(node, 0, isinstance(node.args[0], Load), "an element of a buffer") or _gives(node, handle)
    if op is Op.ACCESS_PTR:
        return _access_ptr(node)
    if op is Op.IF_THEN_ELSE:
        return _conditional(node)
    return _math(node)


def _expect(node: Call, position: int, holds: bool, wanted: str) -> Message | None:
    return None if holds else CallArgument(position, node.op.label, _shown(node.args[position]), wanted)


def _gives(node: Call, wanted: DType) -> Message | None:
    return None if node.dtype == wanted else CallResult(node.op.label, wanted, node.dtype)


def _shown(arg: Expr) -> str:
    if isinstance(arg, StringImm):
        return f"the text {arg.value!r}"
    return f"the buffer `{arg.buffer.name}`" if isinstance(arg, BufferRef) else str(arg.dtype)


def _extern(node: Call) -> Message | None:
    if not node.args:
        return CallArity(f"tl.{node.op.label}", "one or more", 0)
    name = node.args[0]
    is_address = isinstance(name, IntImm) and name.dtype == i64 and name.value > 0
    is_name = isinstance(name, StringImm) and bool(name.value)
    return _expect(node, 0, is_name or is_address, "the name of a function, or its address")


def _print(node: Call) -> Message | None:
    if not node.args:
        return CallArity(f"tl.{node.op.label}", "one or more", 0)
    text, *values = node.args
    for position, value in enumerate(values, 1):
        is_value = not value.dtype.is_handle and value.dtype.lanes == 1
        wrong = _expect(node, position, is_value and not isinstance(value, (StringImm, BufferRef)), "a number")
        if wrong is not None:
            return wrong
    from tirlite.ir.printing import fits

    fit = isinstance(text, StringImm) and fits(text.value, [value.dtype for value in values])
    return _expect(node, 0, fit, f"a text with a place `{{}}` for each of {len(values)} values") or _gives(node, i32)


def _masked(node: Call) -> Message | None:
    index, on = node.args
    is_vector = index.dtype.is_integer and index.dtype.lanes > 1
    return (
        _expect(node, 0, is_vector, "an index of several lanes")
        or _expect(node, 1, fits_mask(index.dtype, on.dtype), f"a bool in each of {index.dtype.lanes} lanes")
        or _gives(node, index.dtype)
    )


def _dot(node: Call) -> Message | None:
    total, a, b = (each.dtype for each in node.args)
    lanes = dot_lanes(total, b)
    wanted = f"a vector of narrower integers, whose bits are as many as those of {total}"
    return (
        _expect(node, 0, total.is_integer and total.bits in (32, 64), "a sum of type i32, u32, i64 or u64")
        or _expect(node, 2, bool(lanes), wanted)
        or _expect(node, 1, fits_dot(a, b, lanes), f"{lanes} or {b.lanes} integers of {b.bits} bits")
        or _gives(node, total)
    )


def _access_ptr(node: Call) -> Message | None:
    buffer, offset, extent, mask = node.args
    return (
        _expect(node, 0, isinstance(buffer, BufferRef), "a buffer")
        or _expect(node, 1, _is_index(offset), "a scalar integer")
        or _expect(node, 2, _is_index(extent), "a scalar integer")
        or _expect(node, 3, isinstance(mask, StringImm) and mask.value in ACCESS_MASKS, "one of 'r', 'w', 'rw'")
        or _gives(node, handle)
    )


def _is_index(arg: Expr) -> bool:
    return arg.dtype.is_integer and arg.dtype.lanes == 1


def _conditional(node: Call) -> Message | None:
    condition, if_true, if_false = node.args
    return (
        _expect(node, 0, condition.dtype == bool_, "a scalar bool")
        or _expect(node, 1, not isinstance(if_true, (StringImm, BufferRef)), "a value")
        or _expect(node, 2, if_false.dtype == if_true.dtype, str(if_true.dtype))
        or _gives(node, if_true.dtype)
    )


# The other operations take floats.
_TAKES_NUMBERS: Mapping[Op, str] = {Op.ABS: "a number"}


def _math(node: Call) -> Message | None:
    first = node.args[0].dtype
    wanted = _TAKES_NUMBERS.get(node.op)
    wrong = _expect(node, 0, first.is_number if wanted else first.is_float, wanted or "a float")
    for position in range(1, len(node.args)):
        wrong = wrong or _expect(node, position, node.args[position].dtype == first, str(first))
    return wrong or _gives(node, bool_.with_lanes(first.lanes) if node.op is Op.ISNAN else first)


class PrintOrder(Message):
    """`print` stands in a loop whose iterations have no order, or that run at the same time.

    Example: `for i in tl.parallel(n): print(i)`; so in loops over `tl.vectorized`, `tl.reduce` and `tl.thread`.
    Fix: Write `range` while you look, or store the values into an output and print that.
    """

    title = "{what} in the loop over `{loop}`, whose iterations have no order"
    label = "printed here"
    related_label = "the loop"
    help = "write `for {loop} in range(...)` while debugging, or store the values into an output"


class PrintPlace(Message):
    """A call that prints stands inside of an expression.

    Example: `Store(x, (i,), Call(i32, Op.PRINT, (StringImm("a"),)))`.
    Fix: Make it a statement of its own, as the value of an Evaluate.
    """

    title = "`print` has no value"
    help = "it is a statement of its own"


def print_violations(func: PrimFunc) -> Iterator[Message]:
    """Violations in the places of prints, in program order, including those in callees."""
    stack: list[tuple[Node, For | None]] = [(func.body, None)]
    while stack:
        node, loop = stack.pop()
        if is_print(node):
            if loop is not None:
                yield PrintOrder("`print` stands", loop.var.name, span=node.span, related=loop.span)
            stack += ((arg, loop) for arg in node.value.children()[::-1])
            continue
        if isinstance(node, Call) and node.op is Op.PRINT:
            yield PrintPlace()
        if isinstance(node, KernelCall) and loop is not None and _prints(node):
            what = f"`{node.callee.name}`, which prints, is called"
            yield PrintOrder(what, loop.var.name, span=node.span, related=loop.span)
        if loop is None and isinstance(node, For) and node.kind not in _ORDERED:
            loop = node
        stack += ((child, loop) for child in node.children()[::-1])


def _prints(call: KernelCall) -> bool:
    return any(next(prints_in(each.body), None) is not None for each in closure_of(call.callee))


class CallBuffer(Message):
    """An argument of a kernel that another kernel calls is not what the parameter takes.

    Example: `smooth(x, k)`, where `smooth` takes two arrays of f32 and `k` is a number.
    Fix: Give whole buffers, of the element type, rank and scope of the parameter, and numbers of its type; in the IR, a
    BufferRef of a buffer that is at least as aligned.
    """

    title = "`{parameter}` of {kernel} takes {wanted}, not {given}"


class CallShape(Message):
    """A buffer that is given to another kernel has a shape that the kernel does not take.

    Example: `add(x, y)`, where `add` takes two arrays of one length, and `x` has 4 elements and `y` 5.
    Fix: Give buffers whose shapes fit; where that is known only at run time, the call is checked there.
    """

    title = "axis {axis} of `{parameter}` of {kernel} takes {wanted}, not {given}"
    help = "{kernel} declares {declared}"


def arity(node: KernelCall) -> Message | None:
    wanted, count = len(node.callee.params), len(node.args)
    return None if wanted == count else CallArity(node.callee.name, str(wanted), count)


def dims(node: KernelCall) -> Message | None:
    """Each dim of the callee must be defined by an axis."""
    sources = node.callee.sources
    return next((UndeterminedDim(dim.name) for dim in node.callee.dims if dim not in sources), None)


def arguments(node: KernelCall) -> Message | None:
    for param, arg in zip(node.callee.params, node.args, strict=False):
        if isinstance(param, Buffer):
            wanted, given = _array(param), _given(arg)
            fits = isinstance(arg, BufferRef) and _fits(param, arg.buffer)
        else:
            wanted, given = f"a number of type {param.dtype}", _given(arg)
            fits = not isinstance(arg, BufferRef | StringImm) and arg.dtype == param.dtype
        if not fits:
            return CallBuffer(param.name, node.callee.name, wanted, given)
    return None


def extents(node: KernelCall) -> Message | None:
    """Constants must not contradict each other; the rest is proved or checked when the call is compiled."""
    bound: dict[Var, int] = {}
    for param, axis, wanted, given in _extents(node):
        known = wanted.value if isinstance(wanted, IntImm) else bound.setdefault(wanted, given)
        if known != given:
            return CallShape(axis, param.name, node.callee.name, str(known), str(given), declared(param))
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


def declared(param: Buffer) -> str:
    """A parameter with its type, as a kernel declares it."""
    return f"{param.name}: tl.{param.dtype}[{', '.join(text(each) for each in param.shape)}]"


def _array(buffer: Buffer) -> str:
    promises = f", aligned to {buffer.alignment} bytes" if buffer.alignment else ""
    promises += ", with strides" if buffer.strides else ""
    kind = "a volatile array" if buffer.volatile else "an array"
    return f"{kind} of {buffer.dtype}, of rank {len(buffer.shape)}, in {buffer.scope} memory{promises}"


def _given(arg: Expr) -> str:
    if isinstance(arg, BufferRef):
        return f"`{arg.buffer.name}`, {_array(arg.buffer)}"
    return "a text" if isinstance(arg, StringImm) else f"a number of type {arg.dtype}"


KERNEL_CALL_RULES: tuple[Rule, ...] = (arity, dims, arguments, extents)
