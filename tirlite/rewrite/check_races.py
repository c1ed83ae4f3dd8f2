"""CheckRaces: a function in, the same function out, or the error that two iterations of a parallel loop conflict."""

from __future__ import annotations

from tirlite.ir import For, ForKind, PrimFunc, statements_of
from tirlite.ir.demand import pass_call
from tirlite.record import record


@record
class CheckRaces:
    """Refuses a function in normal form in whose parallel loops two iterations are seen to conflict.

    What cannot be decided passes: the interpreter finds it. Two writes of the same value are a conflict too. Raises
    KernelError with both places, and two iterations that meet.
    """

    name: str = "check-races"

    @pass_call
    def __call__(self, func: PrimFunc) -> PrimFunc:
        if not any(loop.kind is ForKind.PARALLEL for loop in statements_of(func.body, For)):
            return func
        from tirlite.rewrite.parallel_race import demand_no_race  # and what tries programs at points

        demand_no_race(func)
        return func
