"""Cuts each temporary of a function of which a loop sees a few lines at a time down to these."""

from __future__ import annotations

from dataclasses import replace

from tirlite.analysis.access import Allocation
from tirlite.analysis.facts import Facts
from tirlite.analysis.index_space import IndexSpace
from tirlite.analysis.line_window import line_window
from tirlite.analysis.temporaries import common_regions, temporaries
from tirlite.ir import Expr, FloorMod, For, ForKind, IfThenElse, IntImm, Load, PrimFunc, Store, const, i64
from tirlite.record import record
from tirlite.rewrite.access_rewrite import Accesses, Reindex
from tirlite.rewrite.pipeline import FactsPass

# A window of more lines is left alone: its lines no longer stay close to the processor.
_MOST_LINES = 16


@record
class FoldStorage(FactsPass):
    """Cuts a temporary down to the lines that one iteration of a loop sees, which are used in turn.

    All uses are in one loop that goes up by 1, and iteration v sees of some axis only v + a to v + b: then line i lies
    at i % (b - a + 1). Two lines at one place are never seen by one iteration, and all uses of the first come before
    all of the second. For functions in normal form (see `Normalize`), after `FuseLoops` and `SinkAllocations`.
    Source of the idea: the storage folding of Halide.
    """

    name: str = "fold-storage"

    def rewritten(self, facts: Facts) -> PrimFunc:
        accesses = Accesses()
        for allocation in temporaries(facts):
            loop = _loop_around(allocation)
            fold = None if loop is None else _fold(allocation, loop, facts.space)
            if fold is not None:
                _apply(allocation, *fold, accesses)
        return accesses.apply(facts.func)


def _loop_around(allocation: Allocation) -> For | None:
    """The one loop, right inside of the allocation's body, that holds all uses and runs in order."""
    for region in common_regions(allocation.touches, allocation.home):
        composite = region.composite
        if not isinstance(composite, IfThenElse):
            is_plain = isinstance(composite, For) and composite.step == 1
            in_order = isinstance(composite, For) and composite.kind in (ForKind.SERIAL, ForKind.UNROLLED)
            return composite if isinstance(composite, For) and is_plain and in_order else None
    return None


def _fold(allocation: Allocation, loop: For, space: IndexSpace) -> tuple[int, int] | None:
    """The axis to be folded, and how many lines stay."""
    for axis, extent in enumerate(allocation.buffer.shape):
        lines = line_window(allocation.touches, axis, loop, space)
        is_less = lines is not None and (not isinstance(extent, IntImm) or lines < extent.value)
        if lines is not None and is_less and lines <= _MOST_LINES:
            return axis, lines
    return None


def _apply(allocation: Allocation, axis: int, lines: int, accesses: Accesses) -> None:
    old = allocation.buffer
    shape = (*old.shape[:axis], const(lines, i64), *old.shape[axis + 1 :])

    def reindex(index: Expr) -> Expr:
        return const(0, i64) if lines == 1 else FloorMod(index, const(lines, i64))

    changed: dict[Load | Store, dict[int, Reindex]] = {}
    for touch in allocation.touches:
        assert isinstance(touch.node, Load | Store)
        changed[touch.node] = {axis: reindex}
    accesses.reshape(old, replace(old, shape=shape), changed)
