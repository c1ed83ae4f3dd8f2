"""Strategies by name, each loaded at its first call; and the effort of a search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from tirlite.diag import PlanMessage, hint
from tirlite.plan.request import is_integer
from tirlite.record import record, replace
from tirlite.show import shown

if TYPE_CHECKING:
    from tirlite.plan.plan import Plan
    from tirlite.plan.problem import Problem
    from tirlite.plan.search.engine import Engine, Listener

Strategy: TypeAlias = "Callable[[Problem], Plan]"

# The module of each strategy, which is a function of its name there.
_MODULES = {
    "auto": "strategies.auto",
    "coalesce": "strategies.slots",
    "exact": "strategies.exact",
    "group": "strategies.slots",
    "none": "strategies.slots",
    "pack": "strategies.pack",
    "per_shape": "shape.per_shape",
    "share": "strategies.share",
    "tvm": "strategies.tvm",
}


@record
class Named:
    """A strategy by name, whose module is loaded at the first call."""

    name: str

    def __call__(self, problem: Problem, **searching: object) -> Plan:
        strategy: Callable[..., Plan] = getattr(import_module(f"tirlite.plan.{_MODULES[self.name]}"), self.name)
        return strategy(problem, **searching)


@record
class Effort:
    """The limits of a search: `budget` nodes or `time_limit` seconds, on `engine`, with this many `threads`.

    `listener` receives progress. With `stop_at_fit` the search ends once the plan fits the capacities of its memories.
    """

    budget: int | None = None
    time_limit: float | None = None
    engine: Engine | None = None
    listener: Listener | None = None
    threads: int = 1
    stop_at_fit: bool = False

    def since(self, start: float) -> Effort:
        """The effort that is left to what began at `start`, a time of `perf_counter`."""
        if self.time_limit is None:
            return self
        return replace(self, time_limit=max(self.time_limit - (perf_counter() - start), 0.0))


# The effort of a strategy that is told none.
DEFAULT = Effort()

STRATEGIES: Mapping[str, Strategy] = MappingProxyType({name: Named(name) for name in _MODULES})


class UnknownStrategy(PlanMessage):
    """There is no strategy of this name.

    Example: `tl.compile(f, strategy="shared")`.
    Fix: Take one of the names that the message lists, or give a function of your own.
    """

    title = "there is no strategy `{name}`"
    help = "the strategies are {known}{hint}"

    name: str
    hint: str
    known: str


class MatchRangeStrategy(PlanMessage):
    """A match range is given to a strategy that has none.

    Example: `tl.compile(f, match_range=16)`, where the strategy is `auto`.
    Fix: Leave it out, or take the strategy whose option it is: `tl.compile(f, strategy="share", match_range=16)`.
    """

    title = "strategy `{strategy}` has no option `match_range`"
    help = "it is an option of `share`; `tvm` has a match range of 16, and the others have none"


def strategy_called(name: str, *more: str) -> Strategy:
    """Raises PlanError for an unknown name, with all that are known, and `more` that the caller has beside them."""
    if name not in STRATEGIES:
        known = sorted([*STRATEGIES, *more])
        raise UnknownStrategy(name, hint(name, known), ", ".join(f"`{each}`" for each in known)).error()
    return STRATEGIES[name]


def is_count(given: object) -> bool:
    """Whether this is a whole number, zero or more, or None for no limit."""
    return given is None or (is_integer(given) and int(given) >= 0)


def demand_match_range(strategy: str | Strategy) -> None:
    """Raises PlanError where a strategy has no use for a match range."""
    if strategy != "share":
        raise MatchRangeStrategy(strategy if isinstance(strategy, str) else shown(strategy)[:60]).error()
