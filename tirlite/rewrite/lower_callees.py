"""Lowers all that a function calls, the storage of which is planned by the callers."""

from __future__ import annotations

from collections.abc import Callable

from tirlite.ir import PrimFunc, calls_in
from tirlite.ir.demand import pass_call
from tirlite.record import record
from tirlite.rewrite.pipeline import Pass


@record
class LowerCallees:
    """Runs `passes` on each function that is called, callees first, and lets callers allocate its scratch.

    Functions are called in the version for empty arrays where a dim may be 0, see `fit_callees`.
    """

    passes: tuple[Pass, ...] = ()
    name: str = "lower-callees"
    # Told of each function when it is lowered: code may be made of it while others still are.
    observers: tuple[Callable[[PrimFunc], object], ...] = ()

    @pass_call
    def __call__(self, func: PrimFunc) -> PrimFunc:
        if not calls_in(func.body):
            return func
        from tirlite.rewrite.storage.lifted_scratch import with_callees_lowered

        return with_callees_lowered(func, self.passes, self.observers)
