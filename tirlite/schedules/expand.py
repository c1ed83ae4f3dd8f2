"""Expand allocates a buffer of each iteration once before the loop, with an axis for the iterations."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.ir import Allocate, Buffer, Expr, Load, Node, PrimFunc, Rule, SeqStmt, Store, Sub, View, rewrite, walk
from tirlite.ir.walk import defined_in, mentions
from tirlite.record import record, replace
from tirlite.rewrite.affine_exprs import folded
from tirlite.schedules.handle import BufferName, LoopName, buffer_named, loop_named
from tirlite.schedules.loop_facts import trips
from tirlite.schedules.step import ScheduleStep, demand_plain, does_not_fit, with_loop


@record
class Expand(ScheduleStep):
    """Allocates a buffer of the body of `at` once before that loop, with a last axis for the iterations.

    Iteration `i` uses the elements `[..., i - start]`, so lanes of a vectorized loop find theirs side by side. Never
    changes results. Refused if the size differs between iterations, and for buffers not used element by element.
    """

    buffer: BufferName
    at: LoopName

    def rewritten(self, facts: Facts) -> PrimFunc:
        at = loop_named(facts.func, self.at)
        demand_plain(self, at)
        stmts = at.body.stmts
        told = self.buffer if isinstance(self.buffer, str) else buffer_named(facts.func, self.buffer)
        allocated = [stmt for stmt in stmts if isinstance(stmt, Allocate)]
        found = [stmt for stmt in allocated if told in (stmt.buffer, stmt.buffer.name)]
        if not found:
            raise does_not_fit(self, f"the body of the loop over `{at.var.name}` does not allocate `{self.buffer}`")
        allocation, buffer = found[0], found[0].buffer
        count = trips(facts, at)
        inside = defined_in(at)
        if count is None or mentions(buffer.shape, inside):
            raise does_not_fit(self, f"the size of `{buffer.name}`, or how often the loop runs, is not known before it")
        if buffer.dtype.lanes > 1 or buffer.volatile or not _is_plain(at.body, buffer):
            raise does_not_fit(self, f"`{buffer.name}` is not used element by element")
        wide = _wide(buffer, count)
        place = folded(Sub(at.var, at.start))

        def moved(node: Load | Store) -> Node:
            return node.replaced(buffer=wide, indices=(*node.indices, place)) if node.buffer is buffer else node

        rules: dict[type[Node], Rule] = {Load: moved, Store: moved}
        body = rewrite(SeqStmt(tuple(stmt for stmt in stmts if stmt is not allocation)), rules)
        return with_loop(facts, at, (allocation.replaced(buffer=wide), at.replaced(body=body)))


def _wide(buffer: Buffer, count: Expr) -> Buffer:
    """The buffer for all iterations; no longer in `local` scope, which stands for registers."""
    scope = "global" if buffer.scope == "local" else buffer.scope
    return replace(buffer, shape=(*buffer.shape, count), scope=scope)


def _is_plain(body: SeqStmt, buffer: Buffer) -> bool:
    """Whether a buffer is only loaded and stored, by scalar indices."""
    for node in walk(body):
        if isinstance(node, Load | Store):
            if node.buffer is buffer and any(index.dtype.lanes > 1 for index in node.indices):
                return False
        elif not isinstance(node, Allocate) and any(getattr(node, name) is buffer for name in node.USES):
            return False
    return not any(isinstance(node, View) and node.source is buffer for node in walk(body))
