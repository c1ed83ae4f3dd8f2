"""Finds the strategy to be taken in place of one whose plan is good, but not proved to be safe.

Which of two symbolic sizes is larger may be beyond the prover, and a plan that rests on it good. Its problem is still
planned: `share` needs few proofs, as all its offsets are 0, and `none` needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

from tirlite.diag import KernelError, Message
from tirlite.plan.check import check
from tirlite.plan.plan import Plan
from tirlite.plan.problem import Problem
from tirlite.plan.strategy import Strategy
from tirlite.plan.verdict import Counterexample, Fault
from tirlite.record import record
from tirlite.sizes.evaluate import sample_bindings

T = TypeVar("T")

_WEAKER: Mapping[str, str] = MappingProxyType(
    {"auto": "share", "exact": "share", "pack": "share", "group": "share", "coalesce": "share", "share": "none"}
)


@record
class Doubt:
    """What is said against a plan of which only the proof is missing that it is safe."""

    message: Message


def without_doubt(strategy: str | Strategy, attempt: Callable[[str | Strategy], T | Doubt]) -> T:
    """What `attempt` makes by `strategy`, or by the first weaker one that leaves no doubt.

    Raises the error of the last doubt where there is no weaker one, as for a strategy of the user's own.
    """
    while isinstance(made := attempt(strategy), Doubt):
        if not isinstance(strategy, str) or strategy not in _WEAKER:
            raise made.message.error()
        strategy = _WEAKER[strategy]
    return made


def is_doubt(problem: Problem, plan: Plan, fault: Counterexample) -> bool:
    """Whether the plan fits, and is safe for a few values of the dims; False where there are no dims."""
    if fault.fault is Fault.CAPACITY:
        return False
    try:
        bindings = sample_bindings(problem.dims) if problem.dims else ()
        return bool(bindings) and all(check(problem.at(each), plan.at(each)) for each in bindings)
    except KernelError:  # a division by zero
        return False
