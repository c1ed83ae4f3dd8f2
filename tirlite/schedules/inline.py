"""Inline computes the elements of a temporary where they are read; InlineLets replaces names by their values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from tirlite.analysis.access import Allocation
from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.dependence import writes
from tirlite.ir import Expr, Let
from tirlite.ir.checked import has_check
from tirlite.ir.expr import Buffer, Load, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.rewrite import rewrite, substitute
from tirlite.ir.stmt import Allocate, For, ForKind, IfThenElse, SeqStmt, Stmt, Store
from tirlite.ir.walk import is_steady, loads_in, reads, statements, walk
from tirlite.record import record
from tirlite.rewrite.normalize import Normalize
from tirlite.schedules.handle import BufferName, LoopName, buffer_named, loop_named, loops_around
from tirlite.schedules.order import demand_any_order, demand_steady, demand_temporaries
from tirlite.schedules.step import ScheduleStep, does_not_fit, with_loop

_PLAIN = (ForKind.SERIAL, ForKind.PARALLEL)


@record
class Inline(ScheduleStep):
    """Removes a temporary that one nest fills, computing its elements where they are read.

    If the nest sets `t[i, j] = e(i, j)` for all elements, `t[i + 1, j]` becomes `e(i + 1, j)`; an element read twice is
    computed twice. Values do not change. Refused if the nest sets anything else or not all elements, if elements are
    also written elsewhere, and if an operand is written before the last read.
    """

    buffer: BufferName

    def rewritten(self, facts: Facts) -> PrimFunc:
        buffer = buffer_named(facts.func, self.buffer)
        (allocation,) = demand_temporaries(self, facts, [buffer])
        if buffer.dtype.lanes > 1:
            raise does_not_fit(self, f"`{buffer.name}` is by vectors")
        nest, store = self._nest(facts, allocation)
        self._demand_steady(facts, allocation, nest, store)

        def computed(load: Load) -> Node:
            if load.buffer is not buffer:
                return load
            places = zip(store.indices, load.indices, strict=True)
            return substitute(store.value, {var: index for var, index in places if isinstance(var, Var)})

        def kept(stmt: Stmt) -> Stmt | tuple[Stmt, ...]:
            gone = stmt is nest[0] or (isinstance(stmt, Allocate) and stmt.buffer is buffer)
            return () if gone else stmt

        result = rewrite(facts.func, {For: kept, Allocate: kept, Load: computed})
        return Normalize()(result)

    def _nest(self, facts: Facts, allocation: Allocation) -> tuple[list[For], Store]:
        """The loops that set all elements, and their only store. Raises KernelError if there are none."""
        buffer = allocation.buffer
        stores = [touch for touch in allocation.touches if writes(touch)]
        for touch in stores[1:]:
            raise does_not_fit(self, f"`{buffer.name}` is written by {stores[0]} and by {touch}")
        store = stores[0].stmt if stores else None
        chains = ([*around, loop] for loop, around in loops_around(facts.func) if loop.body.stmts == (store,))
        chain = next(chains, [])
        nest = chain[len(chain) - len(buffer.shape) :]
        if not isinstance(store, Store) or not nest or nest[0] not in _block(facts.func, buffer).stmts:
            raise does_not_fit(self, f"`{buffer.name}` is not filled by a nest of its own, where it is allocated")
        loops = {loop.var: loop for loop in nest}
        space = facts.space
        for index, extent in zip(store.indices, buffer.shape, strict=True):
            loop = loops.pop(index, None) if isinstance(index, Var) else None
            is_whole = loop is not None and loop.step == 1 and space.size(loop.start) == 0
            if loop is None or not is_whole or space.size(loop.stop) != space.size(extent):
                raise does_not_fit(self, f"{stores[0]} does not set all elements of `{buffer.name}`")
        if any(loop.kind not in _PLAIN for loop in nest) or any(a.body.stmts != (b,) for a, b in pairwise(nest)):
            raise does_not_fit(self, f"the nest that fills `{buffer.name}` does more than that")
        return nest, store

    def _demand_steady(self, facts: Facts, allocation: Allocation, nest: list[For], store: Store) -> None:
        """Raises KernelError, naming the accesses, if recomputing might give another value than the stored one."""
        buffer = allocation.buffer
        demand_any_order(self, nest[0])
        for touch in allocation.touches:
            if any(index.dtype.lanes > 1 for index in getattr(touch.node, "indices", ())):
                raise does_not_fit(self, f"{touch} is by vectors")
        if reads(buffer, store.value):
            raise does_not_fit(self, f"the value of `{buffer.name}` is of its own elements")
        stmts = _block(facts.func, buffer).stmts
        behind = stmts[stmts.index(nest[0]) + 1 :]
        uses = [place for place, stmt in enumerate(behind) if reads(buffer, stmt)]
        if reads(buffer, *stmts[: stmts.index(nest[0])]):
            raise does_not_fit(self, f"`{buffer.name}` is read before it is filled")
        demand_steady(self, facts, store.value, behind[: max(uses, default=-1) + 1])


def _block(func: PrimFunc, buffer: Buffer) -> SeqStmt:
    """The block that allocates a buffer."""
    blocks = (node for node in walk(func.body) if isinstance(node, SeqStmt))
    return next(each for each in blocks if any(isinstance(s, Allocate) and s.buffer is buffer for s in each.stmts))


@record
class InlineLets(ScheduleStep):
    """Replaces the names that lets directly in the body of a loop define by their values.

    Indices of a window are often named, as in `u = i + p - 1`, while `pack` and `pack_padded` ask which loops an index
    depends on. A value read from memory keeps its name if the loop may write there, or has statements other than loops.
    """

    loop: LoopName

    def rewritten(self, facts: Facts) -> PrimFunc:
        loop = loop_named(facts.func, self.loop)
        root = facts.definitions.root
        stmts = [*statements(loop.body)]
        written = {root(stmt.buffer) for stmt in stmts if isinstance(stmt, Store)}
        is_plain = all(isinstance(stmt, Let | For) for stmt in loop.body.stmts)
        is_plain = is_plain and all(isinstance(stmt, Let | For | Store | IfThenElse | SeqStmt) for stmt in stmts)

        def stays(value: Expr) -> bool:
            loads = (*loads_in(value),)
            is_same = all(root(load.buffer) not in written and not load.buffer.volatile for load in loads)
            return not loads or (is_plain and is_same and not has_check(value))

        made = loop.replaced(body=SeqStmt((*without_lets(loop.body.stmts, stays),)))
        return with_loop(facts, loop, (made,))


def without_lets(stmts: Iterable[Stmt], stays: Callable[[Expr], bool] = is_steady) -> Iterator[Stmt]:
    """The statements of a block with the values of its lets substituted, for lets that `stays` accepts."""
    values: dict[Var, Expr] = {}
    for stmt in stmts:
        own = substitute(stmt, values) if values else stmt
        if isinstance(own, Let) and stays(own.value):
            values[own.var] = own.value
        else:
            yield own
