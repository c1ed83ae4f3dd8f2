"""The order of a graph's operators that takes the least memory: what it gains, and that nothing else changes."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from graph.leaves import leaves
from graph.random_graphs import random_graph

import tirlite as tl
from tirlite.bench.networks import SMALL
from tirlite.graph import Builder, Function, Ordered, compile, evaluate, memory_order, program  # noqa: A004
from tirlite.graph.aot.compile import is_smaller
from tirlite.graph.aot.lower import lower_program
from tirlite.graph.sample_arguments import dims_in
from tirlite.plan.order import samples
from tirlite.sizes import Proof, dims_of, evaluate as size_at, prove_le
from tirlite.solver import options as default_options


def two_towers(rows: object) -> Function:
    """Two wide tensors that are reduced to one column each, both computed before either is reduced."""
    g = Builder("towers")
    x = g.input("x", tl.f32[rows, 8])
    left, right = (
        g.let(name, g.matmul(x, np.full((8, 64), value, np.float32))) for name, value in (("a", 1), ("b", 2))
    )
    ends = [g.reduce_sum(each, 1, keepdims=True) for each in (left, right)]
    return g.function(g.matmul(g.concat(ends, axis=1), np.ones((2, 3), np.float32)))


@pytest.mark.parametrize("rows", [16, tl.dim("rows")])
def test_one_tower_is_reduced_before_the_other_is_built(rows: object) -> None:
    f = two_towers(rows)
    plain, ordered = compile(f), compile(f, order="memory")
    at = dict.fromkeys(ordered.plan.problem.dims, 16)
    assert plain.plan.at(at).total == 16 * (64 + 64 + 1) * 4
    assert ordered.plan.at(at).total == 16 * (64 + 1 + 1) * 4
    x = np.arange(16 * 8, dtype=np.float32).reshape(16, 8)
    np.testing.assert_array_equal(ordered(x), plain(x))


def test_both_orders_are_told() -> None:
    ordered = compile(two_towers(16), order="memory")
    assert str(ordered.order) == "4224 bytes between operators, which no order beats; 8256 in program order"


def test_an_order_is_chosen_without_compiling() -> None:
    made = program(two_towers(16))
    ordered = memory_order(made)
    assert isinstance(ordered, Ordered)
    assert (ordered.peak, ordered.program_peak, ordered.proved) == (4224, 8256, True)
    assert set(ordered.program.steps()) == set(made.steps())


@pytest.mark.parametrize("name", SMALL)
def test_peaks_are_those_of_the_plans(name: str) -> None:
    f = SMALL[name]().function
    plain, ordered = compile(f), compile(f, order="memory")
    assert ordered.order.proved
    assert ordered.order.peak == ordered.plan.at(ordered.order.at).lower_bound
    assert ordered.order.program_peak == plain.plan.at(ordered.order.at).lower_bound


def test_no_order_of_a_random_graph_is_worse_than_the_given_one() -> None:
    for seed in range(60):
        ordered = memory_order(program(random_graph(seed, symbolic=seed % 2 == 1).function))
        assert ordered.peak <= ordered.program_peak


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_compute_the_same(seed: int) -> None:
    sample = random_graph(seed, symbolic=seed % 3 == 2, most=15)
    net, plain = compile(sample.function, order="memory"), compile(sample.function).plan.total
    assert net.plan.total == plain or prove_le(net.plan.total, plain) is Proof.YES
    for arguments in sample.arguments:
        wanted = leaves(evaluate(sample.function, *arguments))
        for got, expected in zip(leaves(net(*arguments)), wanted, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_an_order_with_a_larger_plan_is_not_taken() -> None:
    f = two_towers(tl.dim("rows"))
    made = program(f)
    long, short = lower_program(made), lower_program(memory_order(made).program)
    dims = dims_in(f)
    for strategy in ("auto", "per_shape"):
        options = default_options({"strategy": strategy})
        assert is_smaller(short, long, dims, options)
        assert not is_smaller(long, short, dims, options)
        assert not is_smaller(long, long, dims, options)
    known = program(two_towers(16))
    pair = lower_program(memory_order(known).program), lower_program(known)
    assert is_smaller(*pair, (), default_options({"capacity": 16 * 66 * 4}))


def test_an_order_that_needs_more_at_some_values_is_not_taken() -> None:
    """Powers of two say that `new` needs no more; a multiple of three says otherwise."""
    n = tl.dim("n")

    @tl.kernel
    def new(x: tl.f32[n], y: tl.out[tl.f32[n]]) -> None:
        a = tl.alloc(tl.f32[n + 1])
        for i in range(n):
            a[i + 1] = x[i]
        for i in range(n):
            y[i] = a[n - i]

    @tl.kernel
    def old(x: tl.f32[n], y: tl.out[tl.f32[n]]) -> None:
        a = tl.alloc(tl.f32[3 * ((n + 2) // 3)])
        for i in range(n):
            a[i] = x[i]
        for i in range(n):
            y[i] = a[n - 1 - i]

    totals = [tl.compile(each, schedule=None).plan.total for each in (new, old)]
    (dim,) = dims_of(totals[0])
    assert all(size_at(totals[0], at) <= size_at(totals[1], at) for at in samples([dim], 6))
    assert [size_at(each, {dim: 3}) for each in totals] == [16, 12]
    pair = [SimpleNamespace(func=each.ir) for each in (new, old)]
    assert not is_smaller(*pair, (dim,), default_options({"schedule": None}))
