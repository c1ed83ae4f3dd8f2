"""Run-time extents: storage for the most there can be, one plan, results of the size that was found."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import tirlite as tl
from tirlite.graph.run_dims import most

n = tl.dim("n")


def positive() -> tl.graph.Function:
    """The positive elements of a matrix, doubled, and where they stand."""
    g = tl.graph.Builder("positive")
    x = g.input("x", tl.f32[n, 3])
    is_positive = g.greater(x, 0.0)
    count = g.reduce_sum(g.reshape(g.cast(is_positive, tl.i64), (3 * n,)), 0)
    places = g.nonzero(is_positive, g.extent(count, 3 * n, "count"))
    values = g.gather_nd(x, g.transpose(places, (1, 0)))
    return g.function({"values": g.add(values, values), "places": places})


def test_results_have_the_extents_that_the_run_found() -> None:
    f = positive()
    net = tl.graph.compile(f)
    for rows in (4, 1, 0):
        x = np.random.default_rng(rows).standard_normal((rows, 3)).astype(np.float32)
        for values, places in (net(x), tl.graph.evaluate(f, x), net.interpret(x)):
            np.testing.assert_array_equal(values, 2 * x[x > 0])
            np.testing.assert_array_equal(places, np.nonzero(x > 0))
    values, places = net(np.full((2, 3), -1, np.float32))
    assert (values.shape, places.shape) == ((0,), (2, 0))


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3, 2)])
def test_nothing_is_found_in_an_operand_without_elements(shape: tuple[int, ...]) -> None:
    g = tl.graph.Builder("nothing")
    x = g.input("x", tl.f32[shape])
    f = g.function(g.nonzero(x, g.extent(g.reduce_sum(g.cast(x, tl.i64)), 0, "count")))
    assert tl.graph.compile(f)(np.zeros(shape, np.float32)).shape == (len(shape), 0)


def test_storage_is_planned_for_the_most_there_can_be() -> None:
    plan = tl.graph.compile(positive()).plan
    assert [str(dim) for dim in plan.problem.dims] == ["n"]
    assert plan.at({n: 10}).total == plan.at({n: 10}).lower_bound
    problem = tl.graph.memory_problem(positive())
    assert {str(each.size) for each in problem.requests if each.id.startswith("gather_nd")} == {"12*n"}


def test_text_and_equality_tell_what_an_extent_is() -> None:
    assert "    count = v3  # from 0 to 3*n" in str(positive())
    assert tl.graph.structural_equal(positive(), positive())
    again = pickle.loads(pickle.dumps(positive()))
    x = np.array([[1, -1, 2]], np.float32)
    np.testing.assert_array_equal(tl.graph.evaluate(again, x)[0], [2, 4])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(tl.graph.compile(positive())))(x)[0], [2, 4])


def test_an_extent_beyond_the_most_stops_the_run() -> None:
    g = tl.graph.Builder("ones")
    f = g.function(g.broadcast_to(g.constant(np.float32(1)), (g.extent(g.input("count", tl.i64), 4, "count"),)))
    net = tl.graph.compile(f)
    for count in (0, 4):
        for result in (net(np.int64(count)), tl.graph.evaluate(f, np.int64(count))):
            np.testing.assert_array_equal(result, np.ones(count, np.float32))
    with pytest.raises(tl.KernelRunError, match="extent-outside"):
        tl.graph.evaluate(f, np.int64(5))
    for count in (5, -1, 2**62):
        for run in (net, lambda *given: tl.graph.evaluate(f, *given)):
            with pytest.raises(tl.KernelRunError, match=f"count was found to be {count}, and must be from 0 to 4"):
                run(np.int64(count))


def test_an_operator_that_is_told_another_number_stops_the_run() -> None:
    g = tl.graph.Builder("wrong")
    x, count = g.input("x", tl.f32[4]), g.input("count", tl.i64)
    f = g.function(g.nonzero(x, g.extent(count, 4, "count")))
    for told in (1, 3):
        for run in (tl.graph.compile(f), lambda *given: tl.graph.evaluate(f, *given)):
            with pytest.raises(tl.KernelRunError, match="elements are not zero"):
                run(np.array([1, 0, 2, 0], np.float32), np.int64(told))


def test_more_of_an_extent_that_the_run_finds_than_there_are_stops_it() -> None:
    g = tl.graph.Builder("few")
    x = g.input("x", tl.f32[n])
    is_positive = g.greater(x, g.constant(np.float32(0)))
    count = g.reduce_sum(g.cast(is_positive, tl.i64))
    places = g.nonzero(is_positive, g.extent(count, n, "count"))
    f = g.function(g.topk(g.reshape(places, (places.shape[1],)), 2)[0])
    net = tl.graph.compile(f)
    np.testing.assert_array_equal(net(np.array([1, 0, 2], np.float32)), [2, 0])
    for run in (net, lambda *given: tl.graph.evaluate(f, *given)):
        with pytest.raises(tl.KernelRunError, match="2 elements are asked for along an axis of 1"):
            run(np.array([0, 0, 2], np.float32))


def test_extents_of_extents() -> None:
    """Of the positive elements those above 1: an extent of which the most is another extent's."""
    g = tl.graph.Builder("twice")
    x = g.input("x", tl.f32[n])
    found = x
    for limit, name in ((0.0, "first"), (1.0, "second")):
        above = g.greater(found, limit)
        count = g.extent(g.reduce_sum(g.cast(above, tl.i64), 0), found.shape[0], name)
        found = g.gather(found, g.reshape(g.nonzero(above, count), (count,)), 0)
    f = g.function(g.concat([found, x, found], 0))
    assert str(f.result) == "f32[2*second + n]"
    net = tl.graph.compile(f, order="memory", keep="all")
    for x_ in (np.array([2, -1, 0.5, 3], np.float32), np.array([-2], np.float32)):
        wanted = np.concatenate([x_[x_ > 1], x_, x_[x_ > 1]])
        for result in (net(x_), tl.graph.evaluate(f, x_), net.trace(x_)[f.body]):
            np.testing.assert_array_equal(result, wanted)


