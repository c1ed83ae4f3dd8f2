"""Programs: what is computed where and in which order."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl


def names(block: tl.graph.Block) -> list[str]:
    return [step.op.name for step in block.steps if isinstance(step, tl.graph.Call)]


def test_the_order_is_depth_first_from_left_to_right() -> None:
    g = tl.graph.Builder("order")
    x = g.input("x", tl.f32[4])
    shared = g.exp(x)
    f = g.function(g.add(g.tanh(shared), g.relu(shared)))
    assert names(tl.graph.program(f).body) == ["exp", "tanh", "relu", "add"]


def test_a_branch_holds_what_it_alone_needs() -> None:
    g = tl.graph.Builder("branches")
    x, c = g.input("x", tl.f32[4]), g.input("c", tl.bool_)
    both, left, right = g.exp(x), g.tanh(x), g.sqrt(x)
    choice = g.if_(c, g.add(both, left), g.multiply(both, right))
    f = g.function(choice)
    made = tl.graph.program(f)
    assert names(made.body) == ["exp"]
    assert names(made.branches[choice].then) == ["tanh", "add"]
    assert names(made.branches[choice].other) == ["sqrt", "multiply"]
    values = tl.graph.trace(f, np.ones(4, np.float32), np.bool_(True))
    assert left in values
    assert right not in values


def test_nested_branches_are_computed_where_they_are_needed() -> None:
    g = tl.graph.Builder("nested")
    x, c, d = g.input("x", tl.f32[4]), g.input("c", tl.bool_), g.input("d", tl.bool_)
    used_twice = g.exp(x)
    inner = g.if_(d, used_twice, g.negative(used_twice))
    outer = g.if_(c, inner, x)
    made = tl.graph.program(g.function(outer))
    assert names(made.branches[outer].then) == ["exp"]
    assert names(made.branches[inner].other) == ["negative"]


def test_let_computes_even_what_is_not_used_and_is_seen_through() -> None:
    g = tl.graph.Builder("lets")
    x = g.input("x", tl.f32[4])
    first = g.let("first", g.exp(x))
    g.let("unused", g.tanh(first))
    f = g.function(g.relu(first))
    made = tl.graph.program(f)
    assert names(made.body) == ["exp", "tanh", "relu"]
    assert made.resolved(first) is made.body.steps[0]
    np.testing.assert_allclose(tl.graph.evaluate(f, np.zeros(4, np.float32)), np.ones(4))


def test_a_variable_outside_of_its_let_is_refused() -> None:
    g = tl.graph.Builder("astray")
    x = g.input("x", tl.f32[4])
    var = tl.graph.Var("v", x.type)
    stray = g.add(g.relu(var), tl.graph.Let(var, g.exp(x), var))
    with pytest.raises(tl.GraphError, match="`v` has no value in `astray`"):
        g.function(stray)


def test_functions_are_called_with_their_dims_bound_anew() -> None:
    n, k = tl.dims("n k")
    inner = tl.graph.Builder("double")
    y = inner.input("y", tl.f32[k])
    double = inner.function(inner.add(y, y), primitive=True)
    g = tl.graph.Builder("outer")
    x = g.input("x", tl.f32[n])
    call = g.invoke(double, g.invoke(double, x))
    assert str(call.type) == "f32[n]"
    np.testing.assert_array_equal(tl.graph.evaluate(g.function(call), np.ones(3, np.float32)), np.full(3, 4))


def test_ten_thousand_operators_and_two_thousand_branches_are_no_problem() -> None:
    g = tl.graph.Builder("long")
    x, c = g.input("x", tl.f32[1]), g.input("c", tl.bool_)
    y = x
    for _ in range(10_000):
        y = g.add(y, x)
    for _ in range(2_000):
        y = g.if_(c, g.add(y, x), x)
    assert tl.graph.evaluate(g.function(y), np.ones(1, np.float32), np.bool_(True)) == [12_001]
