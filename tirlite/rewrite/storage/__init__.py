"""StorageRewrite merges the allocations of a function by a plan.

The way from allocations to merged ones is loaded for functions that allocate, see `planned_storage`: they are split,
posed as a problem, planned, and written again.
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

    The options are those of `StorageOptions`. With strategy `none` each allocation stays where it is. An allocation
    that is never touched disappears under every strategy. Under `tvm` buffers are not split, and only what TVM's rule
    takes of what is safe stands in place. With strategy `per_shape` the result takes a plan with each call as its last
    parameter, if some size is symbolic. Where offsets are chosen, buffers of 64 bytes or more are aligned to 64 bytes;
    to less where a capacity asks for it, and in a function that calls kernels where that saves bytes. Where only the
    proof is missing that a plan with offsets is safe, the plan is that of `share`, and after that of `none`; what is
    wrong for some sample of the dims is an error.

    Raises PlanError for an unknown strategy or memory, CapacityError where a memory is too small, KernelError where
    virtual threads are left.
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
