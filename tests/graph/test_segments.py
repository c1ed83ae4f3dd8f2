"""Run-time extents that nothing bounds: what has them is planned, and runs, once they are known."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import tirlite as tl
from tirlite.graph import Builder, Function
from tirlite.graph.expr import Expr

n = tl.dim("n")
X = np.array([1, 2, 3], np.float32)


def steps(g: Builder, count: Expr) -> Expr:
    """0, 1, 2 ... as many as a run finds."""
    return g.range(g.constant(np.int64(0)), g.constant(np.int64(1)), g.extent(count, None, "k"))


def table() -> Function:
    """The sums of each element of x and each number below k + 1."""
    g = Builder("table")
    x, k = g.input("x", tl.f32[n]), g.input("k", tl.i64)
    row = g.multiply(g.cast(steps(g, g.add(k, 1)), tl.f32), g.reduce_sum(x, 0))
    sums = g.add(g.unsqueeze(g.exp(x), 1), g.unsqueeze(row, 0))
    return g.function({"row": row, "sums": g.relu(g.negative(sums)), "exp": g.exp(x)})


def same(f: Function, net: tl.graph.CompiledGraph, *arrays: Any) -> Any:
    """The result, which code, interpreter and reference agree on."""
    wanted = tl.graph.evaluate(f, *arrays)
    for found in (net(*arrays), net.interpret(*arrays)):
        for a, b in zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]:
            np.testing.assert_allclose(a, b, rtol=1e-6)
            assert np.shape(a) == np.shape(b)
    return wanted


def test_what_stands_behind_such_an_extent_is_planned_when_it_is_found() -> None:
    f = table()
    assert "    k = v0  # from 0 on" in str(f)
    net = tl.graph.compile(f, fuse=False)
    assert len(net.parts) == 2
    for count in (4, 0, -1):
        same(f, net, X, np.int64(count))
    before, behind = net.plans(x=X, k=np.int64(99))
    assert behind.total == behind.lower_bound >= 3 * 100 * 4
    with pytest.raises(tl.KernelRunError, match="the extent k was found to be -1, and must be at least 0"):
        net(X, np.int64(-2))
    with pytest.raises(tl.KernelRunError, match="the extent k was found to be -1, and must be at least 0"):
        tl.graph.evaluate(f, X, np.int64(-2))


def test_a_graph_in_parts_is_used_as_any_other_but_has_no_one_plan() -> None:
    f = table()
    net = tl.graph.compile(f, keep="all")
    kept = {each.type: value for each, value in net.trace(X, np.int64(1)).items() if isinstance(value, np.ndarray)}
    assert any(value.shape == (3, 2) for value in kept.values())
    again = pickle.loads(pickle.dumps(net))
    np.testing.assert_array_equal(again(k=np.int64(2), x=X)[0], [0, 6, 12])
    for ask in (lambda: net.plan, lambda: net.lowered, lambda: net.groups, lambda: net.export("folder")):
        with pytest.raises(tl.GraphError, match=r"`table` is compiled in parts \(2\)"):
            ask()
    with pytest.raises(tl.CallTypeError, match="bad-graph-out"):
        net(X, np.int64(1), out=X)
    with pytest.raises(tl.GraphError, match="the extent k is known only at run time"):
        tl.graph.memory_problem(f)


def test_an_extent_may_follow_from_values_of_another_one() -> None:
    g = Builder("twice")
    first = steps(g, g.input("k", tl.i64))
    second = steps(g, g.add(g.reduce_sum(first, 0), 1))
    known = g.extent(g.reduce_sum(first, 0), first.shape[0], "few")
    chosen = g.slice(first, [0], [known])
    f = g.function([second, g.add(g.unsqueeze(first, 1), g.unsqueeze(second, 0)), chosen])
    net = tl.graph.compile(f)
    assert len(net.parts) == 2
    assert [each.shape for each in same(f, net, np.int64(2))] == [(2,), (2, 2), (1,)]
    with pytest.raises(tl.KernelRunError, match="the extent few was found to be 6, and must be from 0 to 4"):
        net(np.int64(4))


def test_of_a_branch_that_finds_extents_only_the_one_taken_runs() -> None:
    g = Builder("branch")
    x, k = g.input("x", tl.f32[n]), g.input("k", tl.i64)
    shared = g.exp(x)
    then = g.add(g.reduce_sum(g.cast(steps(g, g.negative(k)), tl.f32), 0), shared)
    f = g.function([g.if_(g.less(g.reduce_sum(x, 0), 9.0), then, g.negative(shared)), shared])
    net = tl.graph.compile(f)
    same(f, net, X, np.int64(-4))
    # Here the count is no extent, and nobody asks.
    same(f, net, 3 * X, np.int64(4))
    with pytest.raises(tl.KernelRunError, match="must be at least 0"):
        net(X, np.int64(4))


def test_steps_of_a_loop_may_find_extents() -> None:
    g = Builder("loop")
    x, limit = g.input("x", tl.f32[n]), g.input("limit", tl.i64)

    def step(number: Expr, going: Expr, carried: list[Expr]) -> tuple[Expr, list[Expr], list[Expr]]:
        total = g.reduce_sum(g.cast(steps(g, number), tl.f32), 0)
        return g.constant(np.array(True)), [g.add(carried[0], total)], [total]

    count, (after,), (totals,) = g.loop(step, limit, [x], most=g.extent(limit, None, "limit"))
    f = g.function([count, after, totals])
    net = tl.graph.compile(f)
    for times in (5, 1, 0):
        same(f, net, X, np.int64(times))


def test_functions_and_names_of_values_are_seen_through() -> None:
    inner = Builder("inner")
    total = inner.reduce_sum(steps(inner, inner.input("k", tl.i64)), 0)
    called = inner.function(total)
    g = Builder("outer")
    k = g.let("named", g.add(g.input("k", tl.i64), 1))
    f = g.function([g.invoke(called, k), g.add(steps(g, k), g.invoke(called, k))])
    net = tl.graph.compile(f)
    assert same(f, net, np.int64(3))[0] == 6
