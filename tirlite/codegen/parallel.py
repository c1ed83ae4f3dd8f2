"""The text around a parallel loop that is handed to workers: the values that its body needs in, a task and the call of
the pool that runs it out.

The body is a function over the numbers of its iterations. Its values reach it through a record on the caller's stack,
which a task, the function that the pool knows, unpacks: the body itself takes them as parameters, so that LLVM sees
which pointers lead to different memory.
"""

from __future__ import annotations

from collections.abc import Mapping

from tirlite.codegen.environment import Named
from tirlite.codegen.pool import FORK_JOIN
from tirlite.codegen.text import FunctionText, ModuleText

# What a body is given beside its values: its first iteration and the end of them, and the number of its worker.
BODY_PARAMETERS = ("i64 %first", "i64 %end", "i64 %worker")
# The work of a loop, in nodes of expressions, from which on it is handed to workers: some microseconds.
_WORTHWHILE = 100_000.0
# For work that takes much longer, each worker has several chunks, so that a slow one holds the others up less.
_LONG = 20 * _WORTHWHILE
_CHUNKS_EACH = 4


def trip_count(out: FunctionText, start: str, stop: str, step: int) -> str:
    """How many iterations a loop has, without a sign."""
    low, high = (start, stop) if step > 0 else (stop, start)
    some = out.value(f"icmp slt i64 {low}, {high}")
    distance = out.value(f"sub i64 {high}, {low}")
    if abs(step) == 1:
        return out.value(f"select i1 {some}, i64 {distance}, i64 0")
    count = out.value(f"udiv i64 {out.value(f'sub i64 {distance}, 1')}, {abs(step)}")
    count = out.value(f"add i64 {count}, 1")
    return out.value(f"select i1 {some}, i64 {count}, i64 0")


def chunk_count(out: FunctionText, count: str, work: str, workers: int) -> str:
    """Into how many chunks so many iterations are cut that make `work`, a double, together: one where it is little."""
    kind = "i64"
    worthwhile = out.value(f"fcmp oge double {work}, {_WORTHWHILE:e}")
    long = out.value(f"fcmp oge double {work}, {_LONG:e}")
    many = out.value(f"select i1 {long}, {kind} {_CHUNKS_EACH * workers}, {kind} {workers}")
    some = out.call(kind, "llvm.umin.i64", f"{kind} {many}", f"{kind} {count}")
    return out.value(f"select i1 {worthwhile}, {kind} {some}, {kind} 1")


def write_task(module: ModuleText, task: str, body: str, inputs: Mapping[str, Named]) -> None:
    """The function that the pool calls: it unpacks the record of `inputs` and calls `body`."""
    out = FunctionText(module)
    record = _record_type(inputs)
    operands = []
    for number, (_, value) in enumerate(inputs.items()):
        place = out.value(f"getelementptr {record}, ptr %closure, i64 0, i32 {number}")
        operands.append(f"{value.kind} {out.value(f'load {value.kind}, ptr {place}')}")
    code = out.value(f"call i64 @{body}({', '.join((*operands, *BODY_PARAMETERS))})")
    out.effect(f"ret i64 {code}")
    out.define(f"internal i64 @{task}(ptr %closure, {', '.join(BODY_PARAMETERS)})")


def fork_join(out: FunctionText, task: str, inputs: Mapping[str, Named], count: str, workers: int, chunks: str) -> str:
    """The result of running `task` on all iterations: the number of the fault of the first that had one, or 0."""
    record = _record_type(inputs)
    closure = out.name()
    out.allocas.append(f"  {closure} = alloca {record}")
    for number, (name, value) in enumerate(inputs.items()):
        place = out.value(f"getelementptr {record}, ptr {closure}, i64 0, i32 {number}")
        out.effect(f"store {value.kind} {name}, ptr {place}")
    operands = (f"ptr @{task}", f"ptr {closure}", f"i64 {count}", f"i64 {workers}", f"i64 {chunks}")
    return out.call("i64", FORK_JOIN, *operands)


def _record_type(inputs: Mapping[str, Named]) -> str:
    return f"{{ {', '.join(value.kind for value in inputs.values())} }}" if inputs else "{}"
