"""The options of `from_onnx`, and the files that a model was read from.

A module of its own, so that importing a model does not import the cache.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tirlite.record import record


@record
class ImportOptions:
    """The arguments of `from_onnx` besides the model."""

    outputs: Sequence[str] | None
    shapes: Mapping[str, Any]
    constants: Mapping[str, Any]
    dims: Mapping[str, Any]

    @property
    def spelled(self) -> bytes:
        """The options as bytes. Raises TypeError, AttributeError or PicklingError if they cannot be pickled."""
        outputs = None if self.outputs is None else tuple(self.outputs)
        shapes = {name: tuple(extents) for name, extents in self.shapes.items()}
        constants = {name: np.asarray(each) for name, each in self.constants.items()}
        arrays = {name: (each.dtype.str, each.shape, each.tolist()) for name, each in constants.items()}
        return pickle.dumps((outputs, shapes, arrays, dict(self.dims)), protocol=5)


@record
class FileUsed:
    """An external data file of a model; `state` is its `state_of` before it was read."""

    path: Path
    state: tuple[int, int]


def state_of(path: Path) -> tuple[int, int]:
    """The size and modification time of a file, which change when it is written. Raises OSError."""
    state = path.stat()
    return state.st_size, state.st_mtime_ns
