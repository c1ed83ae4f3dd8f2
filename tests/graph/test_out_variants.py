"""Out-variants: which calls a library is asked for, and that what it gives computes what the operator means."""

from __future__ import annotations

import numpy as np
import pytest
from graph.leaves import leaves
from graph.random_graphs import random_graph

import tirlite as tl
from tirlite.graph import (
    NATIVE,
    NUMPY,
    Builder,
    Call,
    Library,
    RuntimeOptions,
    StaticRuntime,
    evaluate,
    explicit_allocation,
)


def softmax_chain() -> tl.graph.Function:
    n = tl.dim("n")
    g = Builder("chain")
    return g.function(g.exp(g.softmax(g.exp(g.input("x", tl.f32[n, 4])))))


@pytest.mark.parametrize(("takes_dims", "asked"), [(False, 4), (True, 2)])
def test_a_library_that_takes_dims_is_asked_once_for_all_sizes(takes_dims: bool, asked: int):
    calls: list[Call] = []

    def variant(call: Call):
        calls.append(call)
        if takes_dims:
            return lambda args, outs: np.copyto(outs[0], args[0])
        return NUMPY.variant(call)

    runtime = StaticRuntime(softmax_chain(), library=Library(variant, takes_dims))
    for rows in (2, 3, 2, 3):
        runtime(np.ones((rows, 4), np.float32))
    # Both exp are equal calls.
    assert len(calls) == asked


def test_a_library_without_an_out_variant_leaves_it_to_numpy():
    runtime = StaticRuntime(softmax_chain(), library=Library(lambda call: None, takes_dims=True))
    x = np.ones((2, 4), np.float32)
    for _ in range(2):
        assert np.array_equal(runtime(x), evaluate(runtime.function, x))


@pytest.mark.parametrize("seed", range(6))
def test_kernels_serve_all_sizes(seed: int):
    sample = random_graph(seed, symbolic=True, most=8)
    executable = explicit_allocation(sample.function)
    runtime = StaticRuntime(sample.function, RuntimeOptions(debug=True), library=NATIVE)
    variants = tl.graph.OutVariants(NATIVE)
    for arguments in sample.arguments:
        wanted = leaves(evaluate(sample.function, *arguments))
        for got in (executable.run(*arguments, variants=variants).result, runtime(*arguments)):
            for a, b in zip(leaves(got), wanted, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
