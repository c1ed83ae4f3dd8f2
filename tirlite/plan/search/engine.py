"""What runs a search: the protocol, and the engine in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Protocol

from tirlite.plan.search.advance import advance
from tirlite.plan.search.cells import Array, Cells

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class Engine(Protocol):
    """Runs searches. All engines give the same answers for the same number of nodes.

    `slice` is how many nodes take a few milliseconds, `largest` the largest sum of sizes that it can take;
    `is_parallel` says whether searches in several threads go on at once.
    """

    @property
    def slice(self) -> int: ...

    @property
    def largest(self) -> int: ...

    @property
    def is_parallel(self) -> bool: ...

    def array(self, values: Sequence[int], /) -> Array:
        """The values in the form that `advance` wants."""

    def zeros(self, count: int, /) -> Array:
        """As many zeros in that form."""

    def advance(self, cells: Cells, nodes: int, /) -> None:
        """Goes on for so many nodes, or until `state[STATUS]` tells of an end."""

    def run(self, procedure: Callable[..., None], cells: DataclassInstance, /, *numbers: int) -> None:
        """Calls a procedure that is also kernel language on cells, a record of arrays of 64-bit integers."""


class PythonEngine:
    """The rules as they are written, run by Python on lists: some thousand nodes a second, nothing to compile."""

    slice = 20
    largest = 1 << 62
    is_parallel = False

    def array(self, values: Sequence[int], /) -> Array:
        return list(values)

    def zeros(self, count: int, /) -> Array:
        return [0] * count

    def advance(self, cells: Cells, nodes: int, /) -> None:
        advance(cells, nodes)

    def run(self, procedure: Callable[..., None], cells: DataclassInstance, /, *numbers: int) -> None:
        """Calls it on lists, which Python reads and writes in a fraction of the time that arrays take."""
        for each in fields(cells):
            setattr(cells, each.name, list(getattr(cells, each.name).tolist()))
        procedure(cells, *numbers)
