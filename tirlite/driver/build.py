"""Compiles a function stage by stage: passes, plan, native code; records the seconds of each stage.

Imports are inside the stages that need them, as a program may define many kernels and compile few.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial, reduce
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

from tirlite.collection import collection_paused
from tirlite.diag import CallValueError, Message
from tirlite.driver.front import Front
from tirlite.gate import GATE
from tirlite.record import cached_property, replace
from tirlite.rewrite.forms import Form, FormLimits
from tirlite.show.environment import cache_folder, lines_are_wanted
from tirlite.target.processor import runs_here

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt

    from tirlite.codegen import Callees, Lowered, Optimised, SideBySide
    from tirlite.ir import PrimFunc
    from tirlite.plan import Plan
    from tirlite.rewrite import Step
    from tirlite.rewrite.options import Options
    from tirlite.rewrite.pipeline import Known, Rewritten
    from tirlite.rewrite.storage.shape_rewrite import ByShape
    from tirlite.runtime import Binding, Executable, ShapePlans, Signature
    from tirlite.runtime.artifact.artifact import Artifact
    from tirlite.runtime.quick import QuickCall

    Array: TypeAlias = npt.NDArray[Any]
    # The functions in C that check arguments before Python does, and the version that each runs.
    QuickCalls: TypeAlias = tuple[tuple[QuickCall, "Version"], ...]


# Modules needed after LLVM is done, which are imported while it runs.
_LINKING = ("tirlite.runtime.artifact.build", "tirlite.runtime.artifact.load", "tirlite.runtime.executable", "mmap")
# The module of the thread pool, whose code LLVM compiles at first use.
_POOL = "tirlite.runtime.pool"


class ForeignTarget(Message):
    """A kernel is called that was compiled for another machine than this one.

    Example: `tl.compile(f, target=tl.Target("aarch64"))(x)` on a machine of another kind.
    Fix: Compile it for `tl.Target.host()`; `kernel.asm` and `kernel.export` serve other machines.
    """

    raises = CallValueError
    title = "{kernel}() is compiled for {target}, whose code does not run on this machine"
    help = "compile it for tl.Target.host(); `asm` and `export` do what can be done for another machine"


class Version:
    """A function in one form, and its stages to native code; each runs once, when first needed.

    `stages`: the seconds of the stages that have run, in order. `note`: why LLVM's effort was limited, if it was.
    `calls`: the calls served so far, counted up to a limit: by this version, and by the sequential one in its place.
    `served`: the version that ran the last call: itself or one of its branches.
    A version made with `part` is the first or second branch of another version, see `branches.py`.
    """

    def __init__(
        self, front: Front, options: Options, form: Form = Form.USUAL, part: tuple[Version, int] | None = None
    ) -> None:
        self.front = front
        self.options = options
        self.form = form
        self._part = part
        self.served: Version = self
        self.stages: list[tuple[str, float]] = part[0].stages if part is not None else []
        self.note = ""
        self.calls = [0, 0]
        self._rewritten: Rewritten | None = None
        self._lowered: Lowered | None = None
        self._executable: Executable | None = None
        self._branches: tuple[Version, Version] | None = None
        self._are_branches_known = False

    @property
    def func(self) -> PrimFunc:
        """The function as it was written."""
        return self.front.func

    @property
    def signature(self) -> Signature:
        """The signature of the function, in its own variables."""
        return self.front.whole

    @property
    def rewritten(self) -> Rewritten:
        if self._rewritten is None:
            with GATE.inside(self):
                if self._rewritten is None:
                    self._rewritten = self._rewrite()
        return self._rewritten

    def _rewrite(self, ahead: Callees | None = None) -> Rewritten:
        """Runs the passes; `ahead` emits callees as soon as they are lowered."""
        if self._part is not None:
            from tirlite.driver.branches import branches_of

            whole, number = self._part
            branches = branches_of(whole.final)
            assert branches is not None
            return replace(whole.rewritten, func=branches[number], facts=None)
        from tirlite.rewrite.pipeline import Rewritten, run_pipeline
        from tirlite.rewrite.pipelines import LowerCallees, pipeline
        from tirlite.schedules.auto import auto

        options = self.options
        known: Known = getattr(options.schedule, "known", {})
        if callable(options.schedule):
            from tirlite.schedules import Schedule

            schedule = Schedule.by(options.schedule, self.func)
            options, known = replace(options, schedule=schedule.steps), schedule.known
        steps: list[Step] = []
        passes = pipeline(options, self.form, auto(options.target, self.form, options.schedule))
        if ahead is not None:
            observers = (ahead.write,)
            passes = tuple(replace(e, observers=observers) if isinstance(e, LowerCallees) else e for e in passes)
        func = run_pipeline(self.func, passes, (steps.append, *self.options.observers), known=known)
        for step in steps:
            written = ahead.seconds if ahead is not None and step.name == LowerCallees.name else 0.0
            self.stages.append((step.name, step.seconds - written))
        plan = next((step.plan for step in reversed(steps) if step.plan is not None), None)
        limits = reduce(FormLimits.beside, (step.limits for step in steps), FormLimits())
        # The version for small arrays keeps temporaries that others remove, and could exceed a capacity.
        if options.capacity is not None or options.schedule == "compact":
            limits = replace(limits, small_below=0)
        return Rewritten(func, plan, limits=limits)

    @cached_property
    def plan(self) -> Plan | ByShape:
        """The storage plan, or the planner for each shape; an empty plan if nothing is allocated."""
        if self.rewritten.plan is not None:
            return self.rewritten.plan
        from tirlite.plan import Problem, solve

        return solve(Problem(()), self.options.strategy)

    @property
    def final(self) -> PrimFunc:
        """The function after all passes, as code is generated from it."""
        return self.rewritten.func

    @property
    def lowered(self) -> Lowered:
        if self._lowered is None:
            with GATE.inside(self):
                if self._lowered is None:
                    self._lowered = self._lower()
        return self._lowered

    def _lower(self, ahead: Callees | None = None) -> Lowered:
        from tirlite.codegen import lower

        func = self.rewritten.func
        start = perf_counter() - (ahead.seconds if ahead is not None else 0.0)
        with collection_paused():
            debug, machine = self.options.debug, self.options.target.name
            lowered = lower(func, self._workers, debug=debug, target=machine, lines=lines_are_wanted(), ahead=ahead)
        self.stages.append(("codegen", perf_counter() - start))
        return lowered

    @property
    def executable(self) -> Executable:
        if self._executable is None:
            # Importing modules creates many long-lived objects and no garbage.
            with GATE.inside(self), collection_paused():
                if self._executable is None:
                    self._executable = self._compile()
                    with GATE.outside():  # log handlers may take any lock, and a fork waits for that of `logging`
                        log_compiled(self.front.name, self.form.value, self.stages, self.note)
        return self._executable

    @property
    def plans_kept(self) -> tuple[int, int]:
        """How many calls found a cached plan for their shape, and how many had to make one."""
        return (0, 0) if self._executable is None else self._executable.plans_kept

    def run(self, binding: Binding) -> bool:
        """Runs a checked call; False if nothing was done because the call is for the sequential version.

        Raises what `Executable.run` raises.
        """
        self.served = version = self._serving(binding)
        found = version.executable.run(binding, version)
        from tirlite.runtime.executable import Outcome  # already imported while LLVM ran

        if found is Outcome.ELSEWHERE and version._part is not None and self.branches is not None:
            self.served = version = self.branches[1 - version._part[1]]
            found = version.executable.run(binding, version)
        return found is Outcome.DONE

    def _serving(self, binding: Binding) -> Version:
        """The version itself, or one of its branches: that of the last call, or the one for the call's sizes."""
        if self._executable is not None or self.branches is None:
            return self
        if (served := self.served) is not self:
            return served
        if self._rewritten is None:
            return next(each for each in self.branches if each._kept[1] is not None)
        from tirlite.driver.branches import is_met

        return self.branches[not is_met(self.final, dict(zip(self.final.dims, binding.dims, strict=True)))]

    @property
    def branches(self) -> tuple[Version, Version] | None:
        """The versions for calls that meet a condition on dims, and for the others; None if the function has none."""
        if not self._are_branches_known:
            with GATE.inside(self):
                if not self._are_branches_known:
                    self._branches = self._find_branches()
                    self._are_branches_known = True
        return self._branches

    def _find_branches(self) -> tuple[Version, Version] | None:
        options = self.options
        is_usual = self.form is Form.USUAL and self._part is None and not (options.debug or options.observers)
        if not is_usual or options.strategy == "per_shape" or lines_are_wanted() or self._kept[1] is not None:
            return None
        made = tuple(Version(self.front, options, self.form, (self, number)) for number in (0, 1))
        if any(each._kept[1] is not None for each in made):
            return made[0], made[1]
        from tirlite.ir import IfThenElse, calls_in

        # The passes of a function with callees must run in `_objects`, where LLVM starts on the callees meanwhile.
        if calls_in(self.func.body):
            return None
        # A function with branches ends with the `if` that chooses between them.
        last = self.final.body.stmts[-1:]
        if not (last and isinstance(last[0], IfThenElse)):
            return None
        from tirlite.driver.branches import branches_of

        return (made[0], made[1]) if branches_of(self.final) is not None else None

    def quick(
        self,
        limits: FormLimits,
        strides: int,
        known: Mapping[str, Array],
        others: QuickCalls,
        in_order: Version | None = None,
    ) -> QuickCalls:
        """Adds to `others` a quick call for the sizes that this version serves; see `Executable.quick`.
        `known`: arrays that are the same for all calls. The new quick call passes on what it does not serve to the last
        of the others, and calls that break a condition on accesses to the version `in_order`, if given.
        """
        from tirlite.runtime.quick import Serves

        code, to, order = self.executable, others[-1][0] if others else None, None
        made = others
        if in_order is not None:
            order = next((quick for quick, version in made if version is in_order), None)
            if order is None:
                made = in_order.quick(limits, strides, known, made)
                order = made[-1][0] if made and made[-1][1] is in_order else None
        least, most = limits.sizes(self.form)
        serves = Serves(least, most, code.elsewhere, len(made), to, code.in_order, order)
        quick = code.quick(strides, serves, known)
        return others if quick is None else (*made, (quick, self))

    def message(self, fault: int) -> Message:
        """The message of a fault that the code returned."""
        return self.executable.message(fault, self)

    def _compile(self) -> Executable:
        if not runs_here(self.options.target.name):
            raise ForeignTarget(self.func.name, self.options.target.name).error()
        signature = self.front.signature
        key, found = self._kept
        objects = () if found is not None else self._objects()
        from tirlite.runtime import Executable

        start = perf_counter()
        artifact = found or self._linked(self.signature, objects)
        plans = self._shape_plans(self.signature) if artifact.plan_at >= 0 else None
        executable = Executable(artifact, signature, plans)
        self.stages.append(("link", perf_counter() - start))
        if key is not None and found is None and _is_repeatable(self.rewritten.plan):
            from tirlite.runtime.cache import keep_artifact

            keep_artifact(key, artifact)
        return executable

    @cached_property
    def _kept(self) -> tuple[bytes | None, Artifact | None]:
        """The key in the cache on disk, or None if the version is not cached, and the artifact found there."""
        start = perf_counter()
        # Line numbers are not part of a function's content.
        if not cache_folder() or lines_are_wanted():
            return None, None
        from tirlite.driver.content import content_key
        from tirlite.runtime.cache import find_artifact, folder

        if folder() is None:
            return None, None
        part = "" if self._part is None else f", part {self._part[1]}"
        key = content_key(self.front.content, self.options, self.form.value + part)
        if key is None:
            return None, None
        found = find_artifact(key)
        if found is not None:
            self.stages.append(("cache", perf_counter() - start))
        return key, found

    @cached_property
    def limits(self) -> FormLimits:
        """The sizes in bytes of all arrays for which other versions exist.

        Functions that call others have no such versions, and their passes run only when they are compiled.
        """
        from tirlite.ir import calls_in

        with collection_paused():
            for each in (self, *(self.branches or ())):
                if (artifact := each._kept[1]) is not None:
                    return FormLimits(artifact.small_below, artifact.large_from)
            return FormLimits() if calls_in(self.func.body) else self.rewritten.limits

    def _objects(self) -> tuple[bytes, ...]:
        """Compiles the object files; callees already while the rest is being lowered."""
        from tirlite.analysis.loops.patterns import distributed_loops
        from tirlite.codegen import SideBySide
        from tirlite.ir.kernel_call import closure_of

        with SideBySide(self.options.target.name) as beside:
            if self._rewritten is None and (ahead := self._ahead(beside)) is not None:
                self._rewritten = self._rewrite(ahead)
                self._lowered = self._lower(ahead)
            parts = self.lowered.parts
            beside.do_last(*(partial(import_module, each) for each in _LINKING if each not in sys.modules))
            workers = 1 if self.options.debug else self._workers
            if _POOL not in sys.modules and any(distributed_loops(each, workers) for each in closure_of(self.final)):
                beside.do_last(lambda: import_module(_POOL).pool_address())
            code = beside.finished(parts)
        self.stages += code.seconds.items()
        if not code.effort.vectorizes:
            extent = self.lowered.extent
            self.note = (
                f"LLVM's effort: {code.effort.name.lower()}, for {extent.lines} lines ({extent.longest} in a function),"
                f" {extent.loops} loops ({extent.deepest} deep), blocks {extent.nested} deep"
            )
        return code.objects

    def _ahead(self, beside: SideBySide) -> Callees | None:
        """An emitter for callees that are emitted before the rest of the function is lowered, if that saves time.

        Not with user code between the passes, which might fork while other threads compile.
        """
        from tirlite.codegen import Callees, offered_ahead

        options = self.options
        is_own = isinstance(options.strategy, str) and not (options.passes or options.observers)
        if not is_own or options.debug or lines_are_wanted() or not offered_ahead(self.func):
            return None
        return Callees.of(self.func.name, self._workers, options.target.name, beside.begin)

    @property
    def _workers(self) -> int:
        return 1 if self.form is Form.IN_ORDER else self.options.target.workers

    def _linked(self, signature: Signature, objects: tuple[bytes, ...]) -> Artifact:
        from tirlite.runtime.artifact.build import artifact_of

        limits = self.rewritten.limits
        return artifact_of(self.final, signature, self.lowered, objects, limits.small_below, limits.large_from)

    def _shape_plans(self, signature: Signature) -> ShapePlans | None:
        """The planner for each shape that the function is called with, if it takes a plan."""
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

    def export(self, folder: Path, name: str, constants: Mapping[str, Array], *, embed: bool) -> tuple[Path, ...]:
        """Writes the files for a C program, see `runtime.export.write`."""
        from tirlite.runtime.export.write import export

        with GATE.inside():
            return export(
                self.final,
                self.signature,
                folder,
                name,
                workers=self.options.target.workers,
                machine=self.options.target.name,
                constants=constants,
                embed=embed,
            )

    @cached_property
    def optimised(self) -> Optimised:
        from tirlite.codegen import optimised

        with GATE.inside():
            return optimised(self.lowered, self.options.target.name)


