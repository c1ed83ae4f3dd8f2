"""What overwrites a whole buffer together, and what leaves a gap or reads an old value; random ones are run as well."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from textwrap import dedent, indent

import numpy as np
import pytest
from every import every

import tirlite as tl
from tirlite.analysis import linear_sequence
from tirlite.analysis.coverage.overwrites import count_that_overwrite
from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.analysis.regions import by_statement
from tirlite.diag import TirliteError
from tirlite.interp import interpret
from tirlite.ir import Buffer, PrimFunc, SeqStmt
from tirlite.rewrite import Normalize

HEADER = """
n = tl.dim("n", min=0)
m = tl.dim("m", min=0)

@tl.kernel
def f(x: tl.i32[n, m], p: tl.i64, y: tl.i32[64]):
"""


def kernel(extent: str, body: str) -> PrimFunc:
    """A kernel that does this with `t`, and copies all of it to `y`."""
    lines = f"t = tl.alloc(tl.i32[{extent}])\n{dedent(body).strip()}\n"
    return Normalize()(tl.parse(HEADER + indent(f"{lines}for e in range({extent}):\n    y[e] = t[e]\n", "    ")))


def overwritten_by(func: PrimFunc) -> int:
    """How many of the first statements overwrite `t` together."""
    (allocation,) = linear_sequence(func).allocations
    groups = list(by_statement(allocation.home, allocation.touches))
    return count_that_overwrite(groups, allocation.home, allocation.buffer, IndexSpace(func))


@every(
    "extent, body, count",
    [
        # two that meet somewhere, wherever that is
        ("n", "for i in range(p):\n    t[i] = 1\nfor i in range(p, n):\n    t[i] = 2", 2),
        ("n", "for i in range(p, n):\n    t[i] = 2\nfor i in range(p):\n    t[i] = 1", 2),
        ("n", "for i in range(max(p, 0)):\n    t[i] = 1\nfor i in range(p, n):\n    t[i] = 2", 2),
        ("n", "for i in range(min(n, 4)):\n    t[i] = 1\nfor i in range(min(n, 4), n):\n    t[i] = 2", 2),
        ("n", "for i in range(m + 1):\n    t[i] = 1\nfor i in range(m, n):\n    t[i] = 2", 2),
        ("p", "for i in range(n):\n    t[i] = 1\nfor i in range(n, p):\n    t[i] = 2", 2),
        # maxima of extents
        ("max(n, m)", "for i in range(max(n, m)):\n    t[i] = 1", 1),
        ("n", "for i in range(max(n, m)):\n    if i < n:\n        t[i] = 1", 1),
        ("max(n, m)", "for i in range(n):\n    t[i] = 1\nfor i in range(m):\n    t[i] = 2", 2),
        ("max(n, m)", "for i in range(m):\n    t[i] = 1\nfor i in range(m, n):\n    t[i] = 2", 2),
        ("min(n, m)", "for i in range(min(n, m)):\n    t[i] = 1", 1),
        # the border, and then what is between
        ("n + 2", "t[0] = 1\nt[n + 1] = 2\nfor i in range(1, n + 1):\n    t[i] = 3", 3),
        ("n + 2", "t[n + 1] = 1\nfor i in range(1, n + 1):\n    t[i] = 3\nt[0] = 2", 3),
        # stores side by side
        ("2 * n", "for i in range(n):\n    t[i] = 1\n    t[i + n] = 2", 1),
        ("2 * n", "for i in range(n):\n    t[2 * i] = 1\n    t[2 * i + 1] = 2", 1),
        (
            "4 * n",
            "for i in range(n):\n    for j in range(2):\n        t[4 * i + j + 2] = 1\n        t[4 * i + j] = 2",
            1,
        ),
        ("2 * n", "for i in range(n):\n    t[2 * i] = 1\nfor i in range(n):\n    t[2 * i + 1] = 2", 2),
        ("n", "for i in range((n + 1) // 2):\n    t[2 * i] = 1\nfor i in range(n // 2):\n    t[2 * i + 1] = 2", 2),
        (
            "n",
            """
            for i in range(n // 2):
                t[2 * i] = 1
                t[2 * i + 1] = 2
            for i in range(n // 2 * 2, n):
                t[i] = 3
            """,
            2,
        ),
        # conditions that share an axis between them
        ("n", "for i in range(n):\n    if i < m:\n        t[i] = 1\n    if i >= m:\n        t[i] = 2", 1),
        (
            "n",
            "for i in range(n):\n    if i < 3:\n        t[i] = 1\n    else:\n        for k in range(2):\n"
            "            t[i] = 2",
            1,
        ),
        (
            "n",
            "for i in range(n):\n    if i > m:\n        t[i] = 1\nfor i in range(m + 1):\n    if i < n:\n"
            "        t[i] = 2",
            2,
        ),
        # tiles that a minimum cuts off
        ("n", "for o in range(0, n, 4):\n    for i in range(o, min(o + 4, n)):\n        t[i] = 1", 1),
        ("n", "for o in range((n + 3) // 4):\n    for i in range(min(4, n - 4 * o)):\n        t[4 * o + i] = 1", 1),
        ("n", "for o in range(0, n, 4):\n    stop = min(n, o + 4)\n    for i in range(o, stop):\n        t[i] = 1", 1),
        # what is read has just been written
        ("n", "for i in range(p):\n    t[i] = 1\n    t[i] += 2\nfor i in range(p, n):\n    t[i] = 2", 2),
        ("2 * n", "for i in range(n):\n    t[i] = 1\n    t[i + n] = t[i] + 1", 1),
        # one statement is enough
        ("n", "for i in range(n):\n    t[i] = 1\nt[0] = 5", 1),
    ],
)
def test_all_is_overwritten(extent: str, body: str, count: int) -> None:
    assert overwritten_by(kernel(extent, body)) == count


@every(
    "extent, body",
    [
        ("n", "for i in range(p):\n    t[i] = 1\nfor i in range(p + 1, n):\n    t[i] = 2"),
        ("n", "for i in range(p):\n    t[i] = 1\nfor i in range(m, n):\n    t[i] = 2"),
        ("n", "for i in range(p, n):\n    t[i] = 1\nfor i in range(min(p, 3)):\n    t[i] = 2"),
        ("n", "for i in range(1, p):\n    t[i] = 1\nfor i in range(p, n):\n    t[i] = 2"),
        ("max(n, m)", "for i in range(n):\n    t[i] = 1\nfor i in range(m - 1):\n    t[i] = 2"),
        ("max(n, m)", "for i in range(min(n, m)):\n    t[i] = 1"),
        ("n", "for i in range(min(n, m)):\n    t[i] = 1"),
        ("n", "for i in range(max(n, m)):\n    if i < m:\n        t[i] = 1"),
        ("n + m", "for i in range(max(n, m)):\n    t[i] = 1"),
        ("n + 2", "t[0] = 1\nt[n + 1] = 2\nfor i in range(2, n + 1):\n    t[i] = 3"),
        ("n + 3", "t[0] = 1\nt[n + 2] = 2\nfor i in range(1, n + 1):\n    t[i] = 3"),
        ("2 * n", "for i in range(n):\n    t[i] = 1\n    t[i + n - 1] = 2"),
        ("2 * n", "for i in range(n):\n    t[2 * i] = 1\n    t[2 * i] = 2"),
        ("3 * n", "for i in range(n):\n    t[3 * i] = 1\n    t[3 * i + 1] = 2"),
        ("4 * n", "for i in range(n):\n    for j in range(2):\n        t[4 * i + j] = 1\n        t[4 * i + j + 3] = 2"),
        ("n", "for i in range(n // 2):\n    t[2 * i] = 1\nfor i in range(n // 2):\n    t[2 * i + 1] = 2"),
        ("2 * n", "for i in range(m):\n    t[2 * i] = 1\nfor i in range(n):\n    t[2 * i + 1] = 2"),
        ("2 * n", "for i in range(n):\n    t[2 * i] = 1\n    if x[0, 0] > 0:\n        t[2 * i + 1] = 2"),
        ("n", "for i in range(n):\n    if i < m:\n        t[i] = 1\n    if i > m:\n        t[i] = 2"),
        (
            "n",
            "for i in range(n):\n    if i <= m:\n        t[i] = 1\n    else:\n        if m > 3:\n            t[i] = 2",
        ),
        ("n", "for i in range(n):\n    if i < m and x[0, 0] > 0:\n        t[i] = 1\n    if i >= m:\n        t[i] = 2"),
        ("n", "for o in range(0, n, 4):\n    for i in range(o, min(o + 3, n)):\n        t[i] = 1"),
        ("n", "for o in range(0, n, 4):\n    for i in range(o, min(o + 4, n - 1)):\n        t[i] = 1"),
        ("n", "for o in range(n // 4):\n    for i in range(min(4, n - 4 * o)):\n        t[4 * o + i] = 1"),
        ("n", "for o in range((n + 3) // 4):\n    for i in range(min(4, n - o)):\n        t[4 * o + i] = 1"),
        # where p is the last integer of all, p + 1 is the first
        ("n", "for i in range(p + 1):\n    t[i] = 1\nfor i in range(p, n):\n    t[i] = 2"),
        # an old value is read
        ("n", "for i in range(p):\n    t[i] = 1\nfor i in range(p, n):\n    t[i] = t[0]"),
        ("n", "for i in range(p):\n    t[i] += 1\nfor i in range(p, n):\n    t[i] = 2"),
        ("2 * n", "for i in range(n):\n    t[i] = 1\n    t[i + n] = t[i + n] + 1"),
        ("2 * n", "for i in range(n):\n    t[i] = t[i + n]\n    t[i + n] = 3"),
        ("2 * n", "for i in range(n):\n    t[2 * i] = 1\n    t[2 * i + 1] = t[2 * i + 2]"),
        # loops that may not run at all, all of them backwards
        ("(n - 9) * (m - 9)", "for i in range(n - 9):\n    for j in range(m - 9):\n        t[i * (m - 9) + j] = 1"),
    ],
)
def test_a_gap_or_an_old_value_is_left(extent: str, body: str) -> None:
    assert overwritten_by(kernel(extent, body)) == 0


ENDS = (
    "0", "1", "2", "n", "m", "p", "n - 1", "n + 1", "n // 2", "(n + 1) // 2", "n // 2 * 2", "min(n, m)", "max(n, m)",
    "min(n, 2)", "max(p, 0)", "min(p, n)", "n + m", "2 * n", "m - 1", "p + 1",
)  # fmt: skip
EXTENTS = ("n", "n", "n + 1", "2 * n", "max(n, m)", "n + m", "min(n, m)", "6", "p")


SIZES = ((0, 1, 1), (1, 0, 0), (2, 4, 1), (3, 1, 2), (3, 2, -2), (4, 4, 3), (6, 5, 2), (5, 6, 8))


def random_piece(random: Random, low: str, high: str, extent: str) -> str:
    """A statement that writes about the elements from `low` and before `high`."""
    if random.random() < 0.15:
        low = random.choice(ENDS)
    if random.random() < 0.15:
        high = random.choice(ENDS)
    forms = {
        f"for i in range({low}, {high}):\n    t[i] = 1": 3,
        f"for i in range({high} - 1, {low} - 1, -1):\n    t[i] = 1": 1,
        f"for i in range({extent}):\n    if i >= {low} and i < {high}:\n        t[i] = 1": 1,
        f"for i in range({low}, {extent}):\n    if i < {high}:\n        t[i] = 1\n    else:\n        t[i] = 2": 1,
        f"for i in range({extent}):\n    if {high} > i:\n        y[0] = 1\n    else:\n        t[i] = 2": 1,
        f"for i in range({low}, {high}):\n    t[i] = 1\n    t[i] = t[i] * 2": 1,
        f"for i in range({low}, {high}):\n    t[i] = 1\n    y[0] = t[{low}]": 1,
        f"for i in range(({high} - {low}) // 2):\n    t[2 * i + {low}] = 1\n    t[2 * i + {low} + 1] = 1": 1,
        f"for i in range(({high} - {low} + 1) // 2):\n    t[2 * i + {low}] = 1": 1,
        f"for i in range(({high} - {low}) // 2):\n    t[2 * i + {low} + 1] = 1": 1,
        f"for o in range({low}, {high}, 3):\n    for i in range(o, min(o + 3, {high})):\n        t[i] = 1": 1,
        f"for o in range(({high} - {low} + 1) // 2):\n    for i in range(min(2, {high} - {low} - 2 * o)):\n"
        f"        t[{low} + 2 * o + i] = 1": 1,
        f"for o in range({high}):\n    for i in range(2):\n        t[2 * o + i] = 1": 1,
        f"for o in range(2):\n    for i in range({high}):\n        t[{high} * o + i] = 1": 1,
        f"t[{low}] = 1": 1,
        f"t[max({high} - 1, 0)] = 1": 1,
    }
    (piece,) = random.choices(list(forms), list(forms.values()))
    return piece


def random_kernel(seed: int) -> PrimFunc:
    random = Random(seed)
    extent = random.choice(EXTENTS)
    cuts = ["0", *random.choices(ENDS, k=random.choice((0, 0, 1, 1, 2))), extent]
    pieces = [random_piece(random, *ends, extent) for ends in pairwise(cuts)]
    if random.random() < 0.3:
        random.shuffle(pieces)
    return kernel(extent, "\n".join(pieces))


def reads_nothing_old(func: PrimFunc) -> bool:
    """Whether `y` gets initialised values alone, at all sizes at which nothing is out of bounds."""
    p, (dim_n, dim_m) = next(each for each in func.params if not isinstance(each, Buffer)), func.dims
    for n, m, value in SIZES:
        values = {dim_n: n, dim_m: m, p: value}
        for param in func.params:
            if isinstance(param, Buffer):
                values[param] = np.ones((n, m) if param.name == "x" else 64, np.int32)
        try:
            interpret(func, values)
        except TirliteError as error:
            if error.code == "uninitialised-read":
                return False
    return True


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_random_pieces_are_run(first: int) -> None:
    taken = 0
    for seed in range(first, first + 100):
        func = random_kernel(seed)
        count = overwritten_by(func)
        if count:
            taken += 1
            # What comes behind might make up for a gap.
            allocate, *pieces, copy = func.body.stmts
            short = func.replaced(body=SeqStmt((allocate, *pieces[:count], copy)))
            assert reads_nothing_old(short), f"seed {seed}: {count} of {len(pieces)}\n{func}"
    assert taken > 5
