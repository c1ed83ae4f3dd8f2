"""StoreAt keeps of a temporary the lines that one iteration of a loop sees, which are used in turn."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.analysis.temporaries import temporaries
from tirlite.ir import PrimFunc
from tirlite.record import record
from tirlite.rewrite.access_rewrite import Accesses
from tirlite.rewrite.fold_storage import fold_lines, lines_of, loop_around
from tirlite.rewrite.pipeline import FactsPass
from tirlite.schedules.handle import LoopName, buffer_named, handle_of, loop_named
from tirlite.schedules.step import does_not_fit


@record
class StoreAt(FactsPass):
    """A temporary with so many lines as one iteration of the loop `at` sees: a window that slides along with the loop.

    Line `i` lies at `i % lines`. After `join`, which has what reads a temporary run a few lines behind what fills it,
    each line is computed once and kept as long as it is read. `FoldStorage` does so wherever the lines are few. Refused
    where `at` is not the loop that holds all uses, and where the lines that it sees do not go on with it.
    """

    buffer: str
    at: LoopName
    name: str = "store-at"

    def __str__(self) -> str:
        return f"s.store_at({self.buffer!r}, at={handle_of(self.at)})"

    def rewritten(self, facts: Facts) -> PrimFunc:
        buffer = buffer_named(facts.func, self.buffer)
        at = loop_named(facts.func, self.at)
        allocation = next((each for each in temporaries(facts) if each.buffer is buffer), None)
        if allocation is None:
            raise does_not_fit(self, f"`{buffer.name}` is no temporary that is used element by element")
        if loop_around(allocation) is not at:
            raise does_not_fit(
                self, f"the loop over `{at.var.name}` does not hold all uses of `{buffer.name}`, in order"
            )
        found = lines_of(allocation, at, facts.space)
        if found is None:
            seen = ", ".join(dict.fromkeys(map(str, allocation.touches)))
            raise does_not_fit(self, f"an iteration sees more than some lines of `{buffer.name}`: {seen}")
        accesses = Accesses()
        fold_lines(allocation, *found, accesses)
        return accesses.apply(facts.func)
