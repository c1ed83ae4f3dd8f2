"""The compiled engine: the same answers as in Python, node for node."""

from dataclasses import replace
from random import Random

import pytest

from tirlite.plan import Problem, Request, solve
from tirlite.plan.blocks import Block, Piece
from tirlite.plan.search.cells import NAMES, NODES, RUNNING, STATUS, load, restart
from tirlite.plan.search.engine import PythonEngine
from tirlite.plan.search.instance import instances
from tirlite.solver import CompiledEngine


@pytest.fixture(scope="module")
def compiled():
    return CompiledEngine()


def crowd(seed, count):
    random = Random(seed)
    starts = [random.randrange(count) for _ in range(count)]
    spans = [((low, low + random.randrange(1, count // 3 + 2)),) for low in starts]
    return [Block.even(random.randrange(1, 40), live, random.choice([1, 1, 4])) for live in spans]


def shrunk(item):
    """The item, which fills but half of its size from its second point of time on."""
    ((low, high, size),) = item.pieces
    pieces = (Piece(low, low + 1, size), Piece(low + 1, high, size // 2))
    return replace(item, pieces=pieces) if high > low + 1 else item


@pytest.mark.parametrize("seed", range(6))
def test_after_each_slice_all_cells_are_the_same(compiled, seed):
    items = crowd(seed, 40)
    if seed % 2:
        items = [each if number % 3 else shrunk(each) for number, each in enumerate(items)]
    instance = next(iter(instances(items)))
    runs = [(engine, load(instance, engine)) for engine in (PythonEngine(), compiled)]
    order = sorted(range(len(instance.sizes)), key=lambda c: -instance.sizes[c])
    for _, cells in runs:
        restart(cells, instance, order, instance.floor)
    for nodes in (1, 10, 100, 400):
        for engine, cells in runs:
            engine.advance(cells, nodes)
        for name in NAMES:
            python, native = (list(getattr(cells, name)) for _, cells in runs)
            assert python == native[: len(python)], name
        if runs[0][1].state[STATUS] != RUNNING:
            break
    assert runs[0][1].state[NODES] > 1


@pytest.mark.parametrize("seed", range(4))
def test_plans_for_a_budget_are_the_same(compiled, seed):
    items = crowd(seed, 50)
    problem = Problem(tuple(Request(f"r{n}", i.size, ((i.low, i.high),), align=i.align) for n, i in enumerate(items)))
    assert solve(problem, "exact", budget=3000) == solve(problem, "exact", budget=3000, engine=compiled)
