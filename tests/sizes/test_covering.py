"""Sums over many unrelated dims: terms of one sign are covered one by one, and no bound is above any value."""

from __future__ import annotations

from random import Random

import tirlite.plan as plan
from tirlite.plan import Problem, Request
from tirlite.sizes import Dim, Proof, Size, ceildiv, evaluate, maximum, prove_eq, prove_le, round_up
from tirlite.sizes.poly import terms_of
from tirlite.sizes.search import best_lower_bound, covered_minimum

DIMS = tuple(Dim(f"d{number}") for number in range(20))


def slots(count: int) -> list[Size]:
    """Sizes that are maxima of a few dims each; neighbours have dims in common."""
    factors = (3, 2, 8, 1, 4, 6)
    return [
        maximum(
            8 * DIMS[k], *(4 * factor * DIMS[(7 * k + 3 * j) % 20] for j, factor in enumerate(factors[: 2 + k % 5]))
        )
        for k in range(count)
    ]


def test_each_slot_in_a_row_of_many_ends_inside() -> None:
    sizes = slots(14)
    starts: list[Size] = [0]
    for size in sizes:
        starts.append(starts[-1] + round_up(size, 64))
    for number, start in enumerate(starts[:-1]):
        assert prove_le(start + 8 * DIMS[number], starts[-1]) is Proof.YES
        assert prove_le(start + 8 * DIMS[number] + 480 * DIMS[(number + 1) % 20], starts[-1]) is not Proof.YES


def test_the_check_of_a_plan_over_many_dims_finds_its_proofs() -> None:
    rng = Random(5)
    requests = []
    for number in range(40):
        birth = rng.randrange(60)
        size = 4 * rng.choice((1, 2, 6, 24)) * rng.choice(DIMS)
        requests.append(Request(f"r{number}", size, ((birth, birth + rng.randint(1, 20)),)))
    problem = Problem(tuple(requests))
    found = plan.solve(problem, "group")
    assert plan.check(problem, found) == plan.Ok()


def test_hundreds_of_dims_are_no_hindrance() -> None:
    dims = [Dim(f"d{number}") for number in range(200)]
    pieces: Size = 0
    left: Size = 0
    whole: Size = 0
    for dim in dims:
        pieces, left, whole = pieces + 8 * ceildiv(dim, 8), left + dim % 8, whole + dim
    assert prove_le(whole, pieces) is Proof.YES
    assert prove_le(pieces, 8 * whole) is Proof.YES
    assert prove_le(pieces, 8 * whole - 1) is not Proof.YES
    assert prove_eq(left + sum((dim // 8 * 8 for dim in dims), start=0), whole) is Proof.YES


def test_bounds_hold_at_all_values() -> None:
    rng = Random(3)
    found = 0
    for _ in range(40):
        parts = [rng.choice(slots(6)) for _ in range(rng.randint(2, 4))]
        total: Size = rng.randint(-40, 40)
        for part in parts:
            total = total + round_up(part, rng.choice((4, 64)))
        for _ in range(rng.randint(1, 3)):
            total = total - rng.choice((1, 4, 8)) * rng.choice(DIMS[:6])
        terms = terms_of(total)
        for bound in (covered_minimum(terms, lambda pair: best_lower_bound(pair, 0)), best_lower_bound(terms, 0)):
            if bound is None:
                continue
            found += 1
            for _ in range(20):
                binding = {dim: rng.choice((1, 2, 3, 16, 1000)) for dim in DIMS}
                assert evaluate(total, binding) >= bound
    assert found > 5
