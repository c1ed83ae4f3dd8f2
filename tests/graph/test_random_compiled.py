"""Random graphs as native code: they compute what they mean, tensor by tensor, at the lower bound.

Many at a time are one function, which is compiled at once, under one planner; their operators share kernels.
"""

from __future__ import annotations

import numpy as np
import pytest
from effort import effort
from graph.leaves import leaves
from graph.random_graphs import Sample, random_graph
from random_cases import groups

import tirlite as tl
from tirlite.codegen import Effort
from tirlite.graph import Builder, Function, Tuple, compile, trace  # noqa: A004

STRATEGIES = ("none", "tvm", "share", "coalesce", "group", "graph", "pack", "exact", "auto", "per_shape")


@pytest.mark.parametrize(("block", "strategy"), [*enumerate(STRATEGIES)])
def test_many_graphs_compute_what_they_mean(block: int, strategy: str) -> None:
    seeds = [100 * block + seed for seed in groups(100)]
    dims = tl.dim("n"), tl.dim("m", min=2)
    samples = [random_graph(seed, symbolic=seed % 5 == 1, most=8, prefix=f"g{seed}_", dims=dims) for seed in seeds]
    whole = together(samples)
    compiled = compile(whole, strategy=strategy, keep="all")
    for choice in range(3):
        arrays = [array for sample in samples for array in sample.arguments[choice]]
        wanted = trace(whole, *arrays)
        with effort(Effort.SOME if strategy == "auto" else Effort.NONE):
            values = compiled.trace(*arrays)
        for expr, value in values.items():
            for got, expected in zip(leaves(value), leaves(wanted[expr]), strict=True):
                assert got.dtype == expected.dtype
                np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def together(samples: list[Sample]) -> Function:
    """One function of all: one in ten is called, the others are part of it."""
    g = Builder("calls")
    bodies, params = [], []
    for number, sample in enumerate(samples):
        is_called = number % 10 == 3
        inner = sample.function
        mine = [g.input(each.name, each.type) for each in inner.params] if is_called else inner.params
        bodies.append(g.invoke(inner, *mine) if is_called else inner.body)
        params += mine
    return Function("whole", tuple(params), Tuple(tuple(bodies)))


@pytest.mark.parametrize("block", groups(4))
def test_their_storage_is_at_the_lower_bound(block: int) -> None:
    for seed in range(40 * block, 40 * block + 40):
        plan = compile(random_graph(seed, most=12).function).plan
        assert plan.total == plan.open_bound, f"seed {seed}"
