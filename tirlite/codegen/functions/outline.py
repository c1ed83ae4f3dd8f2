"""Outlines a part of a function into one of its own: its parameters, the values that it uses, and its call.

A piece of a long body is called in its place. The body of a parallel loop is a function over the numbers of its
iterations that workers call. Its values reach it through a record on the caller's stack, which a task, the function
that the pool knows, unpacks: the body itself takes them as parameters, so that LLVM sees which pointers lead to
different memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tirlite.codegen.faults import KernelFunction
from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import Value, decimal, integer, register_type
from tirlite.ir import For, IntImm, handle, i64
from tirlite.record import record, replace
from tirlite.target.convention import FORK_JOIN

# The work of a loop, in operations, from which on it is handed to workers: some microseconds. A job takes the pool less
# than one, but it may find a worker asleep, or one whose processor has other things to do.
_WORTHWHILE = 100_000.0
# Longer work is cut into some chunks for each worker, and work that takes much longer into more of them, of tens of
# microseconds: a slow worker, or one whose iterations are dear, holds the others up by one chunk at most.
_LONG = 20 * _WORTHWHILE
_CHUNK = 2 * _LONG
_LEAST_EACH, _MOST_EACH = 4, 32


@record
class Outlined:
    """A function that was part of another: its name, the values that it uses, and whether it may end with a fault."""

    name: str
    inputs: tuple[Value, ...]
    can_stop: bool


def compute_again(body: KernelFunction) -> None:
    """Computes pointers at known distances from others again, where they are used.

    So a piece of a long program receives its arena instead of a thousand views, which LLVM would keep from one piece to
    the next.
    """
    for text, value in list(body.inputs.items()):
        if value.behind is not None:
            start, passed = value.behind
            del body.inputs[text]
            body.inputs.setdefault(start.text, start)
            body.allocas.append(f"  {text} = getelementptr inbounds i8, {start.typed}, i64 {passed}")


def close(body: KernelFunction, name: str) -> Outlined:
    """Ends a function. The values that it uses become its first parameters."""
    body.finish()
    _compute_sizes_again(body)
    inputs = tuple(body.inputs.values())
    body.parameters[:0] = _declared(inputs)
    body.define(name, "noinline")
    return Outlined(name, inputs, body.can_stop)


def _compute_sizes_again(body: KernelFunction) -> None:
    """Computes sizes from their operands again, in the function that uses them.

    So LLVM sees that `y[2 * i]` and `y[2 * i + 1]` are rows of `2 * n` elements each, and do not overlap.
    """
    lines: dict[str, str] = {}
    stack = [value for value in body.inputs.values() if value.made is not None]
    while stack:
        value = stack[-1]
        assert value.made is not None
        instruction, *operands = value.made
        if waiting := [each for each in operands if each.made is not None and each.text not in lines]:
            stack += waiting
            continue
        lines[stack.pop().text] = f"  {value.text} = {instruction}"
        body.inputs.pop(value.text, None)
        body.inputs |= {each.text: each for each in operands if each.made is None and each.number is None}
    body.allocas += lines.values()


def _declared(inputs: Iterable[Value]) -> list[Value]:
    """Inputs as parameters. A pointer is noalias where no other leads into the same allocation."""
    roots = Counter(value.root for value in inputs if value.dtype.is_handle)
    return [
        replace(value, fact=" noalias" if roots[value.root] == 1 else "") if value.dtype.is_handle else value
        for value in inputs
    ]


def call(out: KernelFunction, body: Outlined) -> None:
    """Calls a function in place of the part that it was made of."""
    code = out.invoke(i64, body.name, body.inputs)
    if body.can_stop:
        out.check(code)


def fork_join(out: KernelFunction, body: Outlined, task: str, count: Value, workers: int, chunks: Value) -> None:
    """Runs a function on all iterations, by a task of this name; returns the fault of the first one that has any.

    A single chunk bypasses the pool, which takes as long as a hundred operations.
    """
    record = f"{{ {', '.join(register_type(value.dtype) for value in body.inputs)} }}" if body.inputs else "{}"
    _write_task(FunctionText(out.module), task, body, record)
    closure = out.later(handle)
    out.allocas.append(f"  {closure.text} = alloca {record}")
    out.calls[task] = None
    shared, alone, joined = out.label("shared"), out.label("alone"), out.label("joined")
    out.branch_if(out.compare("icmp ugt", chunks, integer(1)), shared, alone)
    out.start(shared)
    for number, value in enumerate(body.inputs):
        out.store(value, _field(out, record, closure, number))
    of_all = out.call(i64, FORK_JOIN, Value(handle, f"@{task}"), closure, count, integer(workers), chunks)
    out.branch(joined)
    out.start(alone)
    of_one = out.invoke(i64, body.name, (*body.inputs, integer(0), count, integer(0)))
    out.branch(joined)
    out.start(joined)
    if body.can_stop:
        code = out.phi(i64, (of_all, shared), (of_one, alone))
        out.check(code)


def _write_task(out: FunctionText, task: str, body: Outlined, record: str) -> None:
    """The function that the pool calls: it unpacks a record and calls `body`."""
    closure = out.parameter(handle, "%closure")
    iterations = worker_parameters(out)
    operands = [out.load(value.dtype, _field(out, record, closure, number)) for number, value in enumerate(body.inputs)]
    out.effect(f"ret i64 {out.invoke(i64, body.name, (*operands, *iterations)).text}")
    out.define(task)


def _field(out: FunctionText, record: str, closure: Value, number: int) -> Value:
    return out.value(handle, f"getelementptr {record}, {closure.typed}, i64 0, i32 {number}", closure)


def worker_parameters(out: FunctionText, loop: For | None = None) -> tuple[Value, Value, Value]:
    """The parameters of a body beside its values: its first iteration, the end of them, and the number of its worker.

    A loop that begins at 0 or above, and counts up, has fewer iterations than 2**63. If LLVM did not know that, it
    would gather elements whose index is a multiple of the iteration.
    """
    counts_up = loop is not None and loop.step > 0 and isinstance(loop.start, IntImm) and loop.start.value >= 0
    fact = f" range(i64 0, {i64.min})" if counts_up else ""
    return out.parameter(i64, "%first", fact), out.parameter(i64, "%end", fact), out.parameter(i64, "%worker")


def trip_count(out: FunctionText, start: Value, stop: Value, step: int) -> Value:
    """The number of iterations of a loop, an unsigned integer."""
    low, high = (start, stop) if step > 0 else (stop, start)
    some = out.compare("icmp slt", low, high)
    count = out.op("sub", high, low)
    if abs(step) > 1:
        count = out.op("add", out.op("udiv", out.op("sub", count, integer(1)), integer(abs(step))), integer(1))
    return out.select(some, count, integer(0))


def chunk_count(out: FunctionText, count: Value, work: Value, workers: int) -> Value:
    """The number of chunks for this many iterations that are `work`, an f64, together: one if that is little."""
    worthwhile = out.compare("fcmp oge", work, decimal(_WORTHWHILE))
    long = out.compare("fcmp oge", work, decimal(_LONG))
    most = _MOST_EACH * workers
    few = out.compare("fcmp olt", work, decimal(most * _CHUNK))
    pieces = out.cast("fptosi", out.op("fmul", work, decimal(1 / _CHUNK)), i64)
    many = out.intrinsic("umax", out.select(few, pieces, integer(most)), integer(_LEAST_EACH * workers))
    some = out.intrinsic("umin", out.select(long, many, integer(workers)), count)
    return out.select(worthwhile, some, integer(1))
