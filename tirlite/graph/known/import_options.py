"""The options of `from_onnx`, and the files that a model was read from.

Reading a model loads this, and not the cache that keeps what it was read as.
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
    """What `from_onnx` takes besides the model."""

    outputs: Sequence[str] | None
    shapes: Mapping[str, Any]
    constants: Mapping[str, Any]
    dims: Mapping[str, Any]

    @property
    def spelled(self) -> bytes:
        """Raises TypeError, AttributeError or PicklingError for what has no spelling."""
        outputs = None if self.outputs is None else tuple(self.outputs)
        shapes = {name: tuple(extents) for name, extents in self.shapes.items()}
        constants = {name: np.asarray(each) for name, each in self.constants.items()}
        arrays = {name: (each.dtype.str, each.shape, each.tolist()) for name, each in constants.items()}
        return pickle.dumps((outputs, shapes, arrays, dict(self.dims)), protocol=5)


@record
class FileUsed:
    """A file that a model has data in; `state` is what the system said of it before it was read."""

    path: Path
    state: tuple[int, int]


def state_of(path: Path) -> tuple[int, int]:
    """What the system says of a file: another one after it was written to. Raises OSError."""
    state = path.stat()
    return state.st_size, state.st_mtime_ns
