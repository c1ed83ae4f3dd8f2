"""A search engine that is loaded when it is first needed: most plans are optimal without any search."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from tirlite.plan.search.cells import Array, Cells
from tirlite.plan.search.engine import Engine


class LateEngine:
    """The compiled engine. Loading the compiler takes longer than planning does for many problems."""

    @cached_property
    def _engine(self) -> Engine:
        from tirlite.solver import CompiledEngine

        return CompiledEngine()

    @property
    def slice(self) -> int:
        return self._engine.slice

    @property
    def largest(self) -> int:
        return self._engine.largest

    def array(self, values: Sequence[int], /) -> Array:
        return self._engine.array(values)

    def zeros(self, count: int, /) -> Array:
        return self._engine.zeros(count)

    def advance(self, cells: Cells, nodes: int, /) -> None:
        self._engine.advance(cells, nodes)
