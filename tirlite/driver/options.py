"""What an author may choose about a kernel's compilation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import TYPE_CHECKING, TypedDict

from tirlite.diag import nearest
from tirlite.plan.solve import STRATEGIES, Strategy, UnknownStrategy
from tirlite.record import record
from tirlite.rewrite import Observer, Pass
from tirlite.target import Target

if TYPE_CHECKING:
    from tirlite.plan import PlanCache
    from tirlite.plan.search.engine import Engine


class Choices(TypedDict, total=False):
    """The options of `tl.compile` and `tl.kernel`, by name; those of `Options`."""

    strategy: str | Strategy
    in_place: bool
    debug: bool
    target: Target
    budget: int | None
    time_limit: float | None
    observers: Iterable[Observer]
    passes: Iterable[Pass]
    engine: Callable[[], Engine] | None
    cache: PlanCache | None


@record
class Options:
    """How a kernel is compiled.

    `strategy` plans the storage of the temporaries: a name, or a function of your own from a `plan.Problem` to a
    `plan.Plan`. With `in_place`, a buffer may take over the bytes of one that dies where it is born. With
    `debug`, the code checks itself as it runs, see docs/debugging.md. `target` describes tagged memory. `budget` (in
    search nodes) and `time_limit` (seconds) bound strategy `exact`; `engine` makes what runs its search, and the plan
    does not depend on it. Plans are kept in `cache`, and taken from there for the same storage problem; None plans
    anew. Each of `observers` is called with every pass's `Step`. `passes` run before storage is planned, as in
    `tl.compile(f, passes=tl.passes.CONTRACTION)`. Raises PlanError for an unknown strategy.
    """

    strategy: str | Strategy = "auto"
    in_place: bool = True
    debug: bool = False
    target: Target = field(default_factory=Target.host)
    budget: int | None = None
    time_limit: float | None = None
    observers: tuple[Observer, ...] = ()
    passes: tuple[Pass, ...] = ()
    engine: Callable[[], Engine] | None = None
    cache: PlanCache | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "observers", tuple(self.observers))
        object.__setattr__(self, "passes", tuple(self.passes))
        if isinstance(self.strategy, str) and self.strategy not in STRATEGIES:
            near = nearest(self.strategy, STRATEGIES)
            raise UnknownStrategy(self.strategy, f"; did you mean {near}?" if near else "").error()

    @classmethod
    def of(cls, choices: Choices) -> Options:
        """The options with what was chosen, and the defaults of the rest."""
        return cls(**choices)  # type: ignore[arg-type]
