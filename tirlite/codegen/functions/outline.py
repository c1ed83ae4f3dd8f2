"""Outlines a part of a function into a function of its own: its parameters, the values that it uses, and its call.

A piece of a long body is called in its place. The body of a parallel loop becomes a function over a range of
iterations, which workers call. Its values are passed in a closure on the caller's stack. The task, the function that
the pool calls, unpacks the closure and passes the values as parameters, so that LLVM sees which pointers are noalias.
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

# Loops with less work, in operations, run on one thread. This is some microseconds: the pool starts a job in less than
# one, but a worker may be asleep or its processor busy.
_WORTHWHILE = 100_000.0
# From this work on, each worker gets several chunks, and more for still more work, of tens of microseconds each: a slow
# worker, or one with expensive iterations, delays the others by at most one chunk.
_LONG = 20 * _WORTHWHILE
_CHUNK = 2 * _LONG
_LEAST_EACH, _MOST_EACH = 4, 32


@record
class Outlined:
    """A function outlined from another: its name, the values that it uses, and whether it may end with a fault."""

    name: str
    inputs: tuple[Value, ...]
    can_stop: bool


def compute_again(body: KernelFunction) -> None:
    """Recomputes pointers at constant offsets from other pointers in the function that uses them.
    So a piece of a long program receives its arena instead of a thousand views, which would stay live from piece to
    piece.
    """
    for text, value in list(body.inputs.items()):
        if value.behind is not None:
            start, passed = value.behind
            del body.inputs[text]
            body.inputs.setdefault(start.text, start)
            body.allocas.append(f"  {text} = getelementptr inbounds i8, {start.typed}, i64 {passed}")


def close(body: KernelFunction, name: str) -> Outlined:
    """Ends an outlined function. The values that it uses become its first parameters."""
    body.finish()
    _compute_sizes_again(body)
    inputs = tuple(body.inputs.values())
    body.parameters[:0] = _declared(inputs)
    body.define(name, "noinline")
    return Outlined(name, inputs, body.can_stop)


def _compute_sizes_again(body: KernelFunction) -> None:
    """Recomputes sizes from their operands in the function that uses them.

    So LLVM sees that `y[2 * i]` and `y[2 * i + 1]` are rows of `2 * n` elements each and do not overlap.
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
    """The inputs as parameters. A pointer is noalias if no other input points into the same allocation."""
    roots = Counter(value.root for value in inputs if value.dtype.is_handle)
    return [
        replace(value, fact=" noalias" if roots[value.root] == 1 else "") if value.dtype.is_handle else value
        for value in inputs
    ]


def call(out: KernelFunction, body: Outlined) -> None:
    """Calls the outlined function in place of the code that it was made from."""
    code = out.invoke(i64, body.name, body.inputs)
    if body.can_stop:
        out.check(code)


def fork_join(out: KernelFunction, body: Outlined, task: str, count: Value, workers: int, chunks: Value) -> None:
    """Runs an outlined body over `count` iterations on the pool, and returns the first iteration's fault if any.

    With a single chunk the body is called directly: the pool takes as long as a hundred operations.
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
    """Emits the function that the pool calls: it unpacks the closure and calls `body`."""
    closure = out.parameter(handle, "%closure")
    iterations = worker_parameters(out)
    operands = [out.load(value.dtype, _field(out, record, closure, number)) for number, value in enumerate(body.inputs)]
    out.effect(f"ret i64 {out.invoke(i64, body.name, (*operands, *iterations)).text}")
    out.define(task)


def _field(out: FunctionText, record: str, closure: Value, number: int) -> Value:
    return out.value(handle, f"getelementptr {record}, {closure.typed}, i64 0, i32 {number}", closure)


def worker_parameters(out: FunctionText, loop: For | None = None) -> tuple[Value, Value, Value]:
    """The parameters of a parallel body besides its inputs: first iteration, end, and the worker's number.

    A loop that starts at 0 or above and counts up has fewer than 2**63 iterations. Without that range, LLVM would use
    gathers for elements whose index is a multiple of the iteration.
    """
    counts_up = loop is not None and loop.step > 0 and isinstance(loop.start, IntImm) and loop.start.value >= 0
    fact = f" range(i64 0, {i64.min})" if counts_up else ""
    return out.parameter(i64, "%first", fact), out.parameter(i64, "%end", fact), out.parameter(i64, "%worker")


def trip_count(out: FunctionText, start: Value, stop: Value, step: int) -> Value:
    """The number of iterations of a loop, as an unsigned i64."""
    low, high = (start, stop) if step > 0 else (stop, start)
    some = out.compare("icmp slt", low, high)
    count = out.op("sub", high, low)
    if abs(step) > 1:
        count = out.op("add", out.op("udiv", out.op("sub", count, integer(1)), integer(abs(step))), integer(1))
    return out.select(some, count, integer(0))


def chunk_count(out: FunctionText, count: Value, work: Value, workers: int) -> Value:
    """The number of chunks for `count` iterations with `work` operations in all, an f64; 1 if that is little."""
    worthwhile = out.compare("fcmp oge", work, decimal(_WORTHWHILE))
    long = out.compare("fcmp oge", work, decimal(_LONG))
    most = _MOST_EACH * workers
    few = out.compare("fcmp olt", work, decimal(most * _CHUNK))
    pieces = out.cast("fptosi", out.op("fmul", work, decimal(1 / _CHUNK)), i64)
    many = out.intrinsic("umax", out.select(few, pieces, integer(most)), integer(_LEAST_EACH * workers))
    some = out.intrinsic("umin", out.select(long, many, integer(workers)), count)
    return out.select(worthwhile, some, integer(1))
