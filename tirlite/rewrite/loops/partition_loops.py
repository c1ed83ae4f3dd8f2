"""PartitionLoops splits off the iterations at both ends of a loop, so that those between need no tests for borders."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.ir.checked import has_check
from tirlite.ir.dtype import i64
from tirlite.ir.expr import EQ, GE, GT, LE, LT, NE, FloorDiv, FloorMod, Load, Max, Min, TruncDiv, TruncMod
from tirlite.ir.func import PrimFunc
from tirlite.ir.stmt import Assert, For, ForKind, IfThenElse, Let, Stmt, Store, While
from tirlite.ir.walk import mentions, statements, statements_of, walk
from tirlite.rewrite.pipeline import FactsPass

# A loop known to be shorter stays whole.
_LONG = 32
# The most iterations of inner loops, and the most nodes of a body, which is copied up to three times.
MOST_INSIDE, _MOST_NODES = 16, 800
_PLAIN = (ForKind.SERIAL, ForKind.PARALLEL)
# Operations that may distinguish the iterations at an end.
_TELLING = (Min, Max, LT, LE, GT, GE, EQ, NE, FloorDiv, FloorMod, TruncDiv, TruncMod)


class PartitionLoops(FactsPass):
    """Splits a loop into three, so that the middle one needs no comparisons, extrema and remainders for the borders.

    `x[max(j - 1, 0)]` is `x[j - 1]` from the second iteration on, and can be vectorized. Applies to loops with
    independent iterations and only short inner loops of constant bounds, if at most 32 iterations at each end differ.
    Except for tiles, they may write no temporary that the planner could place over one that they read. Order stays.

    A loop that loads from a fixed place, and stores there in one iteration, is split in two: see `stored_once`.

    For functions in normal form (see `Normalize`).

    Source: TVM calls this loop partitioning (loop_partition.cc), and Halide too (PartitionLoops.cpp).
    """

    def rewritten(self, facts: Facts) -> PrimFunc:
        parts: dict[For, tuple[Stmt, ...]] = {}
        for loop in statements_of(facts.func.body, For):
            if _loads_where_it_stores(loop):
                from tirlite.rewrite.loops.stored_once import parted

                if (found := parted(loop, facts)) is not None:
                    parts[loop] = found
            elif _may_have_edges(loop) and _keeps_places(loop, facts) and facts.is_independent(loop):
                from tirlite.rewrite.loops.edges import Edges

                edges = Edges(loop, facts)
                if edges.begins or edges.ends:
                    parts[loop] = tuple(each for each in edges.partition() if each)
        if not parts:
            return facts.func
        from tirlite.rewrite.normalize import exchanged
        from tirlite.rewrite.simplify.simplify import Simplify

        return Simplify()(exchanged(facts.func, parts))


def _loads_where_it_stores(loop: For) -> bool:
    """Whether an innermost loop loads from a fixed place of the array that it stores to."""
    is_plain = loop.kind is ForKind.SERIAL and loop.step == 1
    if not is_plain or not all(isinstance(stmt, Store | Let | IfThenElse) for stmt in statements(loop.body)):
        return False
    stores = [*statements_of(loop.body, Store)]
    if not stores:
        return False
    buffer = stores[0].buffer
    loads = [node for node in walk(loop.body) if isinstance(node, Load) and node.buffer is buffer and node.indices]
    is_one = all(store.buffer is buffer for store in stores)
    return is_one and any(not mentions(load.indices, loop.var) for load in loads)


def _keeps_places(loop: For, facts: Facts) -> bool:
    """Whether copies of a loop cannot make the planner place a temporary as large as an array elsewhere."""
    return facts.replaces_nothing(loop) or facts.writes_tiles(loop)


def _may_have_edges(loop: For) -> bool:
    """Whether a loop only has short inner loops, and tests integers in its body."""
    if loop.kind not in _PLAIN or loop.step != 1 or _trips(loop) in range(_LONG):
        return False
    # Assertions stay whole: they print their operands as written.
    inside = [stmt for stmt in statements(loop.body) if isinstance(stmt, Assert | For | While)]
    if not all(isinstance(stmt, For) and _trips(stmt) in range(1, MOST_INSIDE + 1) for stmt in inside):
        return False
    nodes = [node for _, node in zip(range(_MOST_NODES + 1), walk(loop.body), strict=False)]
    if len(nodes) > _MOST_NODES or has_check(loop):
        return False
    return any(isinstance(node, _TELLING) and node.children()[0].dtype == i64 for node in nodes)


def _trips(loop: For) -> int | None:
    return None if loop.values is None else len(loop.values)