def test_the_most_of_a_size() -> None:
    g = tl.graph.Builder("sizes")
    k = g.extent(g.input("k", tl.i64), 3 * n, "k")
    m = g.extent(g.input("m", tl.i64), 7, "m", least=2)
    assert [str(most(size)) for size in (k + n, k * m, (k + 1) // 2, n - m + 7, k // 4 * 4)] == [
        "4*n",
        "21*n",
        "(n + 1)//2 + n",
        "n + 5",
        "4*((3*n)//4)",
    ]
    with pytest.raises(tl.GraphError, match="unbounded-extent.*is known only at run time and has no bound"):
        most(8 * k // m)


def test_what_takes_known_sizes_refuses_by_name() -> None:
    f = positive()
    with pytest.raises(tl.GraphError, match="extents-of-run.*StaticRuntime needs sizes"):
        tl.graph.StaticRuntime(f)
    with pytest.raises(tl.GraphError, match="explicit_allocation needs sizes"):
        tl.graph.explicit_allocation(f)
    g = tl.graph.Builder("outer")
    with pytest.raises(tl.GraphError, match="run-dim-of-function.*with an extent known only at run time"):
        g.invoke(f, g.input("y", tl.f32[n, 3]))
    with pytest.raises(tl.GraphError, match="no-extent.*is not an extent"):
        g.extent(g.input("z", tl.f32[()]), 4)


def test_products_of_matrices_that_may_have_no_rows() -> None:
    rows = tl.dim("rows", min=0)
    g = tl.graph.Builder("gram")
    x = g.input("x", tl.f32[rows, 5])
    net = tl.graph.compile(g.function(g.matmul(x, g.transpose(x, (1, 0)))))
    for count in (0, 1, 37):
        given = np.random.default_rng(count).standard_normal((count, 5)).astype(np.float32)
        np.testing.assert_allclose(net(given), given @ given.T, atol=1e-5)
