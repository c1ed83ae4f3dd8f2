"""Keeps plans, and finds those that were made before for the same problems, planned in the same way."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from time import perf_counter
from typing import TYPE_CHECKING

from tirlite.gate import GATE
from tirlite.record import record, replace

if TYPE_CHECKING:
    from tirlite.plan.plan import Plan
    from tirlite.plan.problem import Problem

# Requests in all plans together that are kept unless told otherwise.
_REQUESTS = 100_000


@record
class Repeatable:
    """A strategy of your own whose plans depend on the problem alone, so that they may be kept: see `PlanCache`.

    `tl.compile(f, strategy=tl.plan.Repeatable(mine))` calls `mine` once for each problem.
    """

    strategy: Callable[[Problem], Plan]

    def __call__(self, problem: Problem) -> Plan:
        return self.strategy(problem)


@record
class CacheCounts:
    """How often a plan was found, how often none was, and how many are kept."""

    found: int
    missed: int
    plans: int


class PlanCache:
    """Keeps plans by problem, so that the same problem is not planned twice: `plan.solve(problem, cache=cache)`.

    Problems are the same if sizes, lifetimes, alignments, scopes, fixed offsets, pools, pairs in place and facts are;
    names of requests do not matter, nor do those of dims unless the strategy is your own. Strategy and limits must be
    the same as well. A plan that is found has the names of the problem that was asked about, is checked like any other,
    and says `plan.cached`. Plans of named strategies are kept, and those of your own that are `Repeatable`; but not the
    plan of a search that Ctrl-C ended.

    The cache keeps the plans that were used last, of at most this many `requests` in all. It may be used by several
    threads.
    """

    def __init__(self, requests: int = _REQUESTS) -> None:
        self._most = requests
        self._size = 0
        self._found = self._missed = 0
        self._plans: OrderedDict[Hashable, Plan] = OrderedDict()

    @property
    def counts(self) -> CacheCounts:
        """The counts of hits, misses and plans."""
        with GATE.inside(self):
            return CacheCounts(self._found, self._missed, len(self._plans))

    def plan(
        self,
        problem: Problem,
        make: Callable[[Problem], Plan],
        strategy: str | Callable[[Problem], Plan],
        budget: int | None = None,
        time_limit: float | None = None,
    ) -> Plan:
        """The plan of that strategy within these limits; `make` makes it if it is not there."""
        if not isinstance(strategy, (str, Repeatable)):
            return make(problem)
        key = key_of(problem, (strategy, budget, time_limit))
        found = self._find(key)
        if found is not None:
            return _renamed(found, problem)
        start = perf_counter()
        plan = make(problem)
        # A search that was ended before its time, and without an end of its own, was ended by the user.
        if plan.deterministic or (time_limit is not None and perf_counter() - start >= time_limit):
            self._keep(key, plan)
        return plan

    def _find(self, key: Hashable) -> Plan | None:
        with GATE.inside(self):
            plan = self._plans.get(key)
            if plan is None:
                self._missed += 1
                return None
            self._found += 1
            self._plans.move_to_end(key)
            return plan

    def _keep(self, key: Hashable, plan: Plan) -> None:
        """Keeps the plan, unless it is too large by itself; the least recently used ones make room."""
        count = _weight(plan)
        if count > self._most:
            return
        with GATE.inside(self):
            if key in self._plans:
                return
            self._plans[key] = plan
            self._size += count
            while self._size > self._most:
                _, old = self._plans.popitem(last=False)
                self._size -= _weight(old)


def _weight(plan: Plan) -> int:
    return len(plan.problem.requests) + 1


def key_of(problem: Problem, how: Hashable) -> Hashable:
    """The key of a problem: equal for problems that differ only in the names of requests, and are planned in one way.

    For named strategies, dims have numbers for names: see `canonical`.
    """
    numbers = {request.id: number for number, request in enumerate(problem.requests)}
    pairs = tuple((numbers[dst], numbers[src]) for dst, src in problem.in_place)
    requests = tuple((r.size, r.live, r.align, r.fixed, r.scope, r.pools, r.kind) for r in problem.requests)
    return how, requests, problem.pools, pairs, problem.contiguous


def _renamed(plan: Plan, problem: Problem) -> Plan:
    """The plan for a problem that differs from the plan's own only in names."""
    from tirlite.plan.canonical import transferred

    return replace(transferred(plan, problem, dict(zip(plan.problem.dims, problem.dims, strict=True))), cached=True)
