"""A plan depends on what is asked alone, not on names and what was made before; and a fact never costs bytes."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from tirlite.plan import Problem, Request, solve
from tirlite.plan.canonical import _Form
from tirlite.sizes import Dim, evaluate, maximum

BINDINGS = ((224, 224, 8, 16), (104, 704, 32, 64), (512, 32, 8, 1000))


def some_dims(count, names="abcd", *, shuffle=0, others=0, **facts):
    """Dims in this order, made in another one, after some others."""
    for _ in range(others):
        Dim("unused")
    numbers = list(range(count))
    Random(shuffle).shuffle(numbers)
    made = {number: Dim(names[number], **facts) for number in numbers}
    return [made[number] for number in range(count)]


def crowd(seed, **how):
    """Requests of sizes of many kinds, over two to four dims, some with pairs in place."""
    random = Random(seed)
    dims = some_dims(random.randint(2, 4), **how)

    def size():
        bytes, kind = random.choice([4, 8, 12, 64, 256]), random.randint(0, 6)
        x, y = random.choice(dims) + 0, random.choice(dims) + 0
        return bytes * (
            x, x * y, (x + 1) // 2, ((x + 2) // 3) * ((y + 1) // 2), maximum(x, y), x + y, ((x + 3) // 4) * y
        )[kind]  # fmt: skip

    count = random.randint(6, 14)
    sizes = [size() for _ in range(random.randint(3, 8))]
    rows = []
    for number in range(count):
        low = random.randint(0, count)
        rows.append(Request(f"r{number}", random.choice(sizes), (low, low + random.randint(1, 6))))
    pairs = [
        (dst.id, src.id)
        for dst in rows
        for src in rows
        if src.live[0][1] - 1 == dst.live[0][0] and dst is not src and random.random() < 0.5
        if src.live[0][0] < dst.live[0][0]
    ]
    return Problem(tuple(rows), in_place=tuple(pairs) if random.random() < 0.5 else ()), dims


def down_and_up(seed, **facts):
    """The temporaries of a network that halves or thirds its pictures and goes back up, with pairs in place."""
    random = Random(seed)
    dims = some_dims(2, "hw", **facts)
    high, wide = (dim + 0 for dim in dims)
    rows, skips = [], []
    channels = random.choice([3, 8, 16])

    def add(size, low, end):
        rows.append(Request(f"r{len(rows)}", size, (low, end)))

    time = 0
    for _ in range(random.randint(2, 3)):
        for _ in range(random.randint(1, 2)):
            add(4 * channels * high * wide, time, time + 2)
            time += 1
        if random.random() < 0.7:
            skips.append((len(rows) - 1, high, wide, channels))
        kind = random.choice([0, 1, 2])
        high, wide = (((x + 1) // 2, (x - 1) // 2 + 1, (x + 2) // 3)[kind] for x in (high, wide))
        channels *= 2
    for place, high, wide, channels in reversed(skips):
        low = rows[place].live[0][0]
        rows[place] = Request(rows[place].id, rows[place].size, (low, time + 2))
        for times in (1, 2):
            add(4 * times * channels * high * wide, time, time + 2)
            time += 1
        if random.random() < 0.5:
            add(4 * maximum(high, wide) * channels, time, time + 3)
    pairs = [
        (dst.id, src.id)
        for number, dst in enumerate(rows)
        for src in rows[:number]
        if src.live[0][1] - 1 == dst.live[0][0] and random.random() < 0.7
    ]
    return Problem(tuple(rows), in_place=tuple(pairs)), dims


def numbered(problem):
    """The form of a problem that strategies see."""
    return _Form.of(problem, problem.dims).problem


def outcome(problem, dims):
    """What the plan needs, and where all lies, at some values of the dims."""
    plan = solve(problem)
    bindings = [dict(zip(dims, row, strict=False)) for row in BINDINGS]
    offsets = [evaluate(plan.placements[each.id].offset, bindings[1]) for each in problem.requests]
    return plan.strategy, [evaluate(plan.total, binding) for binding in bindings], offsets


SEEDS = (58, 67, 83, 130, 137)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_problem_has_the_same_plan_whatever_dims_are_called_and_were_made_before(seed):
    wanted = outcome(*crowd(seed))
    for how in ({"others": 1}, {"others": 2}, {"names": "dcba"}, {"shuffle": 3}):
        assert outcome(*crowd(seed, **how)) == wanted, how


def test_the_same_problem_has_the_same_plan_in_another_process():
    text = f"from test_canonical import *\nprint([outcome(*crowd(seed, others=5)) for seed in {SEEDS}])"
    paths = [str(Path(__file__).parent), str(Path.cwd()), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([outcome(*crowd(seed)) for seed in SEEDS])


def test_a_dim_is_its_name_whichever_object_a_size_was_made_of():
    plans = []
    a, b = Dim("a"), Dim("b")
    for x, y in ((a, b), (Dim("a"), Dim("b"))):
        sizes = (64 * maximum(a, b), 12 * x * y, 64 * ((y + 3) // 4) * x, 12 * y, 256 * x)
        lives = ((4, 7), (0, 3), (2, 8), (4, 6), (0, 5), (2, 3))
        rows = tuple(Request(f"r{i}", sizes[i % 5], live) for i, live in enumerate(lives))
        plans.append([str(each.size) for each in numbered(Problem(rows)).requests])
    assert plans[0] == plans[1]


def test_dims_that_nothing_tells_apart_at_first_are_told_apart_by_what_they_are_combined_with():
    plans = []
    for order in (0, 1, 2, 3):
        n, m, a, b = some_dims(4, "nmab", shuffle=order)
        sizes = (4 * (n + m), 4 * (a + b), 4 * (n * a + m * b), 8 * n, 16 * a)
        problem = Problem(tuple(Request(f"r{i}", size, (i, i + 2)) for i, size in enumerate(sizes)))
        plans.append(outcome(problem, (n, m, a, b)))
    assert all(one == other for one, other in pairwise(plans))


@pytest.mark.parametrize(("seed", "facts"), [(70, {"min": 8}), (70, {"multiple_of": 8}), (2, {"max": 4096})])
def test_a_fact_never_costs_bytes(seed, facts):
    _, without, _ = outcome(*down_and_up(seed))
    _, known, _ = outcome(*down_and_up(seed, **facts))
    assert all(one <= other for one, other in zip(known, without, strict=True))


def test_facts_that_make_a_division_good_are_needed():
    n = Dim("n", min=8)
    sizes = (64 * n, 4096 // (n - 4) + n, 32 * n, 4096 // (n - 4) + 7)
    plan = solve(Problem(tuple(Request(f"r{i}", size, (i, i + 2)) for i, size in enumerate(sizes))), "pack")
    assert plan.at({n: 8}).total >= plan.at({n: 8}).lower_bound
