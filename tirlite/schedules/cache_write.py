"""CacheWrite keeps the element that a loop's body updates in a local scalar, so that it stays in a register."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.ir import Buffer, Load, PrimFunc, SeqStmt, Store, statements, structural_equal, walk
from tirlite.record import record
from tirlite.rewrite.local_elements import in_scalars
from tirlite.rewrite.pipeline import FactsPass
from tirlite.schedules.handle import LoopName, buffer_named, chain_to, handle_of
from tirlite.schedules.step import defined_in, demand_any_order, does_not_fit, is_in_bounds, is_steady, with_loop


@record
class CacheWrite(FactsPass):
    """The element of a buffer that the body of `at` touches, in a local scalar: loaded before, and stored after.

    It is not loaded where the body begins by storing it. Refused where the body touches more than one element, and
    where it is not proved that there is that element.
    """

    buffer: str
    at: LoopName
    name: str = "cache-write"

    def __str__(self) -> str:
        return f"s.cache_write({self.buffer!r}, at={handle_of(self.at)})"

    def rewritten(self, facts: Facts) -> PrimFunc:
        buffer = buffer_named(facts.func, self.buffer)
        around = chain_to(facts.func, self.at)
        at = around[-1]
        demand_any_order(self, at)
        first = self._element(facts, buffer, at.body)
        if not is_in_bounds(facts.func, around, first):
            raise does_not_fit(self, f"the element of `{buffer.name}` is not proved to be in bounds")
        begun = (buffer,) if _is_set_first(at.body, buffer) else ()
        return with_loop(facts, at, (at.replaced(body=in_scalars(at.body, {buffer: first}, begun)),))

    def _element(self, facts: Facts, buffer: Buffer, body: SeqStmt) -> Store:
        """A store of the one element that a body touches."""
        stores = [stmt for stmt in statements(body) if isinstance(stmt, Store) and stmt.buffer is buffer]
        if not stores or buffer.volatile or buffer.dtype.lanes > 1:
            raise does_not_fit(self, f"the body does not write `{buffer.name}`, element by element")
        first = stores[0]
        defined = defined_in(body)
        if buffer in defined:
            raise does_not_fit(self, f"`{buffer.name}` is each iteration's own")
        if any(not is_steady(index) or any(node in defined for node in walk(index)) for index in first.indices):
            raise does_not_fit(self, f"which element of `{buffer.name}` is written is decided inside")
        wanted = Load(buffer, first.indices)
        root = facts.definitions.root(buffer)
        for allocation in (*facts.sequence.params, *facts.sequence.allocations):
            if allocation.buffer is not root:
                continue
            inside = {*statements(body)}
            for touch in allocation.touches:
                node = touch.node
                if touch.stmt not in inside:
                    continue
                is_same = isinstance(node, Load | Store) and structural_equal(Load(node.buffer, node.indices), wanted)
                if not is_same:
                    raise does_not_fit(self, f"the body touches {touch} too")
        return first


def _is_set_first(body: SeqStmt, buffer: Buffer) -> bool:
    first = body.stmts[0]
    if not isinstance(first, Store) or first.buffer is not buffer:
        return False
    return not any(isinstance(node, Load) and node.buffer is buffer for node in walk(first.value))
