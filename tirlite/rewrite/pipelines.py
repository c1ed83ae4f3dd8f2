"""The pipelines: which passes run, in which order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from tirlite.rewrite.check_races import CheckRaces
from tirlite.rewrite.check_reductions import CheckReductions
from tirlite.rewrite.lower_callees import LowerCallees
from tirlite.rewrite.normalize import Normalize
from tirlite.rewrite.pipeline import Pass
from tirlite.rewrite.split_reductions import SplitReductions
from tirlite.rewrite.storage_rewrite import StorageRewrite
from tirlite.rewrite.threads.inject_virtual import InjectVirtualThreads
from tirlite.rewrite.threads.split import SplitThreads
from tirlite.target import Target

if TYPE_CHECKING:
    from tirlite.plan import Plan, PlanCache, Strategy
    from tirlite.plan.search.engine import Engine
    from tirlite.rewrite.shape_rewrite import ByShape


def default_pipeline(
    strategy: str | Strategy = "auto",
    on_plan: Callable[[Plan | ByShape], None] | None = None,
    target: Target | None = None,
    *,
    in_place: bool = True,
    exact_dtype: bool = False,
    match_range: int | None = None,
    capacity: int | None = None,
    debug: bool = False,
    budget: int | None = None,
    time_limit: float | None = None,
    engine: Engine | None = None,
    cache: PlanCache | None = None,
    passes: tuple[Pass, ...] = (),
) -> tuple[Pass, ...]:
    """What `tirlite.compile` runs before code is generated.

    `passes` run before storage is planned, on the function itself and on those that it calls. With `debug`, buffers
    keep the axes that errors name them by. The other options are those of `StorageRewrite`; `capacity` is for the
    outermost function, which plans the scratch of the others.
    """
    memory = target or Target.host()
    prepare: tuple[Pass, ...] = (
        Normalize(),
        InjectVirtualThreads(),
        SplitThreads(windows=debug),
        CheckRaces(),
        CheckReductions(),
        *passes,
        SplitReductions(),
    )
    # What differs by shape is planned by the outermost function, with the scratch of the others in it.
    within = "auto" if strategy == "per_shape" else strategy
    storage = partial(
        StorageRewrite,
        in_place=in_place,
        target=memory,
        exact_dtype=exact_dtype,
        match_range=match_range,
        budget=budget,
        time_limit=time_limit,
        engine=engine,
        cache=cache,
    )
    callees = LowerCallees((*prepare, storage(within)))
    return (*prepare, callees, storage(strategy, on_plan=on_plan, capacity=capacity))
