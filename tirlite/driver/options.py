"""What an author may choose about a kernel's compilation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from tirlite.diag import CallTypeError, Message, nearest
from tirlite.plan.cache import PlanCache
from tirlite.plan.strategy import Strategy, demand_match_range, is_count, strategy_called
from tirlite.record import parts_of, record
from tirlite.target import Target

if TYPE_CHECKING:
    from typing import TypedDict

    from tirlite.plan.search.engine import Engine
    from tirlite.rewrite import Observer, Pass

    # At run time each field would be compiled for it.
    class Choices(TypedDict, total=False):
        """The options of `tl.compile` and `tl.kernel`, by name; those of `Options`."""

        strategy: str | Strategy
        in_place: bool
        exact_dtype: bool
        match_range: int | None
        capacity: int | None
        debug: bool
        target: Target
        budget: int | None
        time_limit: float | None
        observers: Iterable[Observer]
        passes: Iterable[Pass]
        engine: Callable[[], Engine] | None
        cache: PlanCache | None


class UnknownOption(Message):
    """There is no option of this name.

    Example: `tl.compile(f, strategie="exact")`.
    Fix: Correct the name; the help lists all of them.
    """

    code = "unknown-option"
    raises = CallTypeError
    title = "a kernel has no option `{name}`"
    help = "the options are {known}{hint}"

    name: str
    known: str
    hint: str


class OptionType(Message):
    """An option is given something of another kind than it takes.

    Example: `tl.compile(f, target="host")`.
    Fix: Give what the message asks for.
    """

    code = "option-type"
    raises = CallTypeError
    title = "option `{name}` takes {wanted}, and is given {given}"

    name: str
    wanted: str
    given: str


@record
class Options:
    """How a kernel is compiled.

    `strategy` plans the storage of the temporaries: a name, or a function of your own from a `plan.Problem` to a
    `plan.Plan`. With `in_place`, a buffer may take over the bytes of one that dies where it is born. With
    `exact_dtype`, buffers of one element type only share storage, lanes included, but for tagged memory. With a
    `match_range`, an option of strategy `share`, free storage is taken only of 1 / match_range to match_range times the
    size that is needed, and with 0 none. With a `capacity`, what the function plans must fit into so many bytes of each
    ordinary memory, or else the error names who lives at the peak. With `debug`, the code checks itself as it runs, see
    docs/debugging.md. `target` describes tagged memory. `budget` (in search nodes) and `time_limit` (seconds) bound
    strategy `exact`; `engine` makes what runs its search, and the plan does not depend on it. Plans are kept in
    `cache`, and taken from there for the same storage problem; None plans anew. Each of `observers` is called with
    every pass's `Step`. `passes` run before storage is planned, as in `tl.compile(f, passes=tl.passes.CONTRACTION)`.
    Raises PlanError for an unknown strategy and a match range without `share`, CallTypeError for an option of the wrong
    type.
    """

    strategy: str | Strategy = "auto"
    in_place: bool = True
    exact_dtype: bool = False
    match_range: int | None = None
    capacity: int | None = None
    debug: bool = False
    target: Target = field(default_factory=Target.host)
    budget: int | None = None
    time_limit: float | None = None
    observers: tuple[Observer, ...] = ()
    passes: tuple[Pass, ...] = ()
    engine: Callable[[], Engine] | None = None
    cache: PlanCache | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "observers", _callables("observers", self.observers))
        object.__setattr__(self, "passes", _callables("passes", self.passes))
        _demand("strategy", self.strategy, isinstance(self.strategy, str) or callable(self.strategy), _STRATEGY)
        _demand("target", self.target, isinstance(self.target, Target), "a Target, as in tl.Target.host(workers=2)")
        _demand("budget", self.budget, self.budget is None or isinstance(self.budget, Integral), "a number of nodes")
        for name in ("debug", "in_place", "exact_dtype"):
            _demand(name, getattr(self, name), isinstance(getattr(self, name), bool), "True or False")
        limit = self.time_limit
        _demand("time_limit", limit, limit is None or isinstance(limit, Real), "a number of seconds")
        cache, engine = self.cache, self.engine
        _demand("cache", cache, cache is None or isinstance(cache, PlanCache), "a plan.PlanCache, or None")
        _demand("engine", engine, engine is None or callable(engine), "what makes an engine, or None")
        if isinstance(self.strategy, str):
            strategy_called(self.strategy)
        for name in ("match_range", "capacity"):
            _demand(name, getattr(self, name), is_count(getattr(self, name)), "a whole number, zero or more")
        if self.match_range is not None:
            demand_match_range(self.strategy)

    @classmethod
    def of(cls, choices: Choices) -> Options:
        """The options with what was chosen, and the defaults of the rest. Raises CallTypeError for an unknown name."""
        known = list(parts_of(cls))
        for name in choices:
            if name not in known:
                near = nearest(name, known)
                listed = ", ".join(f"`{each}`" for each in known)
                raise UnknownOption(name, listed, f"; did you mean {near}?" if near else "").error()
        return cls(**choices)  # type: ignore[arg-type]


_STRATEGY = "the name of a strategy, or a function from a Problem to a Plan"


def _demand(name: str, given: object, fits: bool, wanted: str) -> None:
    if not fits:
        raise OptionType(name, wanted, f"{given!r:.60}").error()


def _callables(name: str, given: object) -> tuple[Any, ...]:
    """What is given, as a tuple."""
    listed = tuple(given) if isinstance(given, Iterable) else (given,)
    _demand(name, given, isinstance(given, Iterable) and all(map(callable, listed)), f"a list of {name}")
    return listed
