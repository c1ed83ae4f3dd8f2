"""StoreAt keeps only the lines of a temporary that an iteration of a loop uses, in rotation."""

from __future__ import annotations

from tirlite.analysis.access import Allocation
from tirlite.analysis.facts import Facts
from tirlite.analysis.regions import common_regions
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Expr, FloorMod, IntImm, Load, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.stmt import For, ForKind, IfThenElse, Store
from tirlite.record import record, replace
from tirlite.schedules.handle import BufferName, LoopName, buffer_named, loop_named
from tirlite.schedules.index_ranges import index_range
from tirlite.schedules.order import demand_temporaries
from tirlite.schedules.shrink import MUCH, Accesses, Reindex
from tirlite.schedules.step import ScheduleStep, does_not_fit


@record
class StoreAt(ScheduleStep):
    """Shrinks temporaries to the lines that one iteration of the loop `at` uses: a window that slides with the loop.

    All uses are in that loop, which has step 1, and along some axis iteration v only uses lines f * v + a to f * v + b,
    for a positive f. Line i is then stored at i % (b - a + 1): no iteration uses two lines stored at one place, and the
    earlier line's uses all come first. After `join` with a delay, each line is computed once and kept while it is read.
    Refused if `at` is not the loop with all uses, or the lines do not advance with it. After Halide's storage folding.
    """

    buffers: tuple[BufferName, ...]
    at: LoopName

    def rewritten(self, facts: Facts) -> PrimFunc:
        at = loop_named(facts.func, self.at)
        accesses = Accesses()
        for each in demand_temporaries(self, facts, (buffer_named(facts.func, name, at) for name in self.buffers)):
            told = f"`{each.buffer.name}`"
            if loop_around(each) is not at:
                raise does_not_fit(self, f"the loop over `{at.var.name}` does not hold all uses of {told}, in order")
            found = lines_of(each, at, facts)
            if found is None:
                seen = ", ".join(dict.fromkeys(map(str, each.touches)))
                raise does_not_fit(self, f"an iteration sees more than some lines of {told}: {seen}")
            _fold(each, *found, accesses)
        return accesses.apply(facts.func)


def loop_around(allocation: Allocation) -> For | None:
    """The loop directly inside of the allocation's body that contains all uses, if it is serial and has step 1."""
    for region in common_regions(allocation.touches, allocation.home):
        composite = region.composite
        if not isinstance(composite, IfThenElse):
            is_plain = isinstance(composite, For) and composite.step == 1
            in_order = isinstance(composite, For) and composite.kind in (ForKind.SERIAL, ForKind.UNROLLED)
            return composite if isinstance(composite, For) and is_plain and in_order else None
    return None


def lines_of(allocation: Allocation, loop: For, facts: Facts) -> tuple[int, int] | None:
    """The axis with the fewest lines in use in one iteration, and their number; None if no axis can be folded."""
    nodes = [touch.node for touch in allocation.touches if isinstance(touch.node, Load | Store)]
    found: list[tuple[int, int]] = []
    for axis, extent in enumerate(allocation.buffer.shape):
        if any(node.indices[axis].dtype.lanes != 1 for node in nodes):
            continue
        seen = index_range((facts.addresses.of(node).indices[axis] for node in nodes), (loop,), facts.space)
        if seen is not None and seen.extent < (extent.value if isinstance(extent, IntImm) else MUCH):
            found.append((seen.extent, axis))
    lines, axis = min(found, default=(0, 0))
    return (axis, lines) if found else None


def _fold(allocation: Allocation, axis: int, lines: int, accesses: Accesses) -> None:
    """Folds an axis of a buffer to this many lines, used in rotation."""
    old = allocation.buffer
    shape = (*old.shape[:axis], const(lines, i64), *old.shape[axis + 1 :])

    def reindex(index: Expr) -> Expr:
        return const(0, i64) if lines == 1 else FloorMod(index, const(lines, i64))

    changed: dict[Load | Store, dict[int, Reindex]] = {}
    for touch in allocation.touches:
        assert isinstance(touch.node, Load | Store)
        changed[touch.node] = {axis: reindex}
    accesses.reshape(old, replace(old, shape=shape), changed)
