"""What holds of the static runtime on random graphs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from graph.random_graphs import random_graph

import tirlite as tl
from tirlite.graph import Builder, RuntimeOptions, StaticRuntime, evaluate


def leaves(value):
    return [leaf for each in value for leaf in leaves(each)] if isinstance(value, tuple) else [value]


OPTIONS = [
    RuntimeOptions(copy_views=copy, manage_outputs=outputs, reuse=reuse, plain=plain, debug=debug)
    for copy, outputs, reuse, (plain, debug) in product(
        (False, True), (False, True), (False, True), (((), True), (("exp", "split", "concat"), False))
    )
]


@pytest.mark.parametrize("block", range(8))
def test_every_run_gives_what_the_graph_means(block: int):
    for seed in range(25 * block, 25 * block + 25):
        sample = random_graph(seed, symbolic=seed % 2 == 1)
        wanted = [leaves(evaluate(sample.function, *arguments)) for arguments in sample.arguments]
        for options in OPTIONS[seed % 4 :: 4]:
            runtime = StaticRuntime(sample.function, options)
            for _ in range(2):
                for arguments, arrays in zip(sample.arguments, wanted, strict=True):
                    for a, b in zip(leaves(runtime(*arguments)), arrays, strict=True):
                        assert np.array_equal(a, b, equal_nan=True)
                    runtime.release_outputs()


@pytest.mark.parametrize("block", range(4))
def test_each_managed_value_is_in_one_group_and_no_two_of_a_group_live_together(block: int):
    for seed in range(50 * block, 50 * block + 50):
        sample = random_graph(seed)
        runtime = StaticRuntime(sample.function, RuntimeOptions(copy_views=seed % 3 > 0))
        runtime(*sample.arguments[0])
        for planner in runtime.planners:
            lives = {register.name: live for register, live in planner.ranges.live.items()}
            assert sorted(name for group in planner.groups for name in group) == sorted(lives)
            for group in planner.groups:
                ordered = sorted(lives[name] for name in group)
                assert all(end <= start for (_, end), (start, _) in zip(ordered, ordered[1:], strict=False))
            if planner.plan is not None:
                assert tl.plan.check(planner.plan.problem, planner.plan) == tl.plan.Ok()
                assert planner.managed_bytes % 64 == 0


@pytest.mark.parametrize("block", range(4))
def test_results_are_never_scratch(block: int):
    for seed in range(50 * block, 50 * block + 50):
        sample = random_graph(seed)
        runtime = StaticRuntime(sample.function, RuntimeOptions(copy_views=seed % 2 > 0))
        kept = [leaves(runtime(*arguments)) for arguments in sample.arguments * 2]
        for arrays, arguments in zip(kept, sample.arguments * 2, strict=True):
            for a, b in zip(arrays, leaves(evaluate(sample.function, *arguments)), strict=True):
                assert np.array_equal(a, b, equal_nan=True)


def test_a_thousand_nested_branches_run():
    g = Builder("ladder")
    x, c = g.input("x", tl.f32[4]), g.input("c", tl.bool_)
    y = x
    for _ in range(1000):
        y = g.if_(c, g.add(y, x), g.exp(x))
    runtime = StaticRuntime(g.function(y))
    for _ in range(2):
        assert runtime(np.ones(4, np.float32), True).tolist() == [1001] * 4
