"""A thousand random graphs, of which a run tries some, as programs with explicit allocation that planners lay together.

Every operator writes what the graph means, to the bit, and what a plan promises is looked at step by step.
"""

from __future__ import annotations

import numpy as np
import pytest
from graph.leaves import leaves
from graph.random_graphs import random_graph
from graph.recorder import Recorder, written_by_meaning
from random_cases import groups

import tirlite as tl
from tirlite.graph import Executable, OutVariants, StorageCoalesce, evaluate, explicit_allocation
from tirlite.graph.explicit.instructions import AllocStorage, AllocTensor, Body, Branch, Routine, walk

OTHERS = ("pack", "share", "pack", "group", "pack", "tvm", "pack", "auto")


@pytest.mark.parametrize("first", groups(1000, 50))
def test_fifty_graphs_give_what_they_mean_operator_by_operator(first: int) -> None:
    for seed in range(first, first + 50):
        sample = random_graph(seed, symbolic=seed % 4 == 1, most=14)
        raw = explicit_allocation(sample.function)
        planned = [coalesced(raw, strategy) for strategy in ("coalesce", OTHERS[seed % 8])]
        for program, plan in planned:
            assert tl.plan.check(plan.problem, plan) == tl.plan.Ok(), f"seed {seed}"
            check_regions(raw.main, program.main, plan)
        wanted = [meaning(sample.function, arguments) for arguments in sample.arguments[:2]]
        for program in (raw, *(program for program, _ in planned)):
            check_allocated_before_use(program.main.body, frozenset())
            for arguments, arrays in zip(sample.arguments, wanted, strict=False):
                compare(program, arguments, arrays)


def coalesced(raw: Executable, strategy: str) -> tuple[Executable, tl.plan.Plan]:
    """The program with regions, and the plan that it follows."""
    plans = []

    def kept(problem: tl.plan.Problem) -> tl.plan.Plan:
        plans.append(tl.plan.solve(problem, strategy))
        return plans[-1]

    program = StorageCoalesce(kept)(raw)
    (plan,) = plans
    return program, plan


def meaning(function: tl.graph.Function, arguments: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """What each operator writes, in order, and the results."""
    return [*written_by_meaning(function, arguments), *leaves(evaluate(function, *arguments))]


def compare(program: Executable, arguments: tuple[np.ndarray, ...], wanted: list[np.ndarray]) -> None:
    recorder = Recorder()
    result = program.run(*arguments, variants=OutVariants(recorder.library)).result
    for got, array in zip([*recorder.written, *leaves(result)], wanted, strict=True):
        assert got.dtype == array.dtype
        assert np.array_equal(got, array, equal_nan=True)


def check_regions(raw: Routine, made: Routine, plan: tl.plan.Plan) -> None:
    """One region for each scope and element type, and results in bytes that nothing else takes while they live."""
    regions = [step for step in walk(made.body) if isinstance(step, AllocStorage)]
    assert len(regions) == len(plan.problem.pools)
    if all(isinstance(step.size, int) for step in regions):
        # Several pools of one memory stand one behind the other, each aligned.
        assert 0 <= sum(step.size for step in regions) - plan.total <= 63 * (len(plan.pools) - len(regions))
    end = max((high for request in plan.problem.requests for _, high in request.live), default=0)
    storage_of = {step.name: step.storage for step in walk(raw.body) if isinstance(step, AllocTensor)}
    for name in raw.results:
        if name in storage_of:
            assert plan.problem.by_id[storage_of[name]].live[-1][1] == end


def check_allocated_before_use(body: Body, known: frozenset[str]) -> None:
    """Each tensor lies on a storage from before it, of the same body or of one around it."""
    for step in body:
        if isinstance(step, AllocStorage):
            known |= {step.name}
        elif isinstance(step, AllocTensor):
            assert step.storage in known
        elif isinstance(step, Branch):
            check_allocated_before_use(step.then, known)
            check_allocated_before_use(step.other, known)
