"""A function in, the pairs of buffers of which one may take over the bytes of the other out, with proofs.

The condition, from first principles: while both live, whenever a write to the destination and an access to the source
(a read, or a write) touch the same byte, the access to the source comes first. Then each value that is read of either
is the one that was last written to it, as it was in two places: what the destination overwrites is no longer needed,
and nothing overwrites the destination. How often an element is written does not matter by itself; but what is written
in one iteration is written before all that is read in the next, so that all loops count, up to the body in which both
are allocated. Source of the idea: in-place sharing in TVM's storage_rewrite (2017), which compares the indices in one
statement, and is wrong where a loop comes back to an element.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tirlite.analysis.access import AccessKind, Allocation, LinearSequence, Region, Touch, linear_sequence
from tirlite.analysis.extents import Extents
from tirlite.analysis.lifetimes import Lifetime, lifetimes_of
from tirlite.ir import PrimFunc, Stmt
from tirlite.ir.demand import of_prim_func

if TYPE_CHECKING:
    from tirlite.analysis.in_place_proof import InPlaceProof

Interval = tuple[int, int]

# Where many buffers die in the statement in which one is born, those are looked at whose last use is nearest.
_NEAREST = 6
# How many pairs of accesses are compared for two buffers, on average over the whole function.
_COMPARED_ON_AVERAGE = 16
_COMPARED_AT_LEAST = 10_000


@of_prim_func
def in_place_candidates(
    func: PrimFunc,
    sequence: LinearSequence | None = None,
    lifetimes: Sequence[Lifetime] | None = None,
    extents: Extents | None = None,
) -> tuple[InPlaceProof, ...]:
    """A proof for each pair of allocations of which one is born in the statement in which the other one dies.

    `func` is in normal form (see `Normalize`). The two are of one scope and allocated in one body, and live together
    during that statement alone; it stands in that body, or in a branch of an `if` there. `sequence`, `lifetimes` (one
    for each allocation of the sequence, in order) and `extents` are those of `func`, where they are known already. In
    order of the destination's allocation.
    """
    sequence = sequence or linear_sequence(func)
    pairs = list(_Meetings(sequence, lifetimes or lifetimes_of(sequence)).pairs())
    if not pairs:
        return ()
    from tirlite.analysis.in_place_prover import Callees, Prover  # most functions have no such pairs

    prover = Prover(func, extents, Callees(), _COMPARED_AT_LEAST + _COMPARED_ON_AVERAGE * len(pairs))
    return tuple([prover.proof(*pair) for pair in pairs])


_Pair = tuple[Allocation, Allocation, Stmt, Interval]


class _Meetings:
    """Which allocations die where others are born."""

    def __init__(self, sequence: LinearSequence, lifetimes: Sequence[Lifetime]) -> None:
        self.entries = sequence.entries
        # By position, the number of the entry of each leaf and each `before`.
        self.begins = {
            entry.position: number for number, entry in enumerate(self.entries) if entry.scope_pair_offset >= 0
        }
        self.live = {
            allocation: lifetime.live for allocation, lifetime in zip(sequence.allocations, lifetimes, strict=True)
        }
        # By body, scope and end: what dies there, in order of the last use.
        self.dying: dict[tuple[Region, str, int], list[tuple[int, Allocation]]] = {}
        for allocation, live in self.live.items():
            for _, end in live:
                last = _last_before(allocation.touches, end)
                # What threads share may live before its first touch, from the end of an earlier iteration on.
                if last is not None:
                    key = (allocation.home, allocation.buffer.scope, end)
                    self.dying.setdefault(key, []).append((last, allocation))
        for group in self.dying.values():
            if len(group) > 1:
                group.sort(key=_first)

    def pairs(self) -> Iterator[_Pair]:
        """Destination and source, the statement in which they meet, and its positions."""
        for destination, live in self.live.items():
            for born, _ in live:
                number = self.begins.get(born)
                if number is None:
                    continue
                entry = self.entries[number]
                end = self.entries[number + entry.scope_pair_offset].position + 1
                for _, source in self._sources(destination, born, end):
                    if source is not destination and _is_overlap((born, end), live, self.live[source]):
                        yield destination, source, entry.stmt, (born, end)

    def _sources(self, destination: Allocation, born: int, end: int) -> Sequence[tuple[int, Allocation]]:
        """What dies there, with its last use; of too many those whose last use is near."""
        group = self.dying.get((destination.home, destination.buffer.scope, end), [])
        if len(group) > 2 * _NEAREST:
            touches = destination.touches
            written = next((t.position for t in touches if t.position >= born and t.kind is AccessKind.WRITE), born)
            place = bisect_right(group, written, key=_first)
            group = group[max(0, place - _NEAREST) : place + _NEAREST]
        return group


def _last_before(touches: Sequence[Touch], end: int) -> int | None:
    for touch in reversed(touches):
        if touch.position < end:
            return touch.position
    return None


def _is_overlap(during: Interval, one: Sequence[Interval], other: Sequence[Interval]) -> bool:
    """Whether this is the one stretch of time that is in both."""
    if len(one) == len(other) == 1:  # the usual case
        (a, b), (c, d) = one[0], other[0]
        return (max(a, c), min(b, d)) == during
    return [(max(a, c), min(b, d)) for a, b in one for c, d in other if a < d and c < b] == [during]


def _first(pair: tuple[int, Allocation]) -> int:
    return pair[0]
