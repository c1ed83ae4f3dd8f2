"""StorageRewrite merges the allocations of a function by a plan.

Its implementation, see `planned_storage`, is only loaded for functions that allocate: it splits allocations, poses the
storage problem, plans, and rewrites the function.
"""

from __future__ import annotations

from typing import Any

from tirlite.analysis.facts import Facts
from tirlite.ir import Allocate, For, ForKind, statements_of
from tirlite.record import parts_of
from tirlite.rewrite.normalize import Normalize
from tirlite.rewrite.options import StorageOptions
from tirlite.rewrite.pipeline import FactsPass, Rewritten, after


class StorageRewrite(StorageOptions, FactsPass):
    """Plans the storage of a function by a strategy of `tirlite.plan`, and rewrites its normal form (see `Normalize`).

    The options are those of `StorageOptions`. An allocation that is never accessed disappears under every strategy;
    else `none` leaves each where it is. Under `tvm`, buffers are not split, and only pairs that TVM's rule accepts are
    in place. With `per_shape`, the result takes a plan with each call as its last parameter, if some size is symbolic.
    Strategies that choose offsets align buffers of 64 bytes or more to 64 bytes; to less if a capacity asks for it,
    and, in a function that calls kernels, if that saves bytes. If a plan with offsets is safe for all samples of the
    dims but that is not proved, the plan of `share` is used, and then that of `none`; if it fails for a sample, that is
    an error.

    Raises PlanError for an unknown strategy or memory, CapacityError if a memory is too small, KernelError if virtual
    threads are left.
    """

    @classmethod
    def of(cls, options: StorageOptions, **changes: Any) -> StorageRewrite:
        """The pass with these options, some of them changed."""
        return cls(**{name: getattr(options, name) for name in parts_of(StorageOptions)} | changes)

    def on(self, facts: Facts) -> Rewritten:
        self.demand_strategy()
        if any(loop.kind is ForKind.THREAD for loop in statements_of(facts.func.body, For)):
            from tirlite.rewrite.threads import demand_injected

            demand_injected(facts.func, self.name)
        facts = after(Normalize(), facts)
        if isinstance(self.strategy, str) and not any(True for _ in statements_of(facts.func.body, Allocate)):
            return Rewritten(facts.func)
        from tirlite.rewrite.storage.planned_storage import rewritten

        return rewritten(facts, self)
