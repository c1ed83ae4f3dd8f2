"""The pipelines: which passes run, in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tirlite.ir import PrimFunc, calls_in
from tirlite.ir.demand import pass_call
from tirlite.record import record, replace
from tirlite.rewrite.checks import CheckBounds, CheckRaces
from tirlite.rewrite.forms import NEVER, Form
from tirlite.rewrite.loops.parallelize_loops import ParallelizeLoops
from tirlite.rewrite.loops.partition_loops import PartitionLoops
from tirlite.rewrite.normalize import Normalize
from tirlite.rewrite.on_demand import (
    BlockReductions,
    CheckReductions,
    ComputeOnce,
    DivideLoops,
    FindReductions,
    InjectVirtualThreads,
    NameValues,
    NarrowIntegers,
    SplitReductions,
    SplitThreads,
    TightenLoops,
    UnmarkLoops,
    UsePermissions,
)
from tirlite.rewrite.options import Options
from tirlite.rewrite.pipeline import Pass, versions
from tirlite.rewrite.storage import StorageRewrite
from tirlite.rewrite.vectors.vectorize_loops import VectorizeLoops
from tirlite.target.processor import processor_called

if TYPE_CHECKING:
    from typing import Unpack

    from tirlite.plan import Strategy
    from tirlite.rewrite.options import BesideStrategy


@record
class LowerCallees:
    """Runs `passes` on each callee, callees of callees first, and makes callers allocate their scratch.

    Calls in which a dim may be 0 use versions for empty arrays, see `fit_callees`.
    """

    passes: tuple[Pass, ...] = ()
    name: str = "lower-callees"
    # Called with each lowered function, so that its code can be generated while others are still being lowered.
    observers: tuple[Callable[[PrimFunc], object], ...] = ()

    @pass_call
    def __call__(self, func: PrimFunc) -> PrimFunc:
        if not calls_in(func.body):
            return func
        from tirlite.rewrite.storage.lifted_scratch import with_callees_lowered

        return with_callees_lowered(func, self.passes, self.observers)


# The passes on loops that have no schedule; they only use what the function itself tells.
LOOPS: tuple[Pass, ...] = (
    ComputeOnce(),
    DivideLoops(),
    NarrowIntegers(),
    ParallelizeLoops(),
    PartitionLoops(),
    VectorizeLoops(),
)
# From this many elements on, workers share reductions of integers; fewer take 15 us mostly, and 150 us at most.
_MANY = 1 << 18
# From this many iterations on, workers may share a loop that is all that a function does; few shorter ones pay.
_ALONE = 1 << 14


def default_pipeline(strategy: str | Strategy = "auto", **choices: Unpack[BesideStrategy]) -> tuple[Pass, ...]:
    """The passes with these options, up to code generation; a kernel's pipeline adds the rules of `tl.schedules`."""
    return pipeline(Options.of({**choices, "strategy": strategy}))


