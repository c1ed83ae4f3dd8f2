"""Random views of memory: axes in any order, steps of any sign, rows with room between them, elements that repeat."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from fuzz.guard import guarded

_STEPS = (1, 1, 1, 1, 2, 3, -1, -1, -2)


@dataclass(frozen=True)
class View:
    """An array in a room of bytes between forbidden pages."""

    room: np.ndarray
    array: np.ndarray

    @property
    def places(self) -> set[int]:
        """The addresses of all bytes of its elements."""
        start, item = self.array.__array_interface__["data"][0], self.array.itemsize
        first = (
            start + sum(index * step for index, step in zip(at, self.array.strides, strict=True))
            for at in product(*map(range, self.array.shape))
        )
        return {place + byte for place in first for byte in range(item)}

    @property
    def repeats(self) -> bool:
        """Whether two of its elements share bytes."""
        return len(self.places) < self.array.nbytes


def random_view(
    shape: tuple[int, ...],
    dtype: np.dtype,
    draw: np.random.Generator,
    *,
    repeats: float,
    room: np.ndarray | None = None,
) -> View | None:
    """A view of this shape, each axis of which repeats its elements at this chance; None where a room is too small."""
    strides, low, span = [0] * len(shape), 0, dtype.itemsize
    for axis in draw.permutation(len(shape)):
        if draw.random() < repeats:
            continue
        stride = int(draw.choice(_STEPS)) * span
        strides[axis] = stride
        reach = max(shape[axis] - 1, 0) * stride
        low += min(reach, 0)
        span += abs(reach) + int(draw.choice((0, 0, 1))) * dtype.itemsize
    if room is None:
        spare = int(draw.integers(4)) * dtype.itemsize
        room = guarded(np.zeros(span + spare, np.uint8), at_end=bool(draw.integers(2)))
    left = (len(room) - span) // dtype.itemsize
    if left < 0:
        return None
    offset = int(draw.integers(left + 1)) * dtype.itemsize - low
    return View(room, np.ndarray(shape, dtype, room, offset, strides))
