"""The pipelines: which passes run, in which order."""

from __future__ import annotations

from collections.abc import Callable

from tirlite.plan import Plan, Strategy
from tirlite.rewrite.check_races import CheckRaces
from tirlite.rewrite.inject_virtual_threads import InjectVirtualThreads
from tirlite.rewrite.normalize import Normalize
from tirlite.rewrite.pipeline import Pass
from tirlite.rewrite.shape_rewrite import ByShape
from tirlite.rewrite.split_threads import SplitThreads
from tirlite.rewrite.storage_rewrite import StorageRewrite
from tirlite.target import Target


def default_pipeline(
    strategy: str | Strategy = "auto",
    on_plan: Callable[[Plan | ByShape], None] | None = None,
    target: Target | None = None,
    *,
    in_place: bool = True,
    budget: int | None = None,
    time_limit: float | None = None,
) -> tuple[Pass, ...]:
    """What `tirlite.compile` runs before code is generated. The options are those of `StorageRewrite`."""
    return (
        Normalize(),
        CheckRaces(),
        InjectVirtualThreads(),
        SplitThreads(),
        StorageRewrite(strategy, in_place, target or Target.host(), on_plan, budget=budget, time_limit=time_limit),
    )
