"""A function and options in; the passes' result, the plan, and native code out, with the seconds of each stage.

Each stage loads what it needs itself: a program may define many kernels and compile few.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from tirlite.gate import GATE
from tirlite.plan.collection import collection_paused
from tirlite.record import cached_property

if TYPE_CHECKING:
    from tirlite.codegen import Lowered, Optimised
    from tirlite.ir import PrimFunc
    from tirlite.plan import Plan
    from tirlite.rewrite import Step
    from tirlite.rewrite.options import Options
    from tirlite.rewrite.pipeline import Rewritten
    from tirlite.rewrite.shape_rewrite import ByShape
    from tirlite.runtime import Executable, ShapePlans, Signature


class Version:
    """One function on its way to native code; each stage runs once, when it is first asked for, in one thread.

    `stages` are the seconds of those that have run, in order, and `note` says where LLVM was held back.
    """

    def __init__(self, func: PrimFunc, options: Options) -> None:
        self.func = func
        self.options = options
        self.stages: list[tuple[str, float]] = []
        self.note = ""
        self._rewritten: Rewritten | None = None
        self._lowered: Lowered | None = None
        self._executable: Executable | None = None

    @property
    def rewritten(self) -> Rewritten:
        if self._rewritten is None:
            with GATE.inside(self):
                if self._rewritten is None:
                    self._rewritten = self._rewrite()
        return self._rewritten

    def _rewrite(self) -> Rewritten:
        from tirlite.rewrite.pipeline import Rewritten, run_pipeline
        from tirlite.rewrite.pipelines import pipeline

        steps: list[Step] = []
        func = run_pipeline(self.func, pipeline(self.options), (steps.append, *self.options.observers))
        self.stages += [(step.name, step.seconds) for step in steps]
        return Rewritten(func, next((step.plan for step in reversed(steps) if step.plan is not None), None))

    @cached_property
    def plan(self) -> Plan | ByShape:
        """The storage plan, or who makes one for each call; that of no requests where nothing is allocated."""
        if self.rewritten.plan is not None:
            return self.rewritten.plan
        from tirlite.plan import Problem, solve

        return solve(Problem(()), self.options.strategy)

    @property
    def lowered(self) -> Lowered:
        if self._lowered is None:
            with GATE.inside(self):
                if self._lowered is None:
                    self._lowered = self._lower()
        return self._lowered

    def _lower(self) -> Lowered:
        from tirlite.codegen import lower

        func = self.rewritten.func
        start = perf_counter()
        with collection_paused():
            lowered = lower(func, self.options.target.workers, debug=self.options.debug)
        self.stages.append(("codegen", perf_counter() - start))
        return lowered

    @property
    def executable(self) -> Executable:
        if self._executable is None:
            # Loading modules makes many objects that stay, and no cycles that end.
            with GATE.inside(self), collection_paused():
                if self._executable is None:
                    self._executable = self._compile()
        return self._executable

    @property
    def plans_kept(self) -> tuple[int, int]:
        """How many calls found a plan for their shape, and how many had to make one."""
        return (0, 0) if self._executable is None else self._executable.plans_kept

    def _compile(self) -> Executable:
        from tirlite.codegen import Effort, compile_module
        from tirlite.runtime import Executable, signature_of

        lowered = self.lowered
        code = compile_module(lowered)
        self.stages += code.seconds.items()
        start = perf_counter()
        signature = signature_of(self.func)
        executable = Executable(self.rewritten.func, signature, lowered, code, self._shape_plans(signature))
        self.stages.append(("link", perf_counter() - start))
        if code.effort is not Effort.FULL:
            extent = lowered.extent
            self.note = (
                f"LLVM's effort: {code.effort.name.lower()}, for {extent.lines} lines ({extent.longest} in a function),"
                f" {extent.loops} loops ({extent.deepest} deep), blocks {extent.nested} deep"
            )
        return executable

    def _shape_plans(self, signature: Signature) -> ShapePlans | None:
        """Who makes a plan for each shape that the function is called with, if it takes one."""
        chosen = self.rewritten.plan
        if chosen is None:
            return None
        from tirlite.analysis import plan_demands
        from tirlite.plan import Plan

        demands = plan_demands(self.rewritten.func)
        if isinstance(chosen, Plan) or demands is None:
            return None
        from tirlite.runtime import ShapePlans

        return ShapePlans(chosen.plans, chosen.variables, demands, signature)

    @cached_property
    def optimised(self) -> Optimised:
        from tirlite.codegen import optimised

        with GATE.inside():
            return optimised(self.lowered)
