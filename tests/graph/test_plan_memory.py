"""GraphPlanMemory: the figures that its rules determine, on small graphs, and what holds on all."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest
from graph.random_graphs import random_graph
from graph.replay import replay
from random_cases import groups

import tirlite as tl
from tirlite.graph import Builder, Function, plan_memory


def ids(plan: tl.graph.MemoryPlan, *exprs: tl.graph.Expr) -> list[int]:
    return [number for expr in exprs for number in plan.storage_ids[expr]]


def test_a_chain_takes_turns_in_two_storages() -> None:
    g = Builder("chain")
    x = g.input("x", tl.f32[4, 4])
    a = g.exp(x)
    b = g.tanh(a)
    c = g.exp(b)
    d = g.tanh(c)
    plan = plan_memory(g.function(d))
    # A call's result is placed before its operands are released, so a neighbour never shares.
    assert ids(plan, x, a, b, c, d) == [0, 1, 2, 1, 2]
    assert plan.sizes == (64, 64, 64)
    assert plan.total == 192


def test_each_use_counts() -> None:
    g = Builder("uses")
    x = g.input("x", tl.f32[4])
    a = g.exp(x)
    b = g.add(a, a)
    c = g.tanh(b)
    d = g.add(c, a)
    plan = plan_memory(g.function(d))
    assert ids(plan, a, b, c, d) == [1, 2, 3, 2]


def test_parameters_and_constants_are_never_reused() -> None:
    g = Builder("pinned")
    x, w = g.input("x", tl.f32[64]), g.constant([1.0] * 64, tl.f32)
    a = g.add(x, w)
    b = g.exp(a)
    c = g.tanh(b)
    plan = plan_memory(g.function(c))
    assert ids(plan, x, w, a, b, c) == [0, 1, 2, 3, 2]


def test_a_result_is_kept_even_if_it_is_used_again() -> None:
    g = Builder("results")
    x = g.input("x", tl.f32[4])
    a = g.exp(x)
    b = g.tanh(a)
    c = g.exp(b)
    plan = plan_memory(g.function([a, c]))
    assert ids(plan, a, b, c) == [1, 2, 3]


def test_an_output_that_nobody_uses_is_free_at_once() -> None:
    g = Builder("orphan")
    x = g.input("x", tl.f32[8])
    first, second = g.split(x, 2)
    after = g.exp(first)
    plan = plan_memory(g.function(after))
    call = first.value
    assert plan.storage_ids[call] == (1, 2)
    assert ids(plan, first, after) == [1, 2]
    assert second not in plan.storage_ids


def test_the_window_is_sixteen_wide_on_both_sides() -> None:
    def second(first: int, last: int) -> int:
        """The storage of a tensor of `last` bytes when one of `first` bytes, number 2, has become free."""
        g = Builder("window")
        x, y = g.input("x", tl.u8[first]), g.input("y", tl.u8[last])
        free = g.reduce_sum(g.abs(x), keepdims=True)
        result = g.negative(y)
        plan = plan_memory(g.function(g.tuple(free, result)))
        return plan.storage_ids[result][0]

    assert second(1600, 100) == 2
    assert second(1601, 100) != 2
    assert second(100, 1600) == 2
    assert second(99, 1600) != 2


def test_a_larger_storage_is_taken_before_a_smaller_one_which_grows() -> None:
    g = Builder("growth")
    x = g.input("x", tl.u8[1])
    small, large = g.broadcast_to(x, [90]), g.broadcast_to(x, [110])
    both = g.concat([small, large])
    fits, grows = g.broadcast_to(x, [100]), g.broadcast_to(x, [120])
    plan = plan_memory(g.function([both, fits, grows]))
    assert ids(plan, x, small, large, both, fits, grows) == [0, 1, 2, 3, 2, 1]
    assert plan.sizes == (1, 120, 110, 200)


def test_match_range_zero_turns_reuse_off() -> None:
    g = Builder("off")
    x = g.input("x", tl.f32[4])
    y = g.exp(g.exp(g.exp(x)))
    plan = plan_memory(g.function(y), match_range=0)
    assert plan.sizes == (16,) * 4


@pytest.mark.parametrize("match_range", [-1, 2.5, None, True])
def test_a_match_range_is_a_count(match_range: object) -> None:
    g = Builder("f")
    x = g.input("x", tl.f32[4])
    with pytest.raises(tl.CallTypeError, match="`match_range` takes a whole number"):
        plan_memory(g.function(x), match_range=match_range)  # type: ignore[arg-type]


def test_a_storage_stays_on_its_device() -> None:
    g = Builder("devices")
    with g.on(1):
        x = g.input("x", tl.f32[4])
        a = g.exp(x)
    with g.on(2):
        b = g.exp(a)
        c = g.tanh(b)
    with g.on(1):
        d = g.exp(c)
    with g.on(2):
        e = g.exp(d)
    plan = plan_memory(g.function(e))
    assert ids(plan, x, a, b, c, d, e) == [0, 1, 2, 3, 1, 2]
    assert [plan.device_types[expr] for expr in (x, a, b, c, d, e)] == [(1,), (1,), (2,), (2,), (1,), (2,)]


def test_some_devices_are_an_error_with_counts() -> None:
    g = Builder("some")
    x = g.input("x", tl.f32[4])
    with g.on(2):
        y = g.exp(x)
    with pytest.raises(tl.GraphError, match="1 out of 3 expressions") as caught:
        plan_memory(g.function(g.exp(y)))
    assert caught.value.code == "partly-annotated"


def test_lets_tuples_and_projections_are_aliases() -> None:
    g = Builder("aliases")
    x = g.input("x", tl.f32[4])
    a = g.let("a", g.exp(x))
    pair = g.tuple(a, x)
    first = g.item(pair, 0)
    result = g.tanh(first)
    f = g.function(result)
    plan = plan_memory(f)
    assert plan.storage_ids[pair] == (1, 0)
    assert ids(plan, a, first) == [1, 1]
    assert plan.storage_ids[f.body] == plan.storage_ids[result] == (2,)


def test_nested_functions_are_not_entered() -> None:
    inner = Builder("inner")
    p = inner.input("p", tl.f32[4])
    hidden = inner.exp(inner.exp(p))
    function = inner.function(hidden, primitive=True)
    g = Builder("outer")
    x = g.input("x", tl.f32[4])
    call = g.invoke(function, x)
    plan = plan_memory(g.function(call))
    assert hidden not in plan.storage_ids
    assert plan.sizes == (16, 16)


def test_a_negative_extent_is_an_error() -> None:
    x = tl.graph.Var("x", tl.graph.TensorType((-2, 3), tl.f32))
    with pytest.raises(tl.GraphError) as caught:
        plan_memory(Function("bad", (x,), x))
    assert caught.value.code == "negative-graph-extent"


def test_branches_exclude_each_other() -> None:
    g = Builder("branches")
    x, c = g.input("x", tl.f32[4]), g.input("c", tl.bool_)
    a = g.exp(x)
    then = [g.tanh(a)]
    then.append(g.exp(then[0]))
    other = [g.relu(a)]
    other.append(g.abs(other[0]))
    result = g.if_(c, then[-1], other[-1])
    plan = plan_memory(g.function(result))
    # The result is made where the last step of either branch is, and takes the storage of what died before on both.
    assert ids(plan, x, c, a, result) == [0, 1, 2, 2]
    assert ids(plan, *then) == ids(plan, *other) == [3, 2]
    assert len(plan.sizes) == 4


def test_what_one_branch_alone_needs_is_free_in_the_other() -> None:
    g = Builder("one_sided")
    x, c = g.input("x", tl.f32[4]), g.input("c", tl.bool_)
    a, b = g.let("a", g.exp(x)), g.let("b", g.tanh(x))
    then, other = g.negative(a), g.negative(b)
    result = g.if_(c, g.relu(then), g.relu(other))
    plan = plan_memory(g.function(result))
    assert ids(plan, x, c, a, b, result) == [0, 1, 2, 3, 2]
    assert ids(plan, then) == ids(plan, b)
    assert ids(plan, other) == [4]
    assert len(plan.sizes) == 5


def test_a_thousand_nested_branches_take_four_storages() -> None:
    g = Builder("ladder")
    x, c = g.input("x", tl.f32[64]), g.input("c", tl.bool_)
    y = x
    for _ in range(1000):
        y = g.if_(c, g.add(y, x), g.exp(x))
    assert plan_memory(g.function(y)).sizes == (256, 1, 256, 256)


def test_the_result_of_a_branch_that_comes_from_outside_is_copied() -> None:
    g = Builder("copied")
    x, c = g.input("x", tl.f32[4]), g.input("c", tl.bool_)
    result = g.if_(c, x, g.exp(x))
    plan = plan_memory(g.function(result))
    assert ids(plan, x, c, result) == [0, 1, 2]
    assert ids(plan, result.other) == [2]


def test_symbolic_sizes_share_by_proof_and_grow_to_the_maximum() -> None:
    n, m = tl.dim("n", min=4), tl.dim("m")
    g = Builder("symbolic")
    x, y = g.input("x", tl.f32[n]), g.input("y", tl.f32[m])
    wide = g.broadcast_to(g.reduce_sum(x), [n, 4])
    back = g.exp(x)
    again = g.tanh(back)
    other = g.exp(y)
    plan = plan_memory(g.function([g.reduce_sum(wide), g.reduce_sum(again), other]))
    assert len(plan.sizes) < 8
    assert tl.plan.check(plan.problem, plan.plan) == tl.plan.Ok()
    assert plan.total == sum(plan.sizes)


@pytest.mark.parametrize("block", groups(20))
def test_every_tensor_of_a_thousand_graphs_is_there_when_it_is_read(block: int) -> None:
    for seed in range(50 * block, 50 * block + 50):
        function = random_graph(seed, symbolic=seed % 5 == 4).function
        memory = plan_memory(function)
        ours = memory.plan
        assert tl.plan.check(ours.problem, ours) == tl.plan.Ok()
        for at in bound(ours):
            packed = tl.plan.solve(at.problem, "pack")
            assert at.lower_bound <= packed.total <= at.total
            for plan, choices in product((at, packed), (1, 2)):
                random = Random(choices)
                replay(function, plan, lambda random=random: random.random() < 0.5)


@pytest.mark.parametrize("block", groups(20))
def test_views_and_results_in_place_are_there_when_they_are_read(block: int) -> None:
    for seed in range(50 * block, 50 * block + 50):
        function = random_graph(seed).function
        raw = tl.graph.memory_problem(function)
        problem = tl.graph.memory_problem(function, views=True, in_place=True)
        plan = tl.plan.solve(problem, "pack")
        assert plan.lower_bound <= tl.plan.lower_bound(raw)
        for choices in (1, 2):
            random = Random(choices)
            replay(function, plan, lambda random=random: random.random() < 0.5, views=True)


def bound(plan: tl.plan.Plan) -> list[tl.plan.Plan]:
    """The plan with numbers for its dims."""
    if not plan.problem.dims:
        return [plan]
    return [tl.plan.Plan.from_layout(plan.at(dict.fromkeys(plan.problem.dims, value))) for value in (2, 9)]


def test_views_and_elementwise_operators_cost_nothing() -> None:
    n = tl.dim("n")
    g = Builder("free")
    x = g.input("x", tl.f32[n, 6])
    y = g.relu(g.reshape(g.exp(g.matmul(x, np.eye(6, dtype=np.float32))), [2, -1]))
    f = g.function(g.add(g.flatten(y, 0), g.reshape(g.tanh(y), [1, -1])))
    totals = [
        tl.plan.solve(tl.graph.memory_problem(f, views=views, in_place=in_place), "pack").total
        for views, in_place in ((False, False), (True, False), (True, True))
    ]
    # Beside the input and the matrix, the product and all that is behind it takes two tensors at last.
    assert [str(total) for total in totals] == ["96*n + 144", "96*n + 144", "72*n + 144"]


def test_a_parameter_may_have_the_name_that_a_part_of_a_tuple_would_have() -> None:
    g = Builder("clash")
    left, right = g.split(g.input("split.0", tl.f32[4, 8]), 2, axis=1)
    problem = plan_memory(g.function(g.add(left, right))).problem
    assert [request.id for request in problem.requests] == ["split.0", "split.0_1", "split.1", "add"]
