"""What an author may choose about a kernel's compilation."""

from __future__ import annotations

from dataclasses import dataclass

from tirlite.diag import nearest
from tirlite.plan.solve import STRATEGIES, Strategy, UnknownStrategy
from tirlite.rewrite import Observer


@dataclass(frozen=True, slots=True)
class Options:
    """`strategy` plans the storage of the temporaries; `observers` are told of each pass. Raises PlanError."""

    strategy: str | Strategy = "auto"
    observers: tuple[Observer, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.strategy, str) and self.strategy not in STRATEGIES:
            near = nearest(self.strategy, STRATEGIES)
            raise UnknownStrategy(self.strategy, f"; did you mean {near}?" if near else "").error()
