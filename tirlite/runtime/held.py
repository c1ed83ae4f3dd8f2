"""What the caches of this machine hold: the function that kernels ask, loaded once."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING

from tirlite.gate import GATE
from tirlite.runtime.artifact.artifact import library_of
from tirlite.runtime.cache import code_called
from tirlite.target.convention import HOLDS

if TYPE_CHECKING:
    from tirlite.runtime.artifact.artifact import Code


def holds_address() -> int:
    """The address of `tirlite.holds`, see `codegen.llvm.held`."""
    # Threads that arrive at the same time must not try the caches twice.
    with GATE.inside(_loaded):
        return _loaded()


@cache
def _loaded() -> int:
    library = library_of(code_called("held", _compiled), {})
    # Kernels call it until the process ends, so it must never be unloaded.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))
    return library.address(HOLDS)


def _compiled() -> Code:
    from tirlite.codegen import Effort, compile_text, held_text
    from tirlite.runtime.artifact.build import code_of

    return code_of([compile_text(held_text(), Effort.NONE)], (HOLDS,))