def pipeline(options: Options, form: Form = Form.USUAL, auto: tuple[Pass, ...] = LOOPS) -> tuple[Pass, ...]:
    """The passes of a compilation. Those of the options run before storage is planned, also on callees.

    `auto` is used if the options give no schedule. With `debug`, buffers keep the axes that errors name them by, and
    accesses are checked last; otherwise they are checked before anything moves. The outermost function plans the
    scratch of all its callees, so only that one has the capacity.
    """
    in_order = form is Form.IN_ORDER
    first, last = _checks(options, in_order)
    prepare: tuple[Pass, ...] = (
        InjectVirtualThreads(windows=options.debug),
        SplitThreads(windows=options.debug),
        CheckRaces(),
        CheckReductions(),
        *(() if in_order else options.passes),
    )
    # Debug code reports the first fault in the order written.
    given = None if options.debug or in_order else _in_form(options.schedule, form)
    # Blocks allocate storage, which loops as written must not.
    machine = options.target.name
    sparing = options.capacity is not None
    blocks = () if options.schedule is None else (BlockReductions(serial=options.debug, sparing=sparing),)
    # A single worker shares nothing.
    shared_from = _MANY if options.target.workers > 1 else NEVER
    shared_from = shared_from if form in (Form.USUAL, Form.SMALL) else 0
    reductions = FindReductions(integers=True, shared_from=shared_from)
    found: tuple[Pass, ...] = (
        (NameValues(), TightenLoops(), reductions, UnmarkLoops()) if isinstance(given, str) else ()
    )
    if isinstance(given, tuple):
        found, given = _found_by(given)
    found = tuple(
        replace(each, shared_from=shared_from) if isinstance(each, FindReductions) else each for each in found
    )
    looks = () if any(isinstance(each, FindReductions) for each in found) else (FindReductions(),)
    split = () if in_order else (*looks, *blocks, SplitReductions(machine))
    regroup = (*split, UsePermissions(machine))
    # Storage by shape is planned in the outermost function, which contains the scratch of its callees.
    within = "auto" if options.strategy == "per_shape" else options.strategy
    storage = StorageRewrite.of(options)
    of_callees = StorageRewrite.of(options, strategy=within, capacity=None)
    in_callees = () if given is None else tuple(map(_of_callees, auto))
    callees = LowerCallees(
        (Normalize(), *map(_of_callees, found), *first, *prepare, *in_callees, *regroup, of_callees, *last)
    )
    if options.debug or in_order:
        return (Normalize(), *first, *prepare, *regroup, callees, storage, *last)
    by_author = isinstance(given, tuple)
    looked_from = NEVER if options.schedule is None or options.target.workers == 1 else shared_from
    chosen = (_bounds(options, form, by_author, looked_from),) if first else ()
    loops = given if isinstance(given, tuple) else () if given is None else auto
    loops = tuple(replace(e, form=form, target=machine) if isinstance(e, VectorizeLoops) else e for e in loops)
    if options.target.workers > 1 and form is not Form.ALONE:
        alone = 1 if form is Form.LARGE else _ALONE
        loops = tuple(replace(e, alone_from=alone) if isinstance(e, ParallelizeLoops) else e for e in loops)
    if sparing and not by_author:
        loops = tuple(replace(e, sparing=True) if isinstance(e, ParallelizeLoops) else e for e in loops)
    return (Normalize(), *found, *chosen, *prepare, *loops, *regroup, callees, storage)


def _bounds(options: Options, form: Form, by_author: bool, shared_from: int) -> CheckBounds:
    """The pass that checks accesses which are not proved in bounds, with the forms that these options allow."""
    by_rules = isinstance(options.schedule, str)
    return CheckBounds(
        at_entry=form is not Form.ALONE,
        # A condition before a loop would separate loops that the author's steps need together.
        at_loops=not by_author,
        at_gathers=checks_at_gathers(options),
        by_blocks=by_rules and processor_called(options.target.name).masks_gathers,
        by_nests=by_rules,
        shared_from=shared_from,
    )


def checks_at_gathers(options: Options) -> bool:
    """Whether indices are checked as vectors gather them; for rows shared by workers they are checked beforehand."""
    by_rules = isinstance(options.schedule, str)
    return by_rules and options.target.workers == 1 and processor_called(options.target.name).masks_gathers


def _in_form(schedule: object, form: Form) -> object:
    """The steps of a schedule for a version; those for all sizes if it has none for these."""
    if not isinstance(schedule, tuple):
        return schedule
    made = versions(schedule)
    return schedule if form is Form.USUAL else made.get(form, made[Form.USUAL])


def _found_by(steps: tuple[Pass, ...]) -> tuple[tuple[Pass, ...], tuple[Pass, ...]]:
    """The leading steps that decide which loops there are, and run before accesses are checked, and the others."""
    many = next(
        (at for at, each in enumerate(steps) if not isinstance(each, NameValues | TightenLoops | FindReductions)),
        len(steps),
    )
    return steps[:many], steps[many:]


def _of_callees(each: Pass) -> Pass:
    """A pass for functions that are called, which may receive one array as two parameters."""
    return replace(each, called=True) if isinstance(each, ComputeOnce | TightenLoops | VectorizeLoops) else each


def _checks(options: Options, in_order: bool) -> tuple[tuple[Pass, ...], tuple[Pass, ...]]:
    """The passes that check accesses before anything moves, and those that do so at the end, with `debug`."""
    if options.debug:
        return (), (CheckBounds(),)
    return (() if options.unchecked else (CheckBounds(at_loops=not in_order, plainly=in_order),)), ()
