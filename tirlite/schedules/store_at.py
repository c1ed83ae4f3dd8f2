"""StoreAt keeps of temporaries the lines that an iteration of a loop sees, which are used in turn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tirlite.analysis.access import Allocation, Touch
from tirlite.analysis.facts import Facts
from tirlite.analysis.integers.array_bounds import stays_exact
from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.analysis.temporaries import common_regions
from tirlite.ir import (
    Expr,
    FloorMod,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    Load,
    Max,
    Min,
    PrimFunc,
    Steps,
    Store,
    const,
    i64,
    run,
)
from tirlite.record import record
from tirlite.rewrite.access_rewrite import Accesses, Reindex
from tirlite.schedules.handle import LoopName, buffer_named, loop_named
from tirlite.schedules.step import Step, demand_temporaries, does_not_fit
from tirlite.sizes import Proof, Size, prove_le
from tirlite.sizes.unknown import Ends, ends


@record
class StoreAt(Step):
    """Temporaries with so many lines as one iteration of the loop `at` sees: a window that slides along with the loop.

    All uses are in that loop, which goes up by 1, and iteration v sees of some axis only v + a to v + b: then line i
    lies at i % (b - a + 1). Two lines at one place are never seen by one iteration, and all uses of the first come
    before all of the second. After `join`, which has what reads a temporary run a few lines behind what fills it, each
    line is computed once and kept as long as it is read. Refused where `at` is not the loop that holds all uses, and
    where the lines that it sees do not go on with it. Source of the idea: the storage folding of Halide.
    """

    buffers: tuple[str, ...]
    at: LoopName

    def rewritten(self, facts: Facts) -> PrimFunc:
        at = loop_named(facts.func, self.at)
        accesses = Accesses()
        for each in demand_temporaries(self, facts, (buffer_named(facts.func, name) for name in self.buffers)):
            told = f"`{each.buffer.name}`"
            if loop_around(each) is not at:
                raise does_not_fit(self, f"the loop over `{at.var.name}` does not hold all uses of {told}, in order")
            found = lines_of(each, at, facts.space)
            if found is None:
                seen = ", ".join(dict.fromkeys(map(str, each.touches)))
                raise does_not_fit(self, f"an iteration sees more than some lines of {told}: {seen}")
            _fold(each, *found, accesses)
        return accesses.apply(facts.func)


def loop_around(allocation: Allocation) -> For | None:
    """The one loop, right inside of the allocation's body, that holds all uses and runs in order."""
    for region in common_regions(allocation.touches, allocation.home):
        composite = region.composite
        if not isinstance(composite, IfThenElse):
            is_plain = isinstance(composite, For) and composite.step == 1
            in_order = isinstance(composite, For) and composite.kind in (ForKind.SERIAL, ForKind.UNROLLED)
            return composite if isinstance(composite, For) and is_plain and in_order else None
    return None


def lines_of(allocation: Allocation, loop: For, space: IndexSpace) -> tuple[int, int] | None:
    """The axis to be folded, the one of the fewest lines, and how many of them one iteration sees; None for none."""
    found: tuple[int, int] | None = None
    for axis, extent in enumerate(allocation.buffer.shape):
        lines = _window(allocation.touches, axis, loop, space)
        is_less = lines is not None and (not isinstance(extent, IntImm) or lines < extent.value)
        if lines is not None and is_less and (found is None or lines < found[1]):
            found = axis, lines
    return found


def _fold(allocation: Allocation, axis: int, lines: int, accesses: Accesses) -> None:
    """Has so many lines of a buffer along an axis be used in turn."""
    old = allocation.buffer
    shape = (*old.shape[:axis], const(lines, i64), *old.shape[axis + 1 :])

    def reindex(index: Expr) -> Expr:
        return const(0, i64) if lines == 1 else FloorMod(index, const(lines, i64))

    changed: dict[Load | Store, dict[int, Reindex]] = {}
    for touch in allocation.touches:
        assert isinstance(touch.node, Load | Store)
        changed[touch.node] = {axis: reindex}
    accesses.reshape(old, replace(old, shape=shape), changed)


def _window(touches: Iterable[Touch], axis: int, loop: For, space: IndexSpace) -> int | None:
    """The number of lines along `axis` between the first and the last that one iteration of `loop` may touch.

    In iteration v, which is also the value of the loop's variable, these are from v + a to v + b for constants a and b.
    None where no such constants are found. The loop goes up by 1, and all touches are inside of it.
    """
    low: int | None = None
    high: int | None = None
    for touch in touches:
        assert isinstance(touch.node, Load | Store)
        index = touch.node.indices[axis]
        least, most = _offset(index, touch.node.buffer.shape[axis], loop, space)
        if least is None or most is None:
            return None
        low = least if low is None else min(low, least)
        high = most if high is None else max(high, most)
    return None if low is None or high is None else high - low + 1


def _offset(index: Expr, extent: Expr, loop: For, space: IndexSpace) -> tuple[int | None, int | None]:
    """The ends of an index less the variable of a loop, where they are integers."""
    size = space.extents.size(extent)
    if index.dtype.lanes != 1:
        return None, None
    low, high = run(_ends(index, size, loop, space))
    return (low if isinstance(low, int) else None), (high if isinstance(high, int) else None)


def _ends(index: Expr, extent: Size | None, loop: For, space: IndexSpace) -> Steps[Ends]:
    """As `_offset`, with symbolic ends. An extremum with what does not move is still bounded on one side."""
    if isinstance(index, Min | Max):
        a: Ends = yield _ends(index.a, extent, loop, space)
        b: Ends = yield _ends(index.b, extent, loop, space)
        if isinstance(index, Min):
            return _both(a[0], b[0], least=True), _either(a[1], b[1], least=True)
        return _either(a[0], b[0], least=False), _both(a[1], b[1], least=False)
    size = space.size(index)
    if not stays_exact(*ends(size), extent):
        return None, None
    return ends(size - space.size(loop.var))


def _both(a: Size | None, b: Size | None, *, least: bool) -> Size | None:
    """The lesser or the greater of two, where it is known which one that is."""
    if a is None or b is None:
        return None
    if prove_le(a, b) is Proof.YES:
        return a if least else b
    if prove_le(b, a) is Proof.YES:
        return b if least else a
    return None


def _either(a: Size | None, b: Size | None, *, least: bool) -> Size | None:
    """A bound by both, or by one of them: an integer if there is one."""
    found = _both(a, b, least=least)
    if isinstance(found, int):
        return found
    integers = [each for each in (a, b) if isinstance(each, int)]
    return integers[0] if integers else found
