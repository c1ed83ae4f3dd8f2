"""A function with sizes to try it at: what tests and benchmarks of graphs go through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tirlite.graph.function import Function
from tirlite.graph.sample_arguments import sample_arguments
from tirlite.record import record
from tirlite.sizes import Dim, dims_of


@record
class Network:
    """A function, and values for all of its dims, in several sets; an empty set where it has no dims."""

    function: Function
    bindings: tuple[Mapping[str, int], ...] = ({},)

    @property
    def name(self) -> str:
        return self.function.name

    @property
    def dims(self) -> dict[str, Dim]:
        """The dims of the parameters by name."""
        extents = (extent for param in self.function.params for extent in param.shape)
        return {dim.name: dim for extent in extents for dim in dims_of(extent)}

    def arguments(self, sizes: Mapping[str, int], seed: int = 0) -> tuple[npt.NDArray[Any], ...]:
        """Arrays for the parameters: normal floats, integers that are in range where they are indices, else 0 or 1."""
        binding = {dim: sizes[name] for name, dim in self.dims.items()}
        return tuple(sample_arguments(self.function, binding, np.random.default_rng(seed), {}))


class Weights:
    """Seeded weights, scaled so that values neither fade nor grow from layer to layer."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def __call__(self, *shape: int) -> npt.NDArray[np.float32]:
        """Weights for a layer with `shape[0]` outputs: their variance is one over the inputs of each."""
        inputs = int(np.prod(shape[1:])) or 1
        return np.asarray(self._rng.standard_normal(shape, np.float32) / np.sqrt(inputs), np.float32)

    def bias(self, count: int) -> npt.NDArray[np.float32]:
        """Small numbers around 0."""
        return np.asarray(self._rng.standard_normal(count, np.float32) / 10, np.float32)

    def scale(self, count: int) -> npt.NDArray[np.float32]:
        """Numbers around 1, above 0."""
        return self._rng.uniform(0.5, 1.5, count).astype(np.float32)
