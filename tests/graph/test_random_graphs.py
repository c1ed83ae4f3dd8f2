"""Random graphs run: each value has the type that was inferred for it, at every binding of the dims."""

from __future__ import annotations

import numpy as np
import pytest
from graph.random_graphs import random_graph

import tirlite as tl
from tirlite.graph.extents import values
from tirlite.sizes import dims_of


@pytest.mark.parametrize("symbolic", [False, True])
def test_values_have_their_types(symbolic: bool) -> None:
    for seed in range(60):
        sample = random_graph(seed, symbolic=symbolic)
        for arrays in sample.arguments:
            traced = tl.graph.trace(sample.function, *arrays)
            binding = {}
            for param, array in zip(sample.function.params, arrays, strict=True):
                binding |= {d: n for e, n in zip(param.shape, array.shape, strict=True) for d in dims_of(e)}
            for expr, value in traced.items():
                if isinstance(value, np.ndarray):
                    assert value.shape == values(expr.shape, binding)
                    assert value.dtype == expr.dtype.numpy