def _is_repeatable(plan: Plan | ByShape | None) -> bool:
    """Whether the plan is deterministic: Ctrl-C or a time limit may have ended its search."""
    if plan is None:
        return True
    from tirlite.plan import Plan

    return not isinstance(plan, Plan) or plan.deterministic


def version_of(front: Front, options: Options, *, is_empty: bool, form: Form) -> Version:
    """Another version than the usual one, without observers.
    `is_empty`: dims may be 0 that are declared to be at least 1; schedule steps may not hold then, so other schedules
    than "auto" are dropped. The sequential version has no capacity, as what keeps storage small may reorder loops.
    """
    options = replace(options, observers=())
    if form is Form.IN_ORDER:
        options = replace(options, capacity=None)
    if is_empty:
        from tirlite.rewrite.fit_callees import allowing_zero

        front = Front(allowing_zero(front.func))
        options = options if options.schedule == "auto" else replace(options, schedule=None)
    return Version(front, options, form)


def log_compiled(name: str, form: str, stages: Sequence[tuple[str, float]], note: str) -> None:
    """Logs a compiled function and its stages to the logger `tirlite`, at level DEBUG.

    A program that listens has imported `logging` itself, so tirlite does not.
    """
    logging = sys.modules.get("logging")
    if logging is None:
        return
    logger = logging.getLogger("tirlite")
    if logger.isEnabledFor(logging.DEBUG):
        took = ", ".join(f"{stage} {1000 * seconds:.1f} ms" for stage, seconds in stages)
        logger.debug("compiled %s (%s): %s%s", name, form, took, f"; {note}" if note else "")
