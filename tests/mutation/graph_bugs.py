"""Bugs of the planners of graphs, and what finds them: a replay of the plan on numbered bytes, or a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from random import Random

import numpy as np
import pytest
from graph.leaves import leaves
from graph.random_graphs import Sample, random_graph
from graph.replay import replay
from mutation.trial import Plant

import tirlite as tl
from tirlite.diag import PlanError
from tirlite.graph import StaticRuntime, evaluate, plan_memory
from tirlite.graph.memory import problem as memory_problem
from tirlite.graph.memory.problem import Lifetimes, Value, Values
from tirlite.graph.static_runtime import planner

# The package has a function of this name.
lifetimes = import_module("tirlite.graph.memory.problem")


@dataclass(frozen=True)
class GraphBug:
    """One wrong rule of a planner of graphs, and whether a graph is computed rightly by its plan."""

    name: str
    classes: str
    plant: Plant
    is_right: Callable[[Sample], bool]
    caught_by: str = "replay"


def found(bug: GraphBug, seeds: range) -> int:
    """On how many random graphs the bug is seen."""
    with pytest.MonkeyPatch.context() as patch:
        bug.plant(patch)
        return sum(not bug.is_right(random_graph(seed)) for seed in seeds)


def alarms(bug: GraphBug, seeds: range) -> int:
    """On how many random graphs it would be seen although it is not planted."""
    return sum(not bug.is_right(random_graph(seed)) for seed in seeds)


def by_tensors(sample: Sample) -> bool:
    """Each tensor at an offset of its own, views and pairs in place as the loop nests take them."""
    problem = tl.graph.memory_problem(sample.function, views=True, in_place=True)
    return _replays(sample, tl.plan.solve(problem, "pack"), views=True)


def by_storages(sample: Sample) -> bool:
    """GraphPlanMemory, whose plan is checked against lifetimes that it does not use."""
    try:
        return _replays(sample, plan_memory(sample.function).plan, views=False)
    except PlanError:
        return False


def by_runs(sample: Sample) -> bool:
    """The static runtime, from its second run on with storage that it has planned."""
    runtime = StaticRuntime(sample.function)
    wanted = [leaves(evaluate(sample.function, *arguments)) for arguments in sample.arguments]
    for _ in range(2):
        for arguments, arrays in zip(sample.arguments, wanted, strict=True):
            given = leaves(runtime(*arguments))
            if not all(np.array_equal(a, b, equal_nan=True) for a, b in zip(given, arrays, strict=True)):
                return False
            runtime.release_outputs()
    return True


def _replays(sample: Sample, plan: tl.plan.Plan, *, views: bool) -> bool:
    for choices in (1, 2):
        random = Random(choices)
        try:
            replay(sample.function, plan, lambda random=random: random.random() < 0.5, views=views)
        except AssertionError:
            return False
    return True


def results_die(patch: pytest.MonkeyPatch) -> None:
    """The result of a graph counts as used no more once it is written."""
    right = lifetimes.lifetimes

    def wrong(made: object, values: Values) -> Lifetimes:
        right_ones = right(made, values)
        results = [value for value in values.of[made.function.body] if not value.pinned]
        early = {value: ((live[0][0], live[0][0] + 1),) for value in results if (live := right_ones.live[value])}
        return replace_live(right_ones, {**right_ones.live, **early})

    patch.setattr(memory_problem, "lifetimes", wrong)


def replace_live(given: Lifetimes, live: Mapping[Value, tuple[tuple[int, int], ...]]) -> Lifetimes:
    return Lifetimes(live, given.at)


def views_are_no_uses(patch: pytest.MonkeyPatch) -> None:
    """What is read through a view of a tensor is not counted as a use of it."""
    right = Values.args

    def wrong(self: Values, call: object) -> object:
        seen = {value for each in call.operands if each in self.views for value in self.of[each]}
        return [value for value in right(self, call) if value not in seen]

    patch.setattr(Values, "args", wrong)


def aliases_are_no_uses(patch: pytest.MonkeyPatch) -> None:
    """A value lives to the last node that names itself, whoever else has its bytes."""
    right = planner._live
    patch.setattr(
        planner,
        "_live",
        lambda nodes, roots, managed: right(nodes, {each: frozenset((each,)) for each in roots}, managed),
    )


GRAPH_BUGS = (
    GraphBug("the result of a graph is scratch", "13", results_die, by_tensors),
    GraphBug("views of a graph are not uses", "2, 13", views_are_no_uses, by_tensors),
    GraphBug("storage of results is free for others", "13", results_die, by_storages),
    GraphBug("a group dies with the first of its aliases", "13", aliases_are_no_uses, by_runs, "run"),
)
