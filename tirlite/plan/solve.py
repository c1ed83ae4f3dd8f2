"""Makes a checked plan of a problem by the strategy of a given name: the way in.

Which of two symbolic sizes is larger may be beyond the prover, and a plan that rests on it good. Its problem is still
planned, by a weaker strategy: `share` needs few proofs, as all its offsets are 0, and `none` needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from numbers import Real
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from tirlite.diag import CapacityError, InternalError, KernelError, Message, PlanMessage, Span, public
from tirlite.gate import GATE
from tirlite.plan.arguments import PlanArgument, demand
from tirlite.plan.bound import peaks
from tirlite.plan.check import check
from tirlite.plan.plan import Plan
from tirlite.plan.problem import Problem
from tirlite.plan.request import is_integer
from tirlite.plan.strategy import Effort, Named, Strategy, demand_match_range, is_count, strategy_called
from tirlite.plan.verdict import Counterexample, Fault
from tirlite.record import record, replace
from tirlite.sizes.evaluate import sample_bindings

if TYPE_CHECKING:
    from tirlite.plan.cache import PlanCache
    from tirlite.plan.search.engine import Engine, Listener

T = TypeVar("T")

_WEAKER: Mapping[str, str] = MappingProxyType(
    {"auto": "share", "exact": "share", "pack": "share", "group": "share", "coalesce": "share", "share": "none"}
)


@record
class Doubt:
    """Why a plan is not proved to be safe, where nothing shows that it is not."""

    message: Message


def without_doubt(strategy: str | Strategy, attempt: Callable[[str | Strategy], T | Doubt]) -> T:
    """The result of `attempt` with `strategy`, or with the first weaker strategy that leaves no doubt.

    Raises the error of the last doubt if there is no weaker strategy, as for a user's own.
    """
    while isinstance(made := attempt(strategy), Doubt):
        if not isinstance(strategy, str) or strategy not in _WEAKER:
            raise made.message.error()
        strategy = _WEAKER[strategy]
    return made


def is_doubt(problem: Problem, plan: Plan, fault: Counterexample) -> bool:
    """Whether only a proof is missing: the plan fits, and passes the check at a few values of the dims."""
    if fault.fault is Fault.CAPACITY:
        return False
    try:
        bindings = sample_bindings(problem.dims) if problem.dims else ()
        return bool(bindings) and all(check(problem.at(each), plan.at(each)) for each in bindings)
    except KernelError:  # a division by zero
        return False


# Strategies that are as fast as a lookup in the cache.
_SWIFT = ("none", "tvm", "share", "group", "coalesce")
# Strategies that need no proofs and compare no sizes of different dims.
_PLAIN = ("none", "tvm", "group", "coalesce", "per_shape")
# Strategies that take an Effort.
_SEARCHES = ("auto", "exact")


class OverCapacity(Message):
    """A pool is too small for what has to live in it.

    Example: Two requests of 600 bytes, live together, in a pool with a capacity of 1000 bytes.
    Fix: Shorten lifetimes, shrink the buffers that the message lists as live at the peak, or raise the capacity.
    """

    raises = CapacityError
    title = "{fault}"
    label = "`{largest}` is the largest of what is live then"
    help = "the requests of `{memory}` need {peak} bytes at time {time}, when these are live: {live}{pairs}"

    fault: str
    memory: str
    peak: str
    time: int
    live: str
    largest: str
    pairs: str = ""


class FixedOverlap(PlanMessage):
    """Two requests that are live together are fixed at offsets that overlap.

    Example: `Request("a", 8, (0, 2), fixed=0)` and `Request("b", 8, (1, 3), fixed=4)`.
    """

    title = "the fixed offsets of `{first}` and `{second}` clash: {fault}"
    label = "the second one"
    related_label = "the first one"
    help = "move one of them, or let one go free"


class UnsafePlan(PlanMessage):
    """A strategy that a user gave made a plan that does not hold.

    Example: A function of your own, given as `strategy=`, which puts two buffers at offset 0 that are live together.
    Fix: Give buffers with a common point in time disjoint bytes; `plan.check` finds the pair.
    """

    title = "the plan of strategy `{strategy}` is not safe: {fault}"
    help = "`check(problem, plan)` gives this counterexample as an object"


class BrokenStrategy(Message):
    """A strategy of ours made a plan that does not hold.

    Example: None is known: this is a fault of tirlite.
    Fix: Report it, with the problem as `problem.to_json()` writes it; take another strategy meanwhile.
    """

    raises = InternalError
    title = "strategy `{strategy}` made a plan that is not safe: {fault}"
    help = "this is a fault of tirlite; please report it with the problem, `problem.to_json()`"


@public
def solve(
    problem: Problem,
    strategy: str | Strategy = "auto",
    budget: int | None = None,
    time_limit: float | None = None,
    engine: Engine | None = None,
    listener: Listener | None = None,
    cache: PlanCache | None = None,
    threads: int = 1,
    match_range: int | None = None,
    *,
    stop_at_fit: bool = False,
) -> Plan:
    """A plan for `problem`, checked.

    `strategy` is a name out of STRATEGIES, or a function of your own from a problem to a plan. `auto` and
    `exact` search for `budget` nodes or `time_limit` seconds on `engine`, with up to `threads` threads if it is
    compiled, and report progress to `listener`; with `stop_at_fit` they end once the plan fits the capacities of its
    memories. Other strategies ignore these options. The number of threads changes no plan, unless the clock ends the
    search. Plans are looked up in `cache`, and added to it. With a `match_range`, `share` gives a request only free
    storage of 1 / match_range to match_range times its size, with 0 none; pairs in place are exempt.

    Where a plan of a named strategy is not proved to be safe for all values of the dims, `share` plans instead, and
    then `none`; the plan names the strategy that made it.

    Raises PlanError for an argument of the wrong kind, an unknown strategy, clashing fixed offsets, or an unsafe plan
    of your own; CapacityError where the plan does not fit.
    """
    _check_arguments(problem, strategy, budget, time_limit, cache, threads, match_range)
    if match_range is not None:
        demand_match_range(strategy)

    def attempt(strategy: str | Strategy) -> Plan | Doubt:
        make: Callable[..., Plan] = strategy_called(strategy) if isinstance(strategy, str) else strategy
        if isinstance(make, Named) and make.name in _SEARCHES:
            make = partial(make, effort=Effort(budget, time_limit, engine, listener, threads, stop_at_fit))
        elif match_range is not None and strategy == "share":
            make = partial(make, match_range=match_range)
        if not isinstance(strategy, str):
            make = GATE.outside()(make)
        start = perf_counter()
        kept = None if cache is None or stop_at_fit or strategy in _SWIFT else cache

        def found(asked: Problem) -> Plan:
            return make(asked) if kept is None else kept.plan(asked, make, strategy, budget, time_limit)

        made = _in_one_form(problem, strategy, found)
        return _checked(problem, strategy, made, perf_counter() - start)

    return without_doubt(strategy, attempt)


def _in_one_form(problem: Problem, strategy: str | Strategy, found: Strategy) -> Plan:
    """The plan of a strategy. If it is one of ours, the names of the dims make no difference."""
    if not problem.dims or not isinstance(strategy, str) or strategy in _PLAIN:
        return found(problem)
    from tirlite.plan.canonical import planned

    return planned(problem, found)


def _checked(problem: Problem, strategy: str | Strategy, made: object, seconds: float) -> Plan | Doubt:
    """The checked plan, or a doubt where only a proof is missing. Raises PlanError for a wrong plan."""
    if not isinstance(made, Plan):
        raise PlanArgument(
            "strategy", "solve", "a function that returns a Plan", f"one that returns {made!r:.60}"
        ).error()
    plan = replace(made, seconds=seconds)
    verdict = check(problem, plan)
    if not isinstance(verdict, Counterexample):
        return plan
    complaint = _complaint(problem, plan, verdict, ours=isinstance(strategy, str))
    if is_doubt(problem, plan, verdict):
        return Doubt(complaint)
    raise complaint.error()


def _check_arguments(
    problem: object,
    strategy: object,
    budget: object,
    time_limit: object,
    cache: object,
    threads: object,
    match_range: object,
) -> None:
    nodes = budget is None or (is_integer(budget) and int(budget) >= 0)
    seconds = time_limit is None or (isinstance(time_limit, Real) and float(time_limit) >= 0)
    has_thread = is_integer(threads) and int(threads) > 0
    for name, given, fits, wanted in (
        ("problem", problem, isinstance(problem, Problem), "a Problem"),
        ("strategy", strategy, isinstance(strategy, str) or callable(strategy), "a name, or a function that plans"),
        ("budget", budget, nodes, "a number of nodes, zero or more"),
        ("time_limit", time_limit, seconds, "a number of seconds, zero or more"),
        ("cache", cache, cache is None or hasattr(cache, "plan"), "a PlanCache"),
        ("threads", threads, has_thread, "a number of threads, one or more"),
        ("match_range", match_range, is_count(match_range), "a whole number, zero or more"),
    ):
        demand("solve", name, given, wanted, fits=fits)


def _complaint(problem: Problem, plan: Plan, verdict: Counterexample, *, ours: bool) -> Message:
    fault = str(verdict)
    if verdict.fault is Fault.CAPACITY:
        return _over_capacity(problem, plan, verdict)
    if verdict.fault is Fault.OVERLAP and all(problem.by_id[name].fixed is not None for name in verdict.requests):
        first, second = verdict.requests
        here, there = _offset_span(problem, second), _offset_span(problem, first)
        return FixedOverlap(first, second, fault, span=here, related=there)
    return BrokenStrategy(plan.strategy, fault) if ours else UnsafePlan(plan.strategy, fault)


def _offset_span(problem: Problem, name: str) -> Span | None:
    """The cell with the fixed offset in the table that the problem was read from, if any."""
    table = problem.table
    if table is None or "offset" not in table.columns:
        return None
    row = 1 + [request.id for request in problem.requests].index(name)
    return table.span(row, table.columns["offset"])


def _over_capacity(problem: Problem, plan: Plan, verdict: Counterexample) -> Message:
    from tirlite.plan.report.witness import largest_of, live_at

    memory = verdict.memory
    inside = [r for r in problem.requests if plan.pools[plan.placements[r.id].pool].memory == memory]
    ids = {r.id for r in inside}
    pairs = tuple(pair for pair in plan.in_place if ids.issuperset(pair))
    settled = tuple(replace(r, pools=(memory,)) if r.pools else r for r in inside)
    most = peaks(replace(problem, requests=settled, in_place=pairs), pairs)[memory]
    live = live_at(inside, most.time)
    names = ", ".join(f"`{r.id}`" for r in live)
    alive = {r.id for r in live}
    once = [f"`{dst}` in place of `{src}`" for dst, src in pairs if alive.issuperset((dst, src))]
    once += [f"`{r.id}` is fixed at {r.fixed}" for r in live if r.fixed is not None]
    told = f"; {', '.join(once)}" if once else ""
    largest = largest_of(live)
    span = problem.spans.get(largest)
    return OverCapacity(str(verdict), memory, str(most.size), most.time, names, largest, told, span=span)
