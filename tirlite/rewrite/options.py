"""The options of a compilation: one frozen record, which is passed on as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from tirlite.diag import CallTypeError, Message, hint
from tirlite.plan.cache import PlanCache
from tirlite.plan.strategy import Strategy, demand_match_range, is_count, strategy_called
from tirlite.record import parts_of, record
from tirlite.target import Target

if TYPE_CHECKING:
    from typing import TypedDict

    from tirlite.plan.search.engine import Engine
    from tirlite.rewrite.pipeline import Observer, Pass

    # Only for type checkers: at run time, creating the class would cost import time.
    class BesideStrategy(TypedDict, total=False):
        """The options of `tl.compile` and `tl.kernel`, by name, but for the strategy; those of `Options`."""

        in_place: bool
        exact_dtype: bool
        match_range: int | None
        capacity: int | None
        debug: bool
        unchecked: bool
        target: Target
        budget: int | None
        time_limit: float | None
        observers: Iterable[Observer]
        passes: Iterable[Pass]
        schedule: Iterable[Pass] | Callable[[Any], object] | str | None
        engine: Callable[[], Engine] | None
        cache: PlanCache | None

    class Choices(BesideStrategy, total=False):
        """The options of `tl.compile` and `tl.kernel`, by name."""

        strategy: str | Strategy


# Strategies that may search for long.
_SEARCHED = ("exact", "per_shape")
# Options of the pass only: a kernel is always checked.
_OF_THE_PASS = ("webs", "check")


class UnknownOption(Message):
    """There is no option of this name.

    Example: `tl.compile(f, strategie="exact")`.
    Fix: Correct the name; the help lists all of them.
    """

    raises = CallTypeError
    title = "a kernel has no option `{name}`"
    help = "the options are {known}{hint}"


class OptionType(Message):
    """An option is given something of a kind that it does not take.

    Example: `tl.compile(f, target="host")`.
    Fix: Give what the message asks for.
    """

    raises = CallTypeError
    title = "option `{name}` takes {wanted}, and is given {given}"


@record
class StorageOptions:
    """How the storage of a function is planned: the options of the pass `StorageRewrite`.

    `strategy`: the name of a strategy of `tirlite.plan`, or a function from a `plan.Problem` to a `plan.Plan`.
    `in_place`: a buffer may overwrite one whose lifetime ends where its own begins, if that is proved safe.
    `target`: describes tagged memory.
    `exact_dtype`: only buffers of one element type, lanes included, share storage, except for tagged memory.
    `match_range`: `share` only reuses free storage of 1 / match_range to match_range times the size; with 0 none.
    `capacity`: the bytes that each ordinary memory must fit into; an error names what is live at the peak.
    `budget`, `time_limit`: limits of strategy `exact`, in search nodes and seconds.
    `engine`: makes the engine of its search, by default in Python; the plan does not depend on it.
    `cache`: keeps plans by storage problem, except for those that differ by shape; None plans anew.
    `webs`: buffers are first split by `SplitWebs`, if the plan takes less for it.
    `check`: proves that the result reads what the function would have read, see `analysis.check_storage`.

    Raises CallTypeError for an option of the wrong type.
    """

    strategy: str | Strategy = "auto"
    in_place: bool = True
    target: Target = field(default_factory=Target.host)
    exact_dtype: bool = field(default=False, kw_only=True)
    match_range: int | None = field(default=None, kw_only=True)
    capacity: int | None = field(default=None, kw_only=True)
    budget: int | None = field(default=None, kw_only=True)
    time_limit: float | None = field(default=None, kw_only=True)
    engine: Callable[[], Engine] | None = field(default=None, kw_only=True)
    cache: PlanCache | None = field(default=None, kw_only=True)
    webs: bool = field(default=True, kw_only=True)
    check: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        _demand("strategy", self.strategy, isinstance(self.strategy, str) or callable(self.strategy), _STRATEGY)
        _demand("target", self.target, isinstance(self.target, Target), "a Target, as in tl.Target.host(workers=2)")
        _demand("budget", self.budget, self.budget is None or isinstance(self.budget, Integral), "a number of nodes")
        for name, (kind, _) in parts_of(type(self)).items():
            if kind == "bool":
                _demand(name, getattr(self, name), isinstance(getattr(self, name), bool), "True or False")
        limit = self.time_limit
        _demand("time_limit", limit, limit is None or isinstance(limit, Real), "a number of seconds")
        cache, engine = self.cache, self.engine
        _demand("cache", cache, cache is None or isinstance(cache, PlanCache), "a plan.PlanCache, or None")
        _demand("engine", engine, engine is None or callable(engine), "what makes an engine, or None")
        for name in ("match_range", "capacity"):
            _demand(name, getattr(self, name), is_count(getattr(self, name)), "a whole number, zero or more")

    def demand_strategy(self) -> None:
        """Raises PlanError for an unknown strategy, or a match range without `share`."""
        if isinstance(self.strategy, str):
            strategy_called(self.strategy)
        if self.match_range is not None:
            demand_match_range(self.strategy)

    def searcher(self) -> Engine | None:
        """A new engine, if the strategy is one that may search for long."""
        return self.engine() if self.engine is not None and self.strategy in _SEARCHED else None


@record
class Options(StorageOptions):
    """How a kernel is compiled: how its storage is planned, and what else is done with it.

    `debug`: the code checks itself as it runs, see docs/debugging.md.
    `unchecked`: the code does not even check that it stays within its arrays, see docs/safety.md.
    `observers`: each is called with every pass's `Step`.
    `passes`: run before storage is planned.
    `schedule`: how loops are transformed: "auto"; "compact", which first joins loops and shrinks temporaries; a
    `tl.schedule`, or its steps; a function that applies steps to the schedule it receives; or None, for loops as
    written.

    Raises PlanError for an unknown strategy, or a match range without `share`.
    """

    debug: bool = field(default=False, kw_only=True)
    unchecked: bool = field(default=False, kw_only=True)
    observers: tuple[Observer, ...] = field(default=(), kw_only=True)
    passes: tuple[Pass, ...] = field(default=(), kw_only=True)
    schedule: tuple[Pass, ...] | Callable[[Any], object] | str | None = field(default="auto", kw_only=True)

    def __post_init__(self) -> None:
        StorageOptions.__post_init__(self)
        self.demand_strategy()
        object.__setattr__(self, "observers", _callables("observers", self.observers))
        object.__setattr__(self, "passes", _callables("passes", self.passes))
        given: Any = self.schedule
        if hasattr(given, "steps"):
            from tirlite.rewrite.pipeline import Taken

            given = Taken.of(given)
        is_named = given is None or (isinstance(given, str) and given in ("auto", "compact"))
        if not is_named and not callable(given):
            listed = _callables("schedule", given, _SCHEDULE)
            object.__setattr__(self, "schedule", given if isinstance(given, tuple) else listed)

    @classmethod
    def of(cls, choices: Choices) -> Options:
        """The options with these choices, and defaults otherwise. Raises CallTypeError for an unknown name."""
        known = [name for name in parts_of(cls) if name not in _OF_THE_PASS]
        for name in choices:
            if name not in known:
                listed = ", ".join(f"`{each}`" for each in known)
                raise UnknownOption(name, listed, hint(name, known)).error()
        return cls(**choices)  # type: ignore[arg-type]


_SCHEDULE = "'auto', 'compact', None, what `tl.schedule` makes, its steps, or a function that applies steps"
_STRATEGY = "the name of a strategy, or a function from a Problem to a Plan"


def _demand(name: str, given: object, fits: bool, wanted: str) -> None:
    if not fits:
        raise OptionType(name, wanted, f"{given!r:.60}").error()


def _callables(name: str, given: object, listed_as: str = "") -> tuple[Any, ...]:
    """`given` as a tuple of callables; `listed_as` says for an error what else the option takes."""
    listed = tuple(given) if isinstance(given, Iterable) else (given,)
    made = next((each.__name__ for each in listed if isinstance(each, type)), "")
    wanted = (listed_as or f"a list of {name}") + (f", made by a call: {made}()" if made else "")
    _demand(name, given, isinstance(given, Iterable) and not made and all(map(callable, listed)), wanted)
    return listed
