"""The networks of the gallery on the executors: explicit allocation under its planners, and the static runtime."""

from __future__ import annotations

import numpy as np
import pytest
from graph.leaves import leaves

import tirlite as tl
from tirlite.bench.networks import SMALL
from tirlite.graph import (
    NATIVE,
    Executable,
    OutVariants,
    RuntimeOptions,
    StaticRuntime,
    StorageCoalesce,
    evaluate,
    explicit_allocation,
)


@pytest.mark.parametrize("name", SMALL)
def test_all_executors_give_the_same(name: str):
    network = SMALL[name]()
    explicit = explicit_allocation(network.function)
    programs = [explicit, *(StorageCoalesce(strategy)(explicit) for strategy in ("coalesce", "pack", "share"))]
    programs.append(Executable.from_json(programs[-1].to_json()))
    runtimes = [
        StaticRuntime(network.function, RuntimeOptions(copy_views=copies, manage_outputs=copies, debug=True))
        for copies in (False, True)
    ]
    for sizes in network.bindings * 2:
        arguments = network.arguments(sizes)
        wanted = leaves(evaluate(network.function, *arguments))
        for run in (*programs, *runtimes):
            for got, expected in zip(leaves(run(*arguments)), wanted, strict=True):
                np.testing.assert_array_equal(got, expected)
        for runtime in runtimes:
            runtime.release_outputs()


@pytest.mark.parametrize("name", ["lstm", "mlp"])
def test_kernels_give_nearly_the_same(name: str):
    network = SMALL[name]()
    variants = OutVariants(NATIVE)
    packed = StorageCoalesce("pack")(explicit_allocation(network.function))
    for sizes in network.bindings:
        arguments = network.arguments(sizes)
        wanted = leaves(evaluate(network.function, *arguments))
        for got, expected in zip(leaves(packed.run(*arguments, variants=variants).result), wanted, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SMALL)
def test_overlap_needs_no_more_than_what_is_live_at_once(name: str):
    network = SMALL[name]()
    plan = StorageCoalesce("pack").plan(explicit_allocation(network.function).main)
    for sizes in network.bindings:
        at = plan.at({dim: sizes[dim.name] for dim in plan.problem.dims})
        assert at.total == tl.plan.lower_bound(at.problem)
