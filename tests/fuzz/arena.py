"""Workspaces between forbidden pages, in which each buffer has a page of known bytes behind it that nothing may change.

So a write into a neighbour, into padding, or outside of the workspace is found, however small it is.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from math import prod
from typing import Any
from unittest.mock import patch

import numpy as np
from fuzz.guard import forbidden_around

from tirlite.codegen import storage as homes
from tirlite.codegen.storage import Storage, assign_homes, parts_of
from tirlite.ir import Expr, PrimFunc, Var
from tirlite.ir.size import value_of
from tirlite.runtime.bind import Binding
from tirlite.runtime.executable import Executable, Made
from tirlite.sizes import round_up

FILL = 0xA5


class WrittenBeside(AssertionError):
    """A kernel has written to bytes of its workspace that belong to no buffer."""


@contextmanager
def watched() -> Iterator[None]:
    """Kernels that are compiled and called meanwhile have all temporaries in workspaces of this kind."""
    storages: dict[PrimFunc, Storage] = {}

    def assigned(func: PrimFunc, workers: int, stack: int, *on_entry: Any) -> Storage:
        found = assign_homes(func, workers, 0, *on_entry)
        storages[func] = found
        return found

    def run(self: Executable, binding: Binding, operands: list[int | float], made: Made) -> int:
        size = self._workspace_bytes(binding, operands, made)
        with forbidden_around(size) as (memory, start):
            memory[:] = FILL
            fault = self._kernel(*operands, start)
            padding = memory.copy()
        for first, end in _ranges(storages[made.final], _values(made.final, binding)):
            padding[first:end] = FILL
        if (padding != FILL).any():
            raise WrittenBeside(f"bytes {np.flatnonzero(padding != FILL)} of {size}")
        return fault

    with ExitStack() as patches:
        patches.enter_context(patch.object(homes, "LINE", mmap.PAGESIZE))
        patches.enter_context(patch.object(import_module("tirlite.codegen.lower"), "assign_homes", assigned))
        patches.enter_context(patch.object(Executable, "_run_with_workspace", run))
        yield


def _values(func: PrimFunc, binding: Binding) -> dict[Var, int]:
    given = [*zip(func.params, binding.arguments, strict=True), *zip(func.dims, binding.dims, strict=True)]
    return {var: int(value) for var, value in given if isinstance(var, Var) and var.dtype.is_integer}


def _ranges(placed: Storage, values: dict[Var, int]) -> Iterator[tuple[int, int]]:
    """The bytes of each buffer in a workspace, from one to before another."""
    offset = 0
    for loop, copies in parts_of(placed):
        for buffer in (each for _ in range(copies) for each in placed.ranges[loop]):
            if buffer in placed.sizes:
                size = placed.sizes[buffer]
            else:
                size = buffer.dtype.bytes * prod(_extents(placed.shapes[buffer], values))
            yield offset, offset + size
            offset += round_up(size, placed.line)


def _extents(shape: Sequence[Expr], values: dict[Var, int]) -> Iterator[int]:
    for extent in shape:
        value = value_of(extent, values)
        assert value is not None
        yield value
