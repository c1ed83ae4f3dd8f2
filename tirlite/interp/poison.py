"""Poison: which lanes of a value come from memory that was never written, and where they were read."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tirlite.diag import Span
from tirlite.ir.faults import UninitialisedRead
from tirlite.record import record


@record(eq=False)
class Poison:
    """A mark on a value (no mark: all lanes are good).

    `lanes` says for each lane whether it is poisoned, at least one being so; `index` is where in `buffer` it was read.
    """

    lanes: npt.NDArray[np.bool_]
    buffer: str
    index: tuple[int, ...]

    def on(self, lanes: npt.NDArray[np.bool_]) -> Poison | None:
        """The same origin over other lanes; no mark if none of them is poisoned."""
        return Poison(lanes, self.buffer, self.index) if lanes.any() else None

    def spread(self, lanes: int) -> Poison:
        """The mark of a scalar, on each of so many lanes."""
        return Poison(np.ones(lanes, np.bool_), self.buffer, self.index)


def merged(*marks: Poison | None) -> Poison | None:
    """The mark of what is computed lane by lane from values with these marks."""
    result = None
    for mark in marks:
        if mark is not None:
            result = mark if result is None else Poison(result.lanes | mark.lanes, result.buffer, result.index)
    return result


def refuse(mark: Poison, use: str, span: Span | None) -> UninitialisedRead:
    """The message for a poisoned value where a value must be good."""
    element = f"{mark.buffer}[{', '.join(map(str, mark.index)) or '()'}]"
    return UninitialisedRead(use, mark.buffer, element, span=span)
