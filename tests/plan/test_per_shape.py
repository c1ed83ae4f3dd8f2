"""Plans made anew for each binding: safe, at the lower bound, the same whatever was asked before, and kept."""

from __future__ import annotations

from random import Random

import pytest

import tirlite as tl
from tirlite.plan import (
    Counterexample,
    PerShape,
    Plan,
    Pool,
    Problem,
    Request,
    check,
    lower_bound,
    offset_evaluator,
    solve,
)
from tirlite.plan.shape.formulas import Conditions, evaluator, formulas, rows_of
from tirlite.sizes import Dim, Size, ceildiv, evaluate, maximum, minimum

n, m = Dim("n"), Dim("m")


def random_problem(seed: int, count: int = 24, align: int = 1) -> Problem:
    draw = Random(seed)
    sizes: list[Size] = [4 * n, 4 * m, 4 * n * m, 8 * n + 64, 16 * ceildiv(m, 3), maximum(4 * n, 12 * m), n + 0, 512]
    requests = []
    for number in range(count):
        low = draw.randrange(count)
        requests.append(Request(f"r{number}", draw.choice(sizes), (low, low + 1 + draw.randrange(5)), align=align))
    return Problem(tuple(requests))


def test_what_conflicts_at_one_binding_is_stacked_and_another_binding_gets_another_plan():
    problem = Problem((Request("a", 4 * n, (0, 2)), Request("b", 4 * m, (1, 3)), Request("c", 4 * n, (2, 4))))
    shapes = PerShape(problem)
    wide, tall = shapes.plan_at({n: 100, m: 1}), shapes.plan_at({n: 1, m: 100})
    assert (wide.total, tall.total) == (404, 404)
    assert (wide.gap, tall.gap) == (0.0, 0.0)
    assert wide.strategy == "per_shape"
    # No one plan for all values does as well everywhere.
    assert wide.total <= solve(problem).at({n: 100, m: 1}).total


@pytest.mark.parametrize("seed", range(6))
def test_plans_are_checked_and_at_the_lower_bound(seed: int):
    problem = random_problem(seed)
    shapes = PerShape(problem)
    for binding in ({n: 1, m: 1}, {n: 7, m: 1000}, {n: 1000, m: 7}, {n: 64, m: 64}):
        plan = shapes.plan_at(binding)
        assert check(problem.at(binding), plan)
        assert plan.total == lower_bound(problem.at(binding))


@pytest.mark.parametrize("seed", range(4))
def test_alignment_is_kept_and_costs_less_than_a_percent_where_sizes_are_large(seed: int):
    problem = random_problem(seed, align=64)
    plan = PerShape(problem).plan_at({n: 1001, m: 777})
    assert all(place.offset % 64 == 0 for place in plan.placements.values())
    assert plan.gap < 0.01


def test_the_same_binding_has_the_same_plan_whatever_was_asked_before():
    problem = random_problem(3, align=64)
    bindings = [(1, 1), (5, 900), (900, 5), (33, 34), (2, 3)]
    forward, backward = PerShape(problem), PerShape(problem)
    told = {values: forward.entries_at(values) for values in bindings}
    assert told == {values: backward.entries_at(values) for values in reversed(bindings)}


def test_a_plan_that_is_known_is_not_made_again():
    shapes = PerShape(random_problem(0))
    first = shapes.entries_at((4, 4))
    assert shapes.entries_at((4, 4)) is first
    shapes.entries_at((4, 5))
    assert (shapes.kept.hits, shapes.kept.misses, shapes.kept.plans) == (1, 2, 2)


def test_buffers_of_no_bytes_share_with_anyone():
    k = Dim("k", min=0)
    shapes = PerShape(Problem((Request("a", 4 * k, (0, 2)), Request("b", 4 * k + 8, (0, 3)), Request("c", 8, (1, 2)))))
    assert [shapes.plan_at({k: value}).total for value in (0, 1, 10)] == [16, 24, 96]


def test_pairs_of_one_size_are_taken_in_place():
    requests = (Request("x", 8 * n, (0, 3)), Request("y", 8 * n, (2, 5)), Request("z", 4 * n, (4, 6)))
    shapes = PerShape(Problem(requests, in_place=(("y", "x"), ("z", "y"))))
    assert shapes.in_place == (("y", "x"),)
    assert shapes.places == (("x", "y"), ("z",))
    plan = shapes.plan_at({n: 10})
    assert (plan.total, plan.placements["x"], plan.in_place) == (120, plan.placements["y"], (("y", "x"),))


def test_memories_of_constant_sizes_are_planned_once():
    pools = (Pool("sram", capacity=128), Pool("dram"))
    requests = (
        Request("a", 64, (0, 2), pools=("sram",)),
        Request("b", 64, (1, 3), pools=("sram",)),
        Request("c", 4 * n, (0, 2), pools=("dram",)),
        Request("d", 4 * m, (2, 3), pools=("dram",)),
    )
    shapes = PerShape(Problem(requests, pools))
    assert (shapes.arenas, set(shapes.constant.placements)) == (("dram",), {"a", "b"})
    assert shapes.plan_at({n: 10, m: 20}).total == 128 + 80


def test_a_memory_that_is_too_small_at_a_binding_is_told():
    shapes = PerShape(
        Problem((Request("a", 4 * n, (0, 2)), Request("b", 4 * n, (1, 3))), (Pool("global", capacity=80),))
    )
    assert shapes.plan_at({n: 10}).total == 80
    with pytest.raises(tl.CapacityError, match="holds 80 bytes"):
        shapes.plan_at({n: 11})


