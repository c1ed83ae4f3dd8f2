"""Loops of a graph: a step is built once, and a call runs it again and again."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import tirlite as tl

n = tl.dim("n")


def running_sums() -> tl.graph.Function:
    """Rows are added up until they come to 5, or to the limit; the sums of all steps, and how many there were."""
    g = tl.graph.Builder("sums")
    x, limit = g.input("x", tl.f32[n, 3]), g.input("limit", tl.i64)

    def step(number: tl.graph.Expr, going: tl.graph.Expr, carried: list[tl.graph.Expr]) -> tuple[object, ...]:
        total = g.add(carried[0], g.gather(x, number, 0))
        return g.less(g.reduce_sum(total, 0), 5.0), [total], [total]

    steps, (last,), (rows,) = g.loop(step, limit, [g.constant(np.zeros(3, np.float32))], most=n)
    return g.function([last, rows, steps])


def test_a_loop_runs_while_its_steps_say_so() -> None:
    f = running_sums()
    net = tl.graph.compile(f)
    x = np.arange(12, dtype=np.float32).reshape(4, 3) / 6
    for limit in (4, 1, 0):
        for last, rows, steps in (net(x, np.int64(limit)), tl.graph.evaluate(f, x, np.int64(limit))):
            assert steps == min(limit, 3)
            np.testing.assert_allclose(rows[:steps], np.cumsum(x, 0)[:steps], rtol=1e-6)
            np.testing.assert_allclose(last, x[:steps].sum(0), rtol=1e-6)
    small = np.full((2, 3), 0.1, np.float32)
    for run in (net, lambda *given: tl.graph.evaluate(f, *given)):
        with pytest.raises(tl.KernelRunError, match="`loop` makes step 3, and there is room for the results of 2"):
            run(small, np.int64(9))


def test_text_equality_and_copies() -> None:
    assert "loop def loop(number: i64[()], limit: i64[()], going: bool_[()], carried0: f32[3]" in str(running_sums())
    assert tl.graph.structural_equal(running_sums(), running_sums())
    again = pickle.loads(pickle.dumps(running_sums()))
    np.testing.assert_allclose(tl.graph.evaluate(again, np.ones((2, 3), np.float32), np.int64(1))[0], np.ones(3))


def test_a_step_that_changes_a_type_is_refused() -> None:
    g = tl.graph.Builder("grows")
    x = g.input("x", tl.f32[n])
    with pytest.raises(tl.GraphError, match="loop-steps.*makes f32.2.n. of f32.n."):
        g.loop(lambda number, going, carried: (going, [g.concat([x, x], 0)], []), np.int64(3), [x])


def test_extents_change_along_axes_that_are_told_to() -> None:
    """Each step appends a row, and gives it; where there are no steps, what they gave has the shape that is known."""
    g = tl.graph.Builder("grows")
    x, limit = g.input("x", tl.f32[n, 3]), g.input("limit", tl.i64)

    def step(number, going, carried):
        row = g.gather(x, number, 0)
        return going, [g.concat([carried[0], g.unsqueeze(row, 0)], 0)], [row]

    count, (left,), (rows,) = g.loop(step, limit, [x], most=n, changing={0: (0,)})
    f = g.function([count, g.exp(left), rows])
    assert "f32[left, 3]" in str(f)
    net = tl.graph.compile(f)
    for steps in (0, 2):
        found = net(np.ones((2, 3), np.float32), np.int64(steps))
        assert [each.shape for each in found] == [(), (2 + steps, 3), (2, 3)]
        for mine, wanted in zip(found, tl.graph.evaluate(f, np.ones((2, 3), np.float32), np.int64(steps)), strict=True):
            np.testing.assert_allclose(mine, wanted, rtol=1e-6)


def test_other_planners_run_loops() -> None:
    f, x = running_sums(), np.arange(12, dtype=np.float32).reshape(4, 3) / 6
    explicit = tl.graph.explicit_allocation(f)
    coalesced = [tl.graph.StorageCoalesce(strategy)(explicit) for strategy in ("coalesce", "pack")]
    again = tl.graph.Executable.from_json(coalesced[1].to_json())
    assert str(again) == str(coalesced[1])
    for run in (tl.graph.StaticRuntime(f), explicit, *coalesced, again):
        for limit in (4, 1, 0):
            wanted = tl.graph.evaluate(f, x, np.int64(limit))
            for found, each in zip(run(x, np.int64(limit)), wanted, strict=True):
                np.testing.assert_array_equal(found, each)


def test_a_loop_of_a_program_with_explicit_allocation_repeats_a_routine() -> None:
    assert "repeat def loop(constant, limit, constant_1, constant_2, x; 1 carried) -> loop, loop_1, loop_2" in str(
        tl.graph.explicit_allocation(running_sums())
    )


def test_extents_that_steps_find_are_refused_by_name_where_there_is_no_room_for_them() -> None:
    g = tl.graph.Builder("finds")

    def step(number, going, carried):
        count = g.extent(g.reduce_sum(g.cast(g.not_equal(carried[0], 0.0), tl.i64), 0), n, "count")
        last = g.reduce_max(g.nonzero(carried[0], count), [0, 1])
        return going, [g.add(carried[0], g.cast(last, tl.f32))], []

    f = g.function(g.loop(step, np.int64(3), [g.input("x", tl.f32[n])])[1][0])
    x = np.array([0, 1, 2], np.float32)
    assert tl.graph.StaticRuntime(f)(x).tolist() == tl.graph.evaluate(f, x).tolist() == [6, 7, 8]
    with pytest.raises(
        tl.GraphError, match=r"explicit_allocation needs sizes, but the extents of i64\[1, count\] in `loop`"
    ):
        tl.graph.explicit_allocation(f)


def test_an_overrun_is_an_error_of_the_evaluation() -> None:
    f = running_sums()
    for run in (lambda *given: tl.graph.evaluate(f, *given), tl.graph.explicit_allocation(f)):
        with pytest.raises(tl.KernelRunError, match="loop-room"):
            run(np.zeros((1, 3), np.float32), np.int64(2))
