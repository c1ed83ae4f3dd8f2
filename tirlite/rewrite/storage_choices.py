"""What may be chosen about the planning of a function's storage: the options of StorageRewrite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING

from tirlite.record import record
from tirlite.target import Target

if TYPE_CHECKING:
    from tirlite.plan import Plan, PlanCache, Strategy
    from tirlite.plan.search.engine import Engine
    from tirlite.rewrite.shape_rewrite import ByShape


@record
class StorageChoices:
    """The fields of `StorageRewrite`, which says what each of them means."""

    strategy: str | Strategy = "auto"
    in_place: bool = True
    target: Target = field(default_factory=Target.host)
    on_plan: Callable[[Plan | ByShape], None] | None = None
    exact_dtype: bool = field(default=False, kw_only=True)
    match_range: int | None = field(default=None, kw_only=True)
    capacity: int | None = field(default=None, kw_only=True)
    webs: bool = field(default=True, kw_only=True)
    check: bool = field(default=True, kw_only=True)
    budget: int | None = field(default=None, kw_only=True)
    time_limit: float | None = field(default=None, kw_only=True)
    engine: Engine | None = field(default=None, kw_only=True)
    cache: PlanCache | None = field(default=None, kw_only=True)