def test_fixed_offsets_stay():
    shapes = PerShape(Problem((Request("a", 4 * n, (0, 2), fixed=16), Request("b", 4 * n, (0, 2)))))
    plan = shapes.plan_at({n: 4})
    assert (plan.placements["a"].offset, plan.placements["b"].offset, plan.total) == (16, 0, 32)


def test_values_are_asked_for():
    problem = random_problem(1)
    with pytest.raises(tl.PlanError, match="needs a value for `m`") as caught:
        PerShape(problem).plan_at({n: 4})
    assert caught.value.code == "shape-without-value"
    with pytest.raises(tl.PlanError, match="for each value of `m`, `n`, and is given none") as caught:
        solve(problem, "per_shape")
    assert caught.value.code == "many-shapes"
    assert solve(problem.at({n: 4, m: 5}), "per_shape").strategy == "per_shape"


def test_a_plan_that_does_not_hold_never_leaves(monkeypatch: pytest.MonkeyPatch):
    from tirlite.plan.shape.arena import ShapeArena

    shapes = PerShape(Problem((Request("a", 4 * n, (0, 2)), Request("b", 4 * n, (1, 3)))))
    monkeypatch.setattr(ShapeArena, "packed", lambda self, sizes: ([0, 4], sum(sizes)))
    with pytest.raises(tl.InternalError, match="share bytes: 4 < 40") as caught:
        shapes.entries_at((10,))
    assert caught.value.code == "unsafe-shape"


def test_conditions_find_each_kind_of_mistake():
    kept = Conditions((-1, 0, 0), (1, 8, 8), ((1, 2),))
    sizes = (0, 16, 8)
    assert kept.fault((24, 0, 16), sizes) == ""
    assert kept.fault((24, 8, 0), sizes) == ""
    assert "share bytes" in kept.fault((24, 0, 8), sizes)
    assert "share bytes" in kept.fault((24, 0, 0), sizes)
    assert kept.fault((24, 0, 8), (0, 0, 8)) == ""
    assert "multiple of 8" in kept.fault((28, 0, 20), sizes)
    assert "multiple of 8" in kept.fault((24, -8, 16), sizes)
    assert "its arena has 20 bytes" in kept.fault((20, 0, 16), sizes)
    assert "2 entries" in kept.fault((24, 0), sizes)


def test_conditions_and_check_agree_on_random_places():
    draw = Random(7)
    for seed in range(200):
        problem = random_problem(seed, 6).at({n: 3, m: 2})
        lives = [request.live for request in problem.requests]
        sizes = (0, *(int(request.size) for request in problem.requests))
        offsets = [draw.randrange(8) * 16 for _ in problem.requests]
        total = max(offset + size for offset, size in zip(offsets, sizes[1:], strict=True))
        rows = tuple(tuple(number + 1 for number in row) for row in rows_of(lives))
        kept = Conditions((-1, *[0] * len(offsets)), (1,) * len(sizes), rows)
        plan = Plan.of(problem, {r.id: ("global", offset) for r, offset in zip(problem.requests, offsets, strict=True)})
        assert isinstance(check(problem, plan), Counterexample) == bool(kept.fault((total, *offsets), sizes))


def test_rows_are_the_largest_sets_that_live_together():
    assert rows_of([((0, 2),), ((1, 4),), ((3, 5),), ((4, 6), (0, 1))]) == [(0, 3), (0, 1), (1, 2), (2, 3)]
    assert rows_of([]) == []


def test_formulas_compute_each_part_once():
    sizes: list[Size] = [4 * n, 4 * n + 8, maximum(4 * n, m + 1), ceildiv(n, 3), minimum(n, m) % 5, 7]
    made = formulas(sizes, (n, m))
    assert made.lines[0] == "v0 = 4*d0"
    assert made.results[0] == "v0"
    assert made.results[-1] == "7"
    values = evaluator(sizes, (n, m))
    for binding in ((1, 1), (10, 3), (1 << 70, 5)):
        named = dict(zip((n, m), binding, strict=True))
        assert values(binding) == tuple(evaluate(size, named) for size in sizes)


def test_a_division_by_zero_is_told_as_ever():
    k = Dim("k", min=0)
    with pytest.raises(tl.KernelError) as caught:
        evaluator([n // (k + 0)], (n, k))((4, 0))
    assert caught.value.code == "size-division-by-zero"


def test_offsets_of_one_plan_at_many_bindings():
    problem = random_problem(2, align=64)
    made = solve(problem)
    offsets_at = offset_evaluator(made)
    for binding in ({n: 1, m: 1}, {n: 10, m: 700}, {n: 4096, m: 3}):
        bound = made.at(binding)
        expected = tuple(bound.placements[request.id].offset for request in problem.requests)
        assert offsets_at(tuple(binding[dim] for dim in problem.dims)) == expected


def test_padding_between_an_odd_size_and_aligned_ones_is_avoided():
    whole = [Request(f"w{k}", 64 * n, (k, k + 2), align=64) for k in range(6)]
    odd = [Request(f"o{k}", 4 * n * n, (k, k + 3), align=4) for k in range(0, 6, 3)]
    plans = PerShape(Problem((*odd, *whole)))
    for value in (1, 3, 7, 33, 101):
        plan = plans.plan_at({n: value})
        assert plan.total == plan.lower_bound


@pytest.mark.parametrize("value", [1, 3, 8, 10])
def test_places_lie_at_lines_as_far_as_that_costs_no_bytes(value: int):
    requests = tuple(Request(f"r{k}", 24 * n if k % 2 else 40 * n, (k, k + 3), align=4) for k in range(5))
    plan = PerShape(Problem(requests), line=64).plan_at({n: value})
    assert plan.total == plan.lower_bound
    # 8 divides all sizes, and whatever divides the value does so too.
    step = min(64, 8 * (value & -value))
    assert all(place.offset % step == 0 for place in plan.placements.values())
