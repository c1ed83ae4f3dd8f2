"""A thousand random graphs on the static runtime: every operator writes what the graph means, in groups that hold."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
import pytest
from graph.leaves import leaves
from graph.random_graphs import Sample, random_graph
from graph.recorder import Recorder, written_by_meaning
from random_cases import groups

import tirlite as tl
from tirlite.graph import Builder, RuntimeOptions, StaticRuntime, evaluate
from tirlite.graph.static_runtime.nodes import Kind, NodeList, Register, RunNode
from tirlite.graph.static_runtime.planner import MemoryPlanner

OPTIONS = [
    RuntimeOptions(copy_views=copy, manage_outputs=outputs, reuse=reuse, plain=plain, debug=debug)
    for copy, outputs, reuse, (plain, debug) in product(
        (False, True), (False, True), (True, False), (((), True), (("exp", "split", "concat"), False))
    )
]
BLOCKS = pytest.mark.parametrize("block", groups(20))


def made(seed: int) -> tuple[Sample, RuntimeOptions]:
    return random_graph(seed, symbolic=seed % 4 == 1, most=14), OPTIONS[seed % 16]


@BLOCKS
def test_fifty_graphs_give_what_they_mean_operator_by_operator(block: int) -> None:
    for seed in range(50 * block, 50 * block + 50):
        sample, options = made(seed)
        recorder = Recorder()
        runtime = StaticRuntime(sample.function, options, library=recorder.library)
        kept = []
        for arguments in sample.arguments * 2:
            recorder.written.clear()
            result = leaves(runtime(*arguments))
            if not options.plain:
                check_equal(recorder.written, written_by_meaning(sample.function, arguments))
            wanted = leaves(evaluate(sample.function, *arguments))
            check_equal(result, wanted)
            runtime.release_outputs()
            kept += [] if options.manage_outputs else zip(result, wanted, strict=True)
        # Results are never scratch: later runs leave them as they were.
        check_equal(*zip(*kept, strict=True)) if kept else None


@BLOCKS
def test_fifty_plans_hold_at_every_step(block: int) -> None:
    for seed in range(50 * block, 50 * block + 50):
        sample, options = made(seed)
        runtime = StaticRuntime(sample.function, options)
        runtime(*sample.arguments[0])
        for block_of, planner in zip(lists(runtime.graph.body), runtime.planners, strict=True):
            check_groups(planner)
            check_aliases(block_of, planner)
            if planner.plan is not None:
                check_bytes(planner, planner.plan)


def test_a_thousand_nested_branches_run():
    g = Builder("ladder")
    x, c = g.input("x", tl.f32[4]), g.input("c", tl.bool_)
    y = x
    for _ in range(1000):
        y = g.if_(c, g.add(y, x), g.exp(x))
    runtime = StaticRuntime(g.function(y))
    for _ in range(2):
        assert runtime(np.ones(4, np.float32), True).tolist() == [1001] * 4


def check_equal(got: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype == b.dtype
        assert np.array_equal(a, b, equal_nan=True)


def check_groups(planner: MemoryPlanner) -> None:
    """Each managed value is in one group, and no two of a group live at one time."""
    lives = {register.name: live for register, live in planner.ranges.live.items()}
    assert sorted(name for group in planner.groups for name in group) == sorted(lives)
    for group in planner.groups:
        ordered = sorted(lives[name] for name in group)
        assert all(end <= start for (_, end), (start, _) in zip(ordered, ordered[1:], strict=False))


def check_bytes(planner: MemoryPlanner, plan: tl.plan.Plan) -> None:
    """At no step do the bytes of two live values meet."""
    assert tl.plan.check(plan.problem, plan) == tl.plan.Ok()
    assert planner.managed_bytes % 64 == 0
    requests = plan.problem.requests
    for time in range(max((request.live[0][1] for request in requests), default=0)):
        alive = [request for request in requests if request.live[0][0] <= time < request.live[0][1]]
        spans = sorted((plan.placements[each.id].offset, each.size) for each in alive)
        assert all(low + size <= start for (low, size), (start, _) in zip(spans, spans[1:], strict=False))


def check_aliases(block: NodeList, planner: MemoryPlanner) -> None:
    """A value lives until the last node that reads it or something that may have its bytes; none of these escapes."""
    for value, (low, high) in planner.ranges.live.items():
        aliases = {value}
        tuples: dict[Register, tuple[Register, ...]] = {}
        for time, node in enumerate(block.nodes):
            assert not aliases.intersection(node.inputs) or low <= time < high
            for each in (*(inner for part in node.blocks for inner in nodes(part)), node):
                if each.kind is Kind.TUPLE:
                    tuples[each.outputs[0]] = each.inputs
                if aliases.intersection(lent(each, tuples)):
                    aliases.update(each.outputs)
        assert not aliases.intersection(block.results)


def lent(node: RunNode, tuples: Mapping[Register, tuple[Register, ...]]) -> tuple[Register, ...]:
    """What the outputs of a node may have the bytes of."""
    if node.kind is Kind.IF:
        return tuple(register for part in node.blocks for register in part.results)
    if node.kind is Kind.ITEM and node.inputs[0] in tuples:
        return (tuples[node.inputs[0]][node.step.index],)
    return () if node.kind in (Kind.OUT, Kind.COPY) else node.inputs


def nodes(block: NodeList) -> list[RunNode]:
    """All nodes, those of branches before theirs."""
    return [each for node in block.nodes for each in (*(n for part in node.blocks for n in nodes(part)), node)]


def lists(block: NodeList) -> list[NodeList]:
    """A list, and those of the branches in it, in the order of the planners."""
    return [block, *(each for node in block.nodes for inner in node.blocks for each in lists(inner))]
