"""Shrink brings a temporary to where it is used, and leaves of it what is touched there."""

from __future__ import annotations

from tirlite.analysis.access import Allocation
from tirlite.analysis.facts import Facts
from tirlite.analysis.temporaries import temporaries
from tirlite.ir import Buffer, PrimFunc
from tirlite.record import record
from tirlite.rewrite.compact_buffers import compacted
from tirlite.rewrite.contract_temporaries import contracted
from tirlite.rewrite.sink_allocations import sunk
from tirlite.schedules.handle import buffer_named
from tirlite.schedules.step import Step, does_not_fit


@record
class Shrink(Step):
    """A temporary in the innermost body that holds all of its uses, with as many elements as are touched there.

    One element becomes a scalar: a `let` where it is stored once. After `join`, which brings together what fills a
    temporary and what reads it, little is left of it. `SinkAllocations`, `CompactBuffers` and `ContractTemporaries` do
    the same to all temporaries. It never changes results. Refused where nothing becomes less.
    """

    buffer: str

    def rewritten(self, facts: Facts) -> PrimFunc:
        buffer = buffer_named(facts.func, self.buffer)
        moved = Facts(sunk(self._temporary(facts, buffer), facts))
        accesses = compacted(self._temporary(moved, buffer), moved)
        less = Facts(accesses.apply(moved.func))
        result = contracted(self._temporary(less, accesses.buffers.get(buffer, buffer)), less)
        if result is facts.func:
            raise does_not_fit(self, f"all of `{buffer.name}` is touched in the body that it is allocated in")
        return result

    def _temporary(self, facts: Facts, buffer: Buffer) -> list[Allocation]:
        """The allocation of a buffer. Raises KernelError where it is no temporary that may be moved and reshaped."""
        found = [each for each in temporaries(facts) if each.buffer is buffer]
        if not found:
            raise does_not_fit(self, f"`{buffer.name}` is no temporary that is used element by element")
        return found
