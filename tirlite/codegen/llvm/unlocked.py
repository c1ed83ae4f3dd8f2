"""LLVM's long calls, which several threads may be in at once.

llvmlite lets one thread into LLVM at a time. LLVM itself asks that threads share no context and no target machine: so
must callers without the lock. Where llvmlite has no such functions any more, its lock holds nonetheless.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import string_at
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llvmlite.binding import ModuleRef, PassBuilder, TargetMachine
    from llvmlite.binding.newpassmanagers import ModulePassManager


def run_passes(passes: ModulePassManager, module: ModuleRef, builder: PassBuilder, *, locked: bool) -> None:
    """Runs LLVM's passes over a module."""
    run = None if locked else _unlocked("LLVMPY_RunNewModulePassManager")
    if run is None:
        passes.run(module, builder)
    else:
        run(passes, module, builder)


def emit_object(machine: TargetMachine, module: ModuleRef, *, locked: bool) -> bytes:
    """The object code of a module. Raises RuntimeError where LLVM has none for it."""
    from llvmlite.binding import ffi

    emit = None if locked else _unlocked("LLVMPY_TargetMachineEmitToMemory")
    if emit is None:
        return bytes(machine.emit_object(module))
    with ffi.OutputString() as told:
        memory = emit(machine, module, 1, told)
        if not memory:
            raise RuntimeError(str(told))
    try:
        return string_at(ffi.lib.LLVMPY_GetBufferStart(memory), ffi.lib.LLVMPY_GetBufferSize(memory))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(memory)


def _unlocked(name: str) -> Callable[..., Any] | None:
    """A function of llvmlite's library without the lock around it; None where it is not known as such."""
    from llvmlite.binding import ffi

    return getattr(getattr(ffi.lib, name, None), "_cfn", None)
