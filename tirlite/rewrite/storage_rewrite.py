"""StorageRewrite: a function in, the function with its allocations merged by a plan out.

What plans and merges is loaded for functions that allocate, see `rewrite.planned_storage`.
"""

from __future__ import annotations

from tirlite.ir import Allocate, PrimFunc, statements_of
from tirlite.ir.demand import pass_call
from tirlite.plan.strategy import STRATEGIES
from tirlite.record import record
from tirlite.rewrite.normalize import Normalize
from tirlite.rewrite.storage_choices import StorageChoices
from tirlite.rewrite.threads.inject_virtual import demand_injected


@record
class StorageRewrite(StorageChoices):
    """Plans the storage of a function by a strategy of `tirlite.plan`, and rewrites its normal form (see `Normalize`).

    `strategy` is a name or a function of your own from a problem to a plan, as in `plan.solve`. With strategy `none`
    each allocation stays where it is. An allocation that is never touched disappears under every strategy. Tagged
    memory is planned as `target` describes it. With `in_place` a buffer may take over the bytes of one that dies in the
    statement that it is born in, or in one of the next, where that is proved to be safe. With `exact_dtype` only
    buffers of one element type, lanes included, share storage, but for tagged memory, which is one allocation anyway.
    `match_range` is that of strategy `share`, see `plan.solve`. `capacity` is the most bytes that what is planned may
    take of each ordinary memory. With `webs` buffers are split by `SplitWebs` before, where the plan takes less for it.
    Not under `tvm`, which does as TVM does, and stands in place only what TVM's rule takes of what is safe. `on_plan`
    is told the plan, where there is anything to plan. With strategy `per_shape` the result takes a plan with each call
    as its last parameter, if some size is symbolic, and `on_plan` is told who makes these plans. Where offsets are
    chosen, buffers of 64 bytes or more are aligned to 64 bytes; to less where a capacity asks for it, and in a function
    that calls kernels where that saves bytes. With `check` the result is proved to read what `func` would have read,
    see `analysis.check_storage`. Where only the proof is missing that a plan with offsets is safe, the plan is that of
    `share`, and after that of `none`, which `on_plan` is told then; what is wrong for some sample of the dims is an
    error. `budget` and `time_limit` bound the search of strategy `exact`, in nodes and in seconds; `engine` runs it, by
    default in Python. Plans that `cache` has are taken from there, but for those that differ by shape.

    Raises PlanError for an unknown strategy or memory, CapacityError where a memory is too small, KernelError where
    virtual threads are left.
    """

    name: str = "storage-rewrite"

    @pass_call
    def __call__(self, func: PrimFunc) -> PrimFunc:
        demand_injected(func, self.name)
        func = Normalize()(func)
        if self._is_usual and not any(True for _ in statements_of(func.body, Allocate)):
            return func
        from tirlite.rewrite.planned_storage import rewritten

        return rewritten(func, self)

    @property
    def _is_usual(self) -> bool:
        """Whether the planner would find nothing wrong with these options, nor do anything, were there no requests."""
        limits = (self.match_range, self.budget, self.time_limit)
        return isinstance(self.strategy, str) and self.strategy in STRATEGIES and limits == (None, None, None)
