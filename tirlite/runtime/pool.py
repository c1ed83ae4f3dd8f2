"""Gives the address of the function that runs parallel loops: the process's pool of worker threads."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from functools import cache
from typing import TYPE_CHECKING

from tirlite.gate import GATE
from tirlite.runtime.artifact.artifact import library_of
from tirlite.runtime.cache.entries import code_called
from tirlite.target.convention import FORK_JOIN, POOL_RESET

if TYPE_CHECKING:
    from tirlite.runtime.artifact.artifact import Code


def pool_address() -> int:
    """The address of `tirlite.fork_join`, see `codegen.llvm.pool`.

    Its threads are started by the first loop that wants them, and live as long as the process.
    """
    # Threads that ask at the same time would have a pool each.
    with GATE.inside(_loaded):
        return _loaded()


@cache
def _loaded() -> int:
    library = library_of(code_called("pool", _compiled), {})
    # Threads run in this code until the process ends: nothing that happens at its end may unload it.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))
    reset = library.function(POOL_RESET, "")
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: reset() and None)
    return library.address(FORK_JOIN)


def _compiled() -> Code:
    from tirlite.codegen import compile_text, pool_text
    from tirlite.runtime.artifact.build import code_of

    machine = platform.machine() if sys.platform == "linux" else ""
    return code_of(compile_text(pool_text(machine)), (FORK_JOIN, POOL_RESET))
