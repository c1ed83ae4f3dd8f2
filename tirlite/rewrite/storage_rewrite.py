"""StorageRewrite merges the allocations of a function by a plan.

What plans and merges is loaded for functions that allocate, see `rewrite.planned_storage`.
"""

from __future__ import annotations

from typing import Any

from tirlite.ir import Allocate, PrimFunc, statements_of
from tirlite.ir.demand import pass_call
from tirlite.record import parts_of, record
from tirlite.rewrite.normalize import Normalize
from tirlite.rewrite.options import StorageOptions
from tirlite.rewrite.pipeline import Rewritten
from tirlite.rewrite.threads.inject_virtual import demand_injected


@record
class StorageRewrite(StorageOptions):
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

    name: str = "storage-rewrite"

    @classmethod
    def of(cls, options: StorageOptions, **changes: Any) -> StorageRewrite:
        """The pass with these options, some of them changed."""
        return cls(**{name: getattr(options, name) for name in parts_of(StorageOptions)} | changes)

    @pass_call
    def __call__(self, func: PrimFunc) -> PrimFunc:
        return self.planned(func).func

    @pass_call
    def planned(self, func: PrimFunc) -> Rewritten:
        """The function as the pass leaves it, and the plan that it followed, or with `per_shape` what makes plans."""
        self.demand_strategy()
        demand_injected(func, self.name)
        func = Normalize()(func)
        if isinstance(self.strategy, str) and not any(True for _ in statements_of(func.body, Allocate)):
            return Rewritten(func)
        from tirlite.rewrite.planned_storage import rewritten

        return rewritten(func, self)
