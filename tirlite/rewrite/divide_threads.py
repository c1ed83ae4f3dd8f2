"""A launch (the outermost of some loops over threads) in, the statements that take its place out."""

from __future__ import annotations

from tirlite.ir import For, SeqStmt, run
from tirlite.rewrite.thread_emission import Emission
from tirlite.rewrite.thread_names import Names
from tirlite.rewrite.thread_phases import Phases


def divided(launch: For, *, windows: bool = False) -> SeqStmt:
    """`launch` phase by phase: threads from barrier to barrier, virtual threads statement by statement.

    With `windows`, what each thread has a copy of keeps its name and axes, as a view of the thread's part.
    Raises KernelError for a barrier that not all threads come to alike, and for what has no size in common.
    """
    phases = Phases(launch)
    items = phases.divide()
    names = Names(phases, windows)
    names.settle(items)
    return run(Emission(names).block(items))
