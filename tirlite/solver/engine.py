"""Advances the cells of a search by some nodes: the search compiled to native code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

from tirlite import driver
from tirlite.dsl import parse
from tirlite.plan.search.cells import NAMES, Array, Cells
from tirlite.plan.search.rules import advance
from tirlite.solver.reach import LARGEST, SLICE
from tirlite.solver.splice import kernel_text

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class CompiledEngine:
    """The engine of `plan.search` as a kernel of our own: the same answers as in Python, a hundred times faster.

    It compiles at its first search, which takes part of a second, and lets other Python threads run.
    """

    slice = SLICE
    largest = LARGEST
    is_parallel = True

    def __init__(self) -> None:
        self.kernel: driver.Kernel = _compiled(kernel_text(advance, NAMES), "search")
        self._others: dict[Callable[..., None], driver.Kernel] = {}

    def array(self, values: Sequence[int], /) -> Array:
        """The values as 64-bit integers, with one cell at least."""
        return np.array(values or [0], np.int64)

    def zeros(self, count: int, /) -> Array:
        """As many zeros."""
        return np.zeros(count, np.int64)

    def advance(self, cells: Cells, nodes: int, /) -> None:
        """Goes on for so many nodes, or until the search ends."""
        self.kernel(*(getattr(cells, name) for name in NAMES), nodes)

    def run(self, procedure: Callable[..., None], cells: DataclassInstance, /, *numbers: int) -> None:
        """Compiles the procedure, which takes part of a second, when it is called first."""
        names = [field.name for field in fields(cells)]
        if procedure not in self._others:
            self._others[procedure] = _compiled(kernel_text(procedure, names), procedure.__name__)
        self._others[procedure](*(getattr(cells, name) for name in names), *numbers)


def _compiled(text: str, name: str) -> driver.Kernel:
    """The kernel of this text. Its cells point at each other, so that next to no index of theirs can be proved."""
    return driver.compile(parse(text, name), unchecked=True)
