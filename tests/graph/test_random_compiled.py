"""A thousand random graphs as native code: they compute what they mean, in storage at the lower bound.

A hundred at a time are called by one function, which is compiled at once; their operators share kernels.
"""

from __future__ import annotations

import numpy as np
import pytest
from graph.random_graphs import Sample, random_graph

from tirlite.graph import Builder, TensorType, compile, evaluate  # noqa: A004

STRATEGIES = ("auto", "share", "none", "pack", "auto", "graph", "group", "auto", "coalesce", "tvm")


@pytest.mark.parametrize("block", range(10))
def test_a_hundred_graphs_compute_what_they_mean(block: int) -> None:
    samples = [random_graph(seed, most=8) for seed in range(100 * block, 100 * block + 100)]
    g = Builder("hundred")
    results = []
    for number, sample in enumerate(samples):
        inputs = [g.input(f"g{number}_{p.name}", TensorType(p.shape, p.dtype)) for p in sample.function.params]
        results.append(g.invoke(sample.function, *inputs))
    hundred = compile(g.function(results), strategy=STRATEGIES[block])
    for choice in range(3):
        arrays = [array for sample in samples for array in sample.arguments[choice]]
        for sample, got in zip(samples, hundred(*arrays), strict=True):
            compare(sample, choice, got)


def compare(sample: Sample, choice: int, got: object) -> None:
    wanted = leaves(evaluate(sample.function, *sample.arguments[choice]))
    for a, b in zip(leaves(got), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("block", range(4))
def test_their_storage_is_at_the_lower_bound(block: int) -> None:
    for seed in range(40 * block, 40 * block + 40):
        plan = compile(random_graph(seed, most=12).function).plan
        assert plan.total == plan.open_bound, f"seed {seed}"


def leaves(value: object) -> list[np.ndarray]:
    return [leaf for each in value for leaf in leaves(each)] if isinstance(value, tuple) else [value]
