"""Writes the LLVM text of the functions that programs call: they check arguments and call the kernel.

`NAME(ctx, parameters, dims, weights, arena)` returns 0 or a status, `NAME_arena_bytes(numbers, dims)` the size of the
arena, and `NAME_message(status)` the text of a status.
Parallel loops run on the program's own threads, by the callback in `ctx`. While the kernel runs, `ctx` is in a
thread-local variable, so that the kernel's code need not pass it on and concurrent calls do not interfere.
"""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.codegen import Lowered
from tirlite.record import record
from tirlite.runtime.artifact.build import letters_of
from tirlite.runtime.signature import Signature
from tirlite.target.convention import FORK_JOIN, GIVE, MOST_PARAMETERS, TAKE

ABI = 1
BAD_SIZE, BAD_CONTEXT, NO_ARENA, NO_WEIGHTS = -1, -2, -3, -4
_OWN = {
    0: "done",
    BAD_SIZE: "a size is against what the function demands of it, or too large",
    BAD_CONTEXT: "the context was made for another version of the interface",
    NO_ARENA: "the arena is missing, or not aligned",
    NO_WEIGHTS: "the weights are missing, or not aligned",
}
_KINDS = {"P": "ptr", "b": "i8", "h": "i16", "i": "i32", "q": "i64", "f": "float", "d": "double"}
_LARGEST = (1 << 47) - 1  # the largest dim
WEIGHTS_ALIGN = 64  # of the address of constants, and of each array among them

_MEMORY = """
@tirlite.top = internal thread_local global ptr null

define ptr @TAKE(i64 %line, i64 %size) {
  %top = load ptr, ptr @tirlite.top
  %at = ptrtoint ptr %top to i64
  %negative = sub i64 0, %at
  %mask = sub i64 %line, 1
  %gap = and i64 %negative, %mask
  %taken = getelementptr i8, ptr %top, i64 %gap
  %next = getelementptr i8, ptr %taken, i64 %size
  store ptr %next, ptr @tirlite.top
  ret ptr %taken
}

define void @GIVE(ptr %taken) {
  store ptr %taken, ptr @tirlite.top
  ret void
}

; Runs a stretch of a loop with the part of the arena that belongs to the worker.
define internal i64 @tirlite.in_part(ptr %job, i64 %first, i64 %end, i64 %worker) {
  %task = load ptr, ptr %job
  %closure.at = getelementptr ptr, ptr %job, i64 1
  %closure = load ptr, ptr %closure.at
  %parts.at = getelementptr ptr, ptr %job, i64 2
  %parts = load ptr, ptr %parts.at
  %distance = mul i64 %worker, PART
  %part = getelementptr i8, ptr %parts, i64 %distance
  %before = load ptr, ptr @tirlite.top
  store ptr %part, ptr @tirlite.top
  %code = call i64 %task(ptr %closure, i64 %first, i64 %end, i64 %worker)
  store ptr %before, ptr @tirlite.top
  ret i64 %code
}
"""

_POOL = """
@tirlite.current = internal thread_local global ptr null
@tirlite.parts = internal thread_local global ptr null

define i64 @FORK_JOIN(ptr %task, ptr %closure, i64 %count, i64 %workers, i64 %chunks) {
entry:
  %job = alloca [3 x ptr]
  %ctx = load ptr, ptr @tirlite.current
  %none = icmp eq ptr %ctx, null
  br i1 %none, label %alone, label %look
look:
  %parallel.at = getelementptr i8, ptr %ctx, i64 8
  %parallel = load ptr, ptr %parallel.at
  %missing = icmp eq ptr %parallel, null
  br i1 %missing, label %alone, label %ask
ask:
  %pool.at = getelementptr i8, ptr %ctx, i64 16
  %pool = load ptr, ptr %pool.at
  store ptr null, ptr @tirlite.current  ; loops inside of loops run in order
  JOB
  store ptr %ctx, ptr @tirlite.current
  ret i64 %code
alone:
  %only = call i64 %task(ptr %closure, i64 0, i64 %count, i64 0)
  ret i64 %only
}
"""
_PLAIN_JOB = "%code = call i64 %parallel(ptr %pool, ptr %task, ptr %closure, i64 %count, i64 %workers, i64 %chunks)"
_JOB_IN_PARTS = """store ptr %task, ptr %job
  %closure.at = getelementptr ptr, ptr %job, i64 1
  store ptr %closure, ptr %closure.at
  %parts = load ptr, ptr @tirlite.parts
  %parts.at = getelementptr ptr, ptr %job, i64 2
  store ptr %parts, ptr %parts.at
  %code = call i64 %parallel(ptr %pool, ptr @tirlite.in_part, ptr %job, i64 %count, i64 %workers, i64 %chunks)"""


