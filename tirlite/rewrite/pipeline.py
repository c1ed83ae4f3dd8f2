"""Runs passes in a row, and tells observers of every step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import TYPE_CHECKING, Protocol, TypeAlias

from tirlite.ir import PrimFunc
from tirlite.ir.demand import of_prim_func
from tirlite.plan.collection import collection_paused
from tirlite.record import record

if TYPE_CHECKING:
    from tirlite.plan import Plan
    from tirlite.rewrite.shape_rewrite import ByShape


class Pass(Protocol):
    """A rewrite PrimFunc -> PrimFunc with a name: a small frozen dataclass whose fields are its options.

    A pass that plans storage has a method `planned` besides, which gives the function and the plan.
    """

    @property
    def name(self) -> str: ...

    def __call__(self, func: PrimFunc) -> PrimFunc: ...


@record
class Rewritten:
    """What a pass has made of a function, and the storage plan that it followed, or what makes one for each call.

    `plan` is None where nothing was planned.
    """

    func: PrimFunc
    plan: Plan | ByShape | None = None


@record
class Step:
    """One pass that has run. `number` counts from 1; `plan` is the storage plan that the pass followed, if any."""

    number: int
    name: str
    before: PrimFunc
    after: PrimFunc
    seconds: float
    plan: Plan | ByShape | None = None

    @property
    def changed(self) -> bool:
        return self.after is not self.before


Observer: TypeAlias = Callable[[Step], None]


@of_prim_func
def run_pipeline(func: PrimFunc, passes: Iterable[Pass], observers: Iterable[Observer] = ()) -> PrimFunc:
    """`func` after all passes, in order. Each observer is called after each pass."""
    watching = tuple(observers)
    for number, each in enumerate(passes, start=1):
        start = perf_counter()
        with collection_paused():
            planned: Callable[[PrimFunc], Rewritten] | None = getattr(each, "planned", None)
            made = Rewritten(each(func)) if planned is None else planned(func)
        step = Step(number, each.name, func, made.func, perf_counter() - start, made.plan)
        for observer in watching:
            observer(step)
        func = made.func
    return func
