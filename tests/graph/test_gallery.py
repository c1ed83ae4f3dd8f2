"""The networks of the gallery: native code gives what the reference gives, tensor by tensor, however it is planned."""

from __future__ import annotations

import numpy as np
import pytest
from effort import effort
from graph.leaves import leaves

from tirlite.bench.networks import SMALL
from tirlite.codegen import Effort
from tirlite.graph import compile, trace  # noqa: A004

# Each network by two planners at least, and each planner on some network.
CASES = [
    *(("lstm", planner) for planner in ("none", "graph", "auto")),
    *(("mlp", planner) for planner in ("share", "pack", "graph", "auto", "per_shape")),
    *((name, planner) for name in ("cnn", "transformer") for planner in ("auto", "per_shape")),
]


@pytest.mark.parametrize(("name", "planner"), CASES)
def test_each_tensor_is_what_it_means(name: str, planner: str) -> None:
    network = SMALL[name]()
    compiled = compile(network.function, strategy=planner, keep="all")
    for sizes in network.bindings:
        arguments = network.arguments(sizes)
        wanted = trace(network.function, *arguments)
        with effort(Effort.FULL if planner == "auto" else Effort.NONE):
            values = compiled.trace(*arguments)
        for expr, value in values.items():
            for got, expected in zip(leaves(value), leaves(wanted[expr]), strict=True):
                np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SMALL)
def test_planned_bytes_are_the_lower_bound_at_any_binding(name: str) -> None:
    plan = compile(SMALL[name]().function).plan
    for value in (1, 2, 3, 5, 7, 16, 33, 100, 1000):
        at = plan.at({dim: value * dim.multiple_of for dim in plan.problem.dims})
        assert at.total == at.open_bound
