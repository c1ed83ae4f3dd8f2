"""What may be chosen about the planning of a function's storage: the options of StorageRewrite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING

from tirlite.diag import CallTypeError, Message
from tirlite.record import record
from tirlite.show import shown
from tirlite.target import Target

if TYPE_CHECKING:
    from tirlite.plan import Plan, PlanCache, Strategy
    from tirlite.plan.search.engine import Engine
    from tirlite.rewrite.shape_rewrite import ByShape


class PassOption(Message):
    """A pass is made with an option of the wrong type.

    Example: `tl.passes.StorageRewrite("share", target="host")`.
    Fix: Give what the message asks for: here `tl.Target.host()`.
    """

    code = "pass-option"
    raises = CallTypeError
    title = "option `{name}` of StorageRewrite takes {wanted}, and is given {given}"

    name: str
    wanted: str
    given: str


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

    def __post_init__(self) -> None:
        if not isinstance(self.target, Target):
            raise PassOption("target", "a tl.Target", shown(self.target)).error()
        for name in ("in_place", "exact_dtype", "webs", "check"):
            given: object = getattr(self, name)
            if not isinstance(given, bool):
                raise PassOption(name, "True or False", shown(given)).error()
