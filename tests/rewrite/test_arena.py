"""Plans whose pools are arenas: several buffers live in one allocation at the same time, at different offsets."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.plan import Plan, Problem

n = tl.dim("n")


def one_behind_the_other(problem: Problem) -> Plan:
    placements, end = {}, 0
    for request in problem.requests:
        placements[request.id] = ("global", end)
        end = end + request.size
    return Plan.of(problem, placements, strategy="one behind the other")


@tl.kernel
def difference(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    more = tl.alloc(tl.f32[n])
    twice = tl.alloc(tl.f32[n])
    for i in range(n):
        more[i] = x[i] + 1
        twice[i] = x[i] * 2
    for i in range(n):
        y[i] = more[i] - twice[i]


REWRITTEN = """
n = tl.dim("n")

@tl.kernel
def difference(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    storage = tl.alloc(tl.f32[2 * n])
    more = tl.view(storage, tl.f32[n], fresh=True)
    twice = tl.view(storage, tl.f32[n], byte_offset=4 * n, fresh=True)
    for i in range(n):
        more[i] = x[i] + tl.f32(1.0)
        twice[i] = x[i] * tl.f32(2.0)
    for i in range(n):
        y[i] = more[i] - twice[i]
"""


def test_an_arena_holds_all_that_lives_in_it_though_they_are_alike() -> None:
    rewritten = tl.passes.StorageRewrite(strategy=one_behind_the_other)(difference.ir)
    assert [str(each) for each in tl.allocations(rewritten)] == ["arena: f32[2*n] in global"]
    assert tl.structural_equal(rewritten, tl.parse(REWRITTEN))


def test_a_kernel_takes_a_strategy_of_ones_own() -> None:
    compiled = tl.compile(difference, strategy=one_behind_the_other)
    x = np.arange(5, dtype=np.float32)
    assert compiled.plan.strategy == "one behind the other"
    assert np.array_equal(compiled(x), 1 - x)
    assert np.array_equal(compiled.interpret(x), 1 - x)
