"""Writes the files of an exported function into a folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tirlite.analysis import shape_plan
from tirlite.codegen import MACHINES, Lowered, compile_exported, lower
from tirlite.codegen.reports import AssertTold, IndexReport
from tirlite.diag import CallValueError, KernelError, Message
from tirlite.ir.assertion import filled
from tirlite.ir.printer import text as printed
from tirlite.runtime.export.header import C_WORDS, Exported, cmake_text, header_text
from tirlite.runtime.export.wrapper import Weights, arena_need, wrapper_text
from tirlite.runtime.signature import Signature

if TYPE_CHECKING:
    import numpy.typing as npt

    from tirlite.ir import PrimFunc

    Array: TypeAlias = npt.NDArray[Any]

_LINE = 64  # bytes that constants are aligned to


class NotExportable(Message):
    """A kernel needs something that a program which it is exported to does not have.

    Example: A kernel with `t = tl.alloc(tl.f32[count])`, where `count` is read from an array: memory from the heap.
    Fix: Give the buffer an extent that is known from the arguments, and call C functions by name.
    """

    code = "not-exportable"
    raises = KernelError
    title = "{kernel}() cannot be exported: {why}"
    help = "{advice}"

    kernel: str
    why: str
    advice: str


class BadExport(Message):
    """An option of an export is none that there is.

    Example: `kernel.export("build", target="arm")`.
    Fix: Take what the message lists.
    """

    code = "bad-export"
    raises = CallValueError
    title = "{option} cannot be {given}"
    help = "{advice}"

    option: str
    given: str
    advice: str


def export(
    func: PrimFunc,
    signature: Signature,
    folder: Path,
    name: str,
    *,
    workers: int,
    machine: str,
    constants: Mapping[str, Array],
    embed: bool,
) -> tuple[Path, ...]:
    """The paths of the object, the header, the CMake snippet and the weights, if they are a file.

    `func` is the function after the passes, `constants` are arrays for some parameters, which go into the object with
    `embed`. Raises KernelError for what no program could run; `demand_options` has passed name and machine.
    """
    if shape_plan(func) is not None:
        advice = "compile it with another strategy than per_shape"
        raise NotExportable(signature.name, "its storage is planned as it is called", advice).error()
    lowered = lower(func, workers, exported=True, target=machine)
    _demand_exportable(signature.name, lowered)
    folder.mkdir(parents=True, exist_ok=True)
    block = folder / f"{name}.weights"
    weights = None
    if constants:
        offsets = _write_weights(block, constants)
        weights = Weights(offsets, str(block.resolve()) if embed else None)
    names = [name, f"{name}_arena_bytes", f"{name}_message"]
    text = wrapper_text(name, signature, lowered, weights, _messages(lowered), workers)
    paths = [folder / f"{name}{suffix}" for suffix in (".o", ".h", ".cmake")]
    paths[0].write_bytes(compile_exported(lowered, text, names, machine))
    size = -1
    if constants and embed:
        block.unlink()
    elif constants:
        size = block.stat().st_size
        paths.append(block)
    has_arena = arena_need(lowered, workers) > 0 or not lowered.workspace.is_empty
    made = Exported(name, lowered.alignment, has_arena, workers, frozenset(constants), size)
    paths[1].write_text(header_text(signature, made), "utf-8")
    paths[2].write_text(cmake_text(name), "utf-8")
    return tuple(paths)


def demand_options(name: str, machine: str, *, embed: bool) -> None:
    """Raises CallValueError for a name that C does not take, an unknown machine, and weights in such code."""
    if not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name, re.ASCII) or name in C_WORDS:
        raise BadExport("the name", repr(name), "give one that C takes: `name=`").error()
    if machine != "host" and machine not in MACHINES:
        listed = ", ".join(("host", *MACHINES))
        raise BadExport("the target", repr(machine), f"the targets are {listed}").error()
    if embed and machine == "aarch64":
        advice = 'have the weights in a file: `weights="file"`'
        raise BadExport("weights for another machine", "in the object", advice).error()


def _demand_exportable(kernel: str, lowered: Lowered) -> None:
    if lowered.heap.unbounded:
        advice = "give it extents that are known from the arguments, or allocate it in the kernel that is exported"
        why = f"the bytes of `{lowered.heap.unbounded[0]}` are known only as it runs"
        raise NotExportable(kernel, why, advice).error()
    if lowered.addresses:
        raise NotExportable(kernel, "it calls a C function by its address", "call it by its name").error()


def _messages(lowered: Lowered) -> list[str]:
    """What each fault says, without the values that belong to it."""
    texts = []
    for number, fault in enumerate(lowered.faults, 1):
        told = lowered.told.get(number)
        text = fault.say(fault.title)
        if isinstance(told, AssertTold):
            inside = [printed(value) for value in told.stmt.values]
            text = f"assertion failed: {filled(told.stmt.message, inside) if inside else told.stmt.message}"
        elif isinstance(told, IndexReport):
            text = f"an index of `{told.buffer}` is out of bounds"
        span = fault.span
        texts.append(text if span is None else f"{text} ({Path(span.source.name).name}:{span.line})")
    return texts


def _write_weights(path: Path, constants: Mapping[str, Array]) -> dict[str, int]:
    """Writes the arrays one after another, and returns where each begins."""
    offsets = {}
    with path.open("wb") as file:
        for name, array in constants.items():
            file.write(bytes(-file.tell() % _LINE))
            offsets[name] = file.tell()
            file.write(array.data)
    return offsets
