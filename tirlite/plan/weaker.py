"""A plan that was not proved safe in; the strategy to be taken in its place out, where only the proof is missing.

Which of two symbolic sizes is larger may be beyond the prover, and a plan that rests on it good. Its problem is still
planned: `share` needs few proofs, as all its offsets are 0, and `none` needs none.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tirlite.diag import KernelError
from tirlite.plan.check import check
from tirlite.plan.plan import Plan
from tirlite.plan.problem import Problem
from tirlite.plan.verdict import Counterexample, Fault
from tirlite.sizes.evaluate import sample_bindings

WEAKER: Mapping[str, str] = MappingProxyType(
    {"auto": "share", "exact": "share", "pack": "share", "group": "share", "coalesce": "share", "share": "none"}
)


def weaker_strategy(strategy: str, problem: Problem, plan: Plan, fault: Counterexample) -> str | None:
    """What to take instead of `strategy`; None where the plan is wrong at a sample of the dims, or takes too much."""
    if strategy not in WEAKER or fault.fault is Fault.CAPACITY or not _holds_at_samples(problem, plan):
        return None
    return WEAKER[strategy]


def _holds_at_samples(problem: Problem, plan: Plan) -> bool:
    """Whether the plan is safe for a few values of the dims, where all is arithmetic; False where there are no dims."""
    try:
        bindings = sample_bindings(problem.dims) if problem.dims else ()
        return bool(bindings) and all(check(problem.at(each), plan.at(each)) for each in bindings)
    except KernelError:  # a division by zero
        return False
