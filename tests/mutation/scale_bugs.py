"""Bugs that show only in long programs, with more workers, or in another process, and what shows them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module

import pytest
from mutation.trial import Plant

import tirlite as tl
from tirlite.analysis import access, check_storage
from tirlite.analysis.storage_check import meetings as storage_meetings
from tirlite.analysis.storage_check.check import Places
from tirlite.ir import Builder, Load, Node, PrimFunc, f32
from tirlite.rewrite import StorageRewrite

storage_problem = import_module("tirlite.rewrite.storage.storage_problem")


@dataclass(frozen=True)
class ScaleBug:
    """One wrong rule; `is_right` says whether all is well."""

    name: str
    classes: str
    plant: Plant
    is_right: Callable[[], bool]
    caught_by: str


def is_seen(bug: ScaleBug) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        bug.plant(patch)
        return not bug.is_right()


def long_sum() -> bool:
    """Whether a sum of 5,000 terms can be planned."""
    b = Builder("long")
    x, y = b.param("x", f32[4]), b.param("y", f32[4])
    made = b.alloc("made", f32[4])
    total = x[0]
    for _ in range(5_000):
        total = total + x[1]
    b.store(made, 0, total)
    b.store(y, 0, made[0])
    try:
        StorageRewrite("share")(b.build())
    except RecursionError:
        return False
    return True


def recursive_walk(patch: pytest.MonkeyPatch) -> None:
    """The finder walks expressions by recursion."""

    touch = access._Finder.touch

    def recursive(finder: access._Finder, exprs: Sequence[Node], region: access.Region, position: int) -> None:
        for expr in exprs:
            if isinstance(expr, Load):
                touch(finder, (expr,), region, position)
            else:
                recursive(finder, expr.children(), region, position)

    patch.setattr(access._Finder, "touch", recursive)


def few_comparisons() -> bool:
    """Whether four times as many buffers that all live together are compared at most six times as often."""
    return _comparisons(800) < 6 * _comparisons(200)


def _comparisons(count: int) -> int:
    func = _all_live(count)
    rewritten = StorageRewrite("pack", check=False)(func)
    right, asked = Places.at_most, 0

    def at_most(self: Places, low: object, high: object) -> bool:
        nonlocal asked
        asked += 1
        return right(self, low, high)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Places, "at_most", at_most)
        assert check_storage(func, rewritten)
    return asked


def _all_live(count: int) -> PrimFunc:
    b = Builder("wide")
    y = b.param("y", f32[4])
    made = [b.alloc(f"t{number}", f32[8 + number % 5]) for number in range(count)]
    for buffer in made:
        b.store(buffer, 0, 1.0)
    for buffer in made:
        b.store(y, 0, buffer[0])
    return b.build()


def all_with_all(patch: pytest.MonkeyPatch) -> None:
    """Each buffer is compared with each other one."""

    def meetings(places: list[object], hulls: list[object], at_most: Callable[..., bool]) -> Iterator[tuple[int, int]]:
        for one, a in enumerate(places):
            for other, b in enumerate(places[:one]):
                if not at_most(a.high, b.low) and not at_most(b.high, a.low):
                    yield one, other

    patch.setattr(storage_meetings, "meetings", meetings)


_NAMES = """
from tirlite.plan import Problem, Request, solve
requests = [Request(f"r{n}", 8 * (n % 7 + 1), ((n % 5, n % 5 + 3),)) for n in range(40)]
if HASHED:
    requests = [each for _, each in sorted((hash(each.id), each) for each in requests)]
plan = solve(Problem(tuple(requests)), "pack")
print(sorted((name, place.offset) for name, place in plan.placements.items()))
"""


def same_in_all_processes() -> bool:
    """Whether two processes with other hash seeds make the same plan."""
    program = _NAMES.replace("HASHED", str(os.environ.get("PLANTED") == "hashes"))
    plans = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        run = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True)
        plans.add(run.stdout)
    return len(plans) == 1


def in_order_of_hashes(patch: pytest.MonkeyPatch) -> None:
    """Requests are taken in the order of the hashes of their names."""
    patch.setenv("PLANTED", "hashes")


def one_copy(patch: pytest.MonkeyPatch) -> None:
    """The problem counts what iterations allocate once, however many workers there are."""
    patch.setattr(storage_problem._Memories, "copies", lambda self, attach: 1)


def counted_for_each_worker() -> bool:
    """Whether the plan counts a row for each worker that has one."""
    b = Builder("rows")
    y = b.param("y", f32[64])
    with b.parallel("i", 0, 64) as i:
        row = b.alloc("row", f32[512])
        with b.for_("j", 0, 512) as j:
            b.store(row, j, i)
        b.store(y, i, row[511])
    func, totals = b.build(), []
    for workers in (1, 3):
        target = tl.Target.host(workers=workers)
        totals.append(StorageRewrite("share", target=target).planned(func).plan.total)
    return totals == [2048, 3 * 2048]


SCALE_BUGS = (
    ScaleBug("plans follow the order of hashes", "18", in_order_of_hashes, same_in_all_processes, "other process"),
    ScaleBug("the finder recurses", "19", recursive_walk, long_sum, "long sum"),
    ScaleBug("workers count as one in the plan", "12", one_copy, counted_for_each_worker, "count"),
    ScaleBug("all buffers are compared with all", "20", all_with_all, few_comparisons, "count"),
)
