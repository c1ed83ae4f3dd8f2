"""Tells whether the callee writes all of a buffer before it reads any, from the touches of the buffer by a call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tirlite.analysis.access import AccessKind, Allocation, Region, Touch
from tirlite.analysis.call_demands import may_be_empty
from tirlite.analysis.coverage.overwrites import MOST_TOGETHER, count_that_overwrite
from tirlite.analysis.coverage.store_nest import trip_count
from tirlite.analysis.facts import Facts
from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.analysis.regions import by_statement, is_within, regions_between
from tirlite.ir import Buffer, For, ForKind, Function, KernelCall
from tirlite.ir.callees import closure_of
from tirlite.sizes import Proof, prove_le


class CallCoverage:
    """Which parameters functions overwrite, each function looked at once."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._known: dict[Function, frozenset[Buffer]] = {}

    def count_that_overwrite(
        self, groups: Sequence[Sequence[Touch]], around: Region, buffer: Buffer, space: IndexSpace
    ) -> int:
        """As the function of this name, and 1 where the first statement is a call that overwrites the buffer."""
        if isinstance(groups[0][0].node, KernelCall):
            return int(self._overwrites(groups[0], around, buffer, space))
        return count_that_overwrite(groups, around, buffer, space)

    def _overwrites(self, touches: Sequence[Touch], around: Region, buffer: Buffer, space: IndexSpace) -> bool:
        """Whether a statement of `around`, whose first touch is made by a call, overwrites the buffer.

        The call must come in each iteration of loops that run, before all else that the statement does with the buffer,
        and be given the buffer itself, once. The proof in the callee may have taken its dims to be at least 1.
        """
        call, param = touches[0].node, touches[0].param
        assert isinstance(call, KernelCall)
        position, region = touches[0].position, touches[0].region
        own = [touch for touch in touches if touch.position == position]
        return (
            param is not None
            and all(touch.node is call and touch.param is param for touch in own)
            and touches[0].buffer is buffer
            and all(touch.position >= position and is_within(touch.region, region) for touch in touches)
            and all(_surely_runs(each, space) for each in regions_between(region, around))
            and not may_be_empty(call, space.extents)
            and param in self._overwritten_by(call.callee)
        )

    def _overwritten_by(self, func: Function) -> frozenset[Buffer]:
        """The parameters of which `func` writes all elements before it reads any."""
        if func not in self._known:
            for each in closure_of(func):
                if each not in self._known:
                    self._known[each] = frozenset(self._found(self._facts.of(each)))
        return self._known[func]

    def _found(self, facts: Facts) -> Iterator[Buffer]:
        for param, allocation in facts.params.items():
            is_written = any(touch.kind is AccessKind.WRITE for touch in allocation.touches)
            if is_written and not param.volatile and self._begins_anew(allocation, facts.space):
                yield param

    def _begins_anew(self, allocation: Allocation, space: IndexSpace) -> bool:
        """Whether the first statements write some of a buffer, reading none, and the next ones overwrite all of it."""
        groups = list(by_statement(allocation.home, allocation.touches))
        for at, group in enumerate(groups):
            ahead = groups[at : at + MOST_TOGETHER]
            if self.count_that_overwrite(ahead, allocation.home, allocation.buffer, space):
                return True
            if any(touch.kind is not AccessKind.WRITE for touch in group):
                return False
        return False


def _surely_runs(region: Region, space: IndexSpace) -> bool:
    loop = region.composite
    if not isinstance(loop, For) or loop.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
        return False
    count = trip_count(loop, space)
    return count is not None and prove_le(1, count) is Proof.YES
