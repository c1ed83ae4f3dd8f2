"""Passes in a row: a function in, the function after the last pass out, with observers told of every step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Protocol, TypeAlias

from tirlite.ir import PrimFunc
from tirlite.ir.demand import of_prim_func
from tirlite.plan.collection import collection_paused
from tirlite.record import record


class Pass(Protocol):
    """A rewrite PrimFunc -> PrimFunc with a name: a small frozen dataclass whose fields are its options."""

    @property
    def name(self) -> str: ...

    def __call__(self, func: PrimFunc) -> PrimFunc: ...


@record
class Step:
    """One pass that has run. `number` counts from 1."""

    number: int
    name: str
    before: PrimFunc
    after: PrimFunc
    seconds: float

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
            after = each(func)
        step = Step(number, each.name, func, after, perf_counter() - start)
        for observer in watching:
            observer(step)
        func = after
    return func
