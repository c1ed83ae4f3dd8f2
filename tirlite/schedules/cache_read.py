"""CacheRead copies what an iteration of a loop reads of a buffer, as it lies there."""

from __future__ import annotations

from tirlite.analysis.dependence import writes
from tirlite.analysis.facts import Facts
from tirlite.ir import Allocate, Buffer, For, Load, PrimFunc, SeqStmt, rewrite
from tirlite.record import record
from tirlite.rewrite.pipeline import FactsPass
from tirlite.schedules.handle import LoopName, buffer_named, chain_to, handle_of
from tirlite.schedules.step import defined_in, demand_any_order, does_not_fit, with_loop
from tirlite.schedules.windows import tile


@record
class CacheRead(FactsPass):
    """The part of a buffer that the body of `at` reads, copied as the body begins, with the axes of the buffer.

    Along an axis it is what lies around the variable of a loop, so many elements, where that is a constant; else all of
    the axis. The copy is an allocation as any other, `x.cached`, which the storage planner places, and the loops that
    fill it are `x.axis0`, `x.axis1` and so on. Where loops read in an order of their own, `pack` copies in that order.

    Refused where the body writes the buffer, or reads it by other names or by vectors.
    """

    buffer: str
    at: LoopName
    name: str = "cache-read"

    def __str__(self) -> str:
        return f"s.cache_read({self.buffer!r}, at={handle_of(self.at)})"

    def rewritten(self, facts: Facts) -> PrimFunc:
        buffer = buffer_named(facts.func, self.buffer)
        around = chain_to(facts.func, self.at)
        at = around[-1]
        demand_any_order(self, at)
        loads = self._loads(facts, buffer, at)
        part = tile(self, facts, buffer, loads, around)
        body = rewrite(at.body, {Load: part.moved})
        made = (Allocate(part.cached, span=at.span), *part.loaded().stmts, *body.stmts)
        return with_loop(facts, at, (at.replaced(body=SeqStmt(made)),))

    def _loads(self, facts: Facts, buffer: Buffer, at: For) -> list[Load]:
        """Where the body reads the buffer. Raises KernelError for anything else that it does with it."""
        root = facts.definitions.root(buffer)
        loads: list[Load] = []
        for allocation, touches in facts.touches_in.get(at, {}).items():
            for touch in touches if allocation.buffer is root else ():
                node = touch.node
                if writes(touch) or touch.buffer is not buffer or not isinstance(node, Load):
                    raise does_not_fit(self, f"{touch} may write `{buffer.name}`, or reads it by another name")
                if any(index.dtype.lanes > 1 for index in node.indices):
                    raise does_not_fit(self, f"{touch} reads `{buffer.name}` by vectors")
                loads.append(node)
        if not loads or buffer.volatile or buffer.dtype.lanes > 1 or buffer in defined_in(at.body):
            raise does_not_fit(self, f"the loop over `{at.var.name}` does not read `{buffer.name}` from outside of it")
        return loads
