"""Advances the cells of a search by some nodes, with an engine that compiles itself when that pays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING

from tirlite.plan.search.cells import COUNT, Array, Cells
from tirlite.plan.search.engine import LARGEST, SLICE, PythonEngine
from tirlite.plan.search.rules import advance

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from tirlite.solver.engine import CompiledEngine

# Nodes times buffers that Python works through before the compiled engine takes over: about what compiling costs.
_WORK = 150_000


class LateEngine:
    """Begins in Python and goes on in compiled code, with the answers of either: most searches are short.

    One engine is for one plan; the code is compiled once in a process.
    """

    largest = LARGEST

    def __init__(self, work: int = _WORK) -> None:
        """`work` is how many nodes times buffers are left to Python."""
        self._left = work
        self._is_compiled = False

    @property
    def slice(self) -> int:
        """That of the engine at hand."""
        return SLICE if self._is_compiled else PythonEngine.slice

    @property
    def is_parallel(self) -> bool:
        """Whether it has gone over to compiled code."""
        return self._is_compiled

    def array(self, values: Sequence[int], /) -> Array:
        return list(values)

    def zeros(self, count: int, /) -> Array:
        return [0] * count

    def advance(self, cells: Cells, nodes: int, /) -> None:
        while self._left > 0 and nodes > 0:
            step = min(nodes, 100, max(self._left // max(int(cells.state[COUNT]), 1), 1))
            self._left -= step * int(cells.state[COUNT])
            nodes -= step
            advance(cells, step)
        if nodes > 0:
            engine = compiled_engine()
            self._is_compiled = True
            for each in fields(cells):
                values = getattr(cells, each.name)
                if isinstance(values, list):
                    setattr(cells, each.name, engine.array(values))
            engine.advance(cells, nodes)

    def run(self, procedure: Callable[..., None], cells: DataclassInstance, /, *numbers: int) -> None:
        """Compiled at once: those who call this have very much to do."""
        compiled_engine().run(procedure, cells, *numbers)


@cache
def compiled_engine() -> CompiledEngine:
    """The compiled engine of this process. The compiler is not loaded before."""
    from tirlite.solver.engine import CompiledEngine

    return CompiledEngine()