@record
class Weights:
    """Constants in one block: the offset of each parameter's array, and the file embedded into the object."""

    offsets: dict[str, int]
    embedded: str | None  # the path; None if callers pass the block


def wrapper_text(
    name: str,
    signature: Signature,
    lowered: Lowered,
    weights: Weights | None,
    messages: Sequence[str],
    workers: int,
) -> str:
    """The module; `messages` are those of the kernel's faults, in order."""
    return "\n".join(
        [
            _surroundings(lowered),
            _embedded(weights.embedded) if weights is not None and weights.embedded else "",
            _entry(name, signature, lowered, weights, workers),
            _arena_bytes(name, signature, lowered, arena_need(lowered, workers)),
            _messages(name, messages),
        ]
    )


def arena_need(lowered: Lowered, workers: int) -> int:
    """The bytes at the start of the arena that serve as a heap: one part for the caller and one for each worker."""
    return _part(lowered) * (1 + workers * lowered.needs_pool)


def _part(lowered: Lowered) -> int:
    return -(-lowered.heap.bytes // lowered.alignment) * lowered.alignment


def _surroundings(lowered: Lowered) -> str:
    """The functions that replace the heap and the pool of threads."""
    part = _part(lowered)
    memory = _MEMORY.replace("TAKE", TAKE).replace("GIVE", GIVE).replace("PART", str(part)) if part else ""
    job = _JOB_IN_PARTS if part else _PLAIN_JOB
    return memory + (_POOL.replace("FORK_JOIN", FORK_JOIN).replace("JOB", job) if lowered.needs_pool else "")


def _embedded(path: str) -> str:
    """The block of constants as a section of the object."""
    spelled = path.replace("\\", "\\5C\\5C").replace('"', "\\5C\\22")
    lines = (
        ".section .rodata.tirlite,\\22a\\22,@progbits",
        ".p2align 6",
        ".hidden tirlite.weights",
        "tirlite.weights:",
        f".incbin \\22{spelled}\\22",
        ".text",
    )
    return "\n".join([*(f'module asm "{line}"' for line in lines), "@tirlite.weights = external hidden global i8"])


def _entry(name: str, signature: Signature, lowered: Lowered, weights: Weights | None, workers: int) -> str:
    constants = weights.offsets if weights is not None else {}
    taken, lines = ["ptr %ctx"], ["entry:"]
    operands: list[str] = []
    for param, letter in zip(signature.func.params, letters_of(signature.func), strict=True):
        kind = _KINDS[letter if letter == "P" else letter.lower()]
        value = f"%p{len(operands)}"
        if param.name in constants:
            base = "@tirlite.weights" if weights is not None and weights.embedded else "%weights"
            lines.append(f"  {value} = getelementptr i8, ptr {base}, i64 {constants[param.name]}")
        else:
            taken.append(f"{kind} {value}")
        operands.append(f"{kind} {value}")
    dims = [f"i64 %d{place}" for place in range(len(signature.dims))]
    operands += dims
    taken += dims
    if weights is not None and not weights.embedded:
        taken.append("ptr %weights")
    need = arena_need(lowered, workers)
    has_arena = need > 0 or not lowered.workspace.is_empty
    if has_arena:
        taken.append("ptr %arena")
    lines += ["  br label %sizes", *_sizes_checked(signature, f"ret i32 {BAD_SIZE}", "context"), *_CONTEXT_CHECKED]
    lines += _address_checked("arena", lowered.alignment, NO_ARENA) if has_arena else []
    lines += _address_checked("weights", WEIGHTS_ALIGN, NO_WEIGHTS) if "ptr %weights" in taken else []
    if not lowered.workspace.is_empty:
        lines.append(f"  %workspace = getelementptr i8, ptr %arena, i64 {need}")
        operands.append("ptr %workspace")
    # If the entry takes a record of its parameters, call the function below it, which takes them one by one.
    inner = f"{lowered.name}_unpacked" if len(operands) > MOST_PARAMETERS else lowered.name
    call = f"  %fault = call i64 @{inner}({', '.join(operands)})"
    kinds = ", ".join(each.split(" ")[0] for each in operands)
    ends = ["  %status = trunc i64 %fault to i32", "  ret i32 %status", "}"]
    head = f"define i32 @{name}({', '.join(taken)}) {{"
    body = [*lines, *_surrounded(call, lowered)]
    return "\n".join([f"declare i64 @{inner}({kinds})", head, *body, *ends])


def _surrounded(call: str, lowered: Lowered) -> list[str]:
    """The call, with thread-local variables set before and restored after it."""
    values = {"tirlite.top": "%arena"} if lowered.heap.bytes else {}
    lines = []
    if lowered.needs_pool:
        values["tirlite.current"] = "%ctx"
        if lowered.heap.bytes:
            values["tirlite.parts"] = "%parts"
            lines.append(f"  %parts = getelementptr i8, ptr %arena, i64 {_part(lowered)}")
    for name, value in values.items():
        lines += [f"  %before.{name} = load ptr, ptr @{name}", f"  store ptr {value}, ptr @{name}"]
    return [*lines, call, *(f"  store ptr %before.{name}, ptr @{name}" for name in values)]


_CONTEXT_CHECKED = (
    "context:",
    "  %absent = icmp eq ptr %ctx, null",
    "  br i1 %absent, label %ready, label %abi",
    "abi:",
    "  %version = load i32, ptr %ctx",
    f"  %same = icmp eq i32 %version, {ABI}",
    "  br i1 %same, label %ready, label %other",
    "other:",
    f"  ret i32 {BAD_CONTEXT}",
    "ready:",
)


def _address_checked(name: str, alignment: int, status: int) -> list[str]:
    return [
        f"  %{name}.at = ptrtoint ptr %{name} to i64",
        f"  %{name}.low = and i64 %{name}.at, {alignment - 1}",
        f"  %{name}.missing = icmp eq ptr %{name}, null",
        f"  %{name}.odd = icmp ne i64 %{name}.low, 0",
        f"  %{name}.unfit = or i1 %{name}.missing, %{name}.odd",
        f"  br i1 %{name}.unfit, label %no.{name}, label %with.{name}",
        f"no.{name}:",
        f"  ret i32 {status}",
        f"with.{name}:",
    ]


def _sizes_checked(signature: Signature, refusal: str, then: str) -> list[str]:
    """Blocks from `sizes` on that check dims against their facts, and go on at `then`."""
    lines = ["sizes:", "  %fits = and i1 true, true"]
    last = "%fits"
    for place, var in enumerate(signature.dims):
        low, high, multiple = (1, None, 1) if var.dim is None else (var.dim.min, var.dim.max, var.dim.multiple_of)
        lines += [
            f"  %low{place} = icmp sge i64 %d{place}, {max(low, 0)}",
            f"  %high{place} = icmp sle i64 %d{place}, {_LARGEST if high is None else high}",
            f"  %rest{place} = srem i64 %d{place}, {multiple}",
            f"  %even{place} = icmp eq i64 %rest{place}, 0",
            f"  %range{place} = and i1 %low{place}, %high{place}",
            f"  %both{place} = and i1 %range{place}, %even{place}",
            f"  %fits{place} = and i1 {last}, %both{place}",
        ]
        last = f"%fits{place}"
    return [*lines, f"  br i1 {last}, label %{then}, label %refused", "refused:", f"  {refusal}"]


def _arena_bytes(name: str, signature: Signature, lowered: Lowered, need: int) -> str:
    scalars = [
        f"{_KINDS[letter.lower()]} %s{place}"
        for place, letter in enumerate(letters_of(signature.func))
        if letter != "P"
    ]
    taken = [*scalars, *(f"i64 %d{place}" for place in range(len(signature.dims)))]
    lines = [f"define i64 @{name}_arena_bytes({', '.join(taken)}) {{", "entry:", "  br label %sizes"]
    lines += [*_sizes_checked(signature, "ret i64 -1", "compute"), "compute:"]
    if not lowered.size_name:
        return "\n".join([*lines, f"  ret i64 {need + lowered.workspace.bytes}", "}"])
    kinds = ", ".join(each.split(" ")[0] for each in taken)
    return "\n".join(
        [
            f"declare i64 @{lowered.size_name}({kinds})",
            *lines,
            f"  %size = call i64 @{lowered.size_name}({', '.join(taken)})",
            "  %impossible = icmp slt i64 %size, 0",
            f"  %whole = add i64 %size, {need}",
            "  %told = select i1 %impossible, i64 -1, i64 %whole",
            "  ret i64 %told",
            "}",
        ]
    )


def _messages(name: str, messages: Sequence[str]) -> str:
    table = [*(_OWN[status] for status in sorted(_OWN)), *messages, "no status of this function"]
    lines = []
    for place, text in enumerate(table):
        data = text.encode() + b"\0"
        spelled = "".join(f"\\{byte:02X}" for byte in data)
        lines.append(f'@tirlite.text{place} = private unnamed_addr constant [{len(data)} x i8] c"{spelled}"')
    first, last = min(_OWN), len(messages)
    cases = " ".join(f"i32 {first + place}, label %m{place}" for place in range(len(table) - 1))
    lines += [f"define ptr @{name}_message(i32 %status) {{", "entry:"]
    lines.append(f"  switch i32 %status, label %m{last - first + 1} [{cases}]")
    for place in range(len(table)):
        lines += [f"m{place}:", f"  ret ptr @tirlite.text{place}"]
    return "\n".join([*lines, "}"]) + "\n"
