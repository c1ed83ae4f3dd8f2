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

from tirlite.analysis.access import AccessKind, Allocation, LinearSequence, Region, Touch, linear_sequence
from tirlite.analysis.addresses import Addresses
from tirlite.analysis.dependence import find_reversal, plainly_ordered
from tirlite.analysis.extents import Extents
from tirlite.analysis.in_place_proof import (
    AddressTaken,
    ExternCode,
    InPlaceProof,
    Interval,
    InThreads,
    IsRemarked,
    IsVolatile,
    Obstacle,
    TooMany,
    WrittenTooEarly,
)
from tirlite.analysis.index_space import IndexSpace
from tirlite.analysis.lifetimes import Lifetime, lifetimes_of
from tirlite.ir import AttrKey, AttrStmt, For, ForKind, Load, PrimFunc, Stmt, Store, statements

# Where many buffers die in the statement in which one is born, those are looked at whose last use is nearest.
_NEAREST = 6
# How many pairs of accesses are compared: for two buffers at most, and for the whole function on average.
_MOST_COMPARED = 1024
_COMPARED_ON_AVERAGE = 16
_COMPARED_AT_LEAST = 10_000


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
    prover = _Prover(func, extents, _COMPARED_AT_LEAST + _COMPARED_ON_AVERAGE * len(pairs))
    return tuple(
        InPlaceProof(dst.buffer, src.buffer, at, during, prover.obstacle(dst, src, during))
        for dst, src, at, during in pairs
    )


_Pair = tuple[Allocation, Allocation, Stmt, Interval]


class _Meetings:
    """Which allocations die where others are born."""

    def __init__(self, sequence: LinearSequence, lifetimes: Sequence[Lifetime]) -> None:
        entries = sequence.entries
        # For the position of each leaf and each `before`: the statement, and the position after all of it.
        self.statements = {
            entry.position: (entry.stmt, entries[number + entry.scope_pair_offset].position + 1)
            for number, entry in enumerate(entries)
            if entry.scope_pair_offset >= 0
        }
        self.live = {
            allocation: lifetime.live for allocation, lifetime in zip(sequence.allocations, lifetimes, strict=True)
        }
        # By body, scope and end: what dies there, in order of the last use.
        self.dying: dict[tuple[Region, str, int], list[tuple[int, Allocation]]] = {}
        for allocation, live in self.live.items():
            for _, end in live:
                key = (allocation.home, allocation.buffer.scope, end)
                last = max(touch.position for touch in allocation.touches if touch.position < end)
                self.dying.setdefault(key, []).append((last, allocation))
        for group in self.dying.values():
            group.sort(key=_first)

    def pairs(self) -> Iterator[_Pair]:
        """Destination and source, the statement in which they meet, and its positions."""
        for destination, live in self.live.items():
            for born, _ in live:
                if born in self.statements:
                    stmt, end = self.statements[born]
                    for source in self._sources(destination, born, end):
                        if _overlap(live, self.live[source]) == [(born, end)]:
                            yield destination, source, stmt, (born, end)

    def _sources(self, destination: Allocation, born: int, end: int) -> Iterator[Allocation]:
        group = self.dying.get((destination.home, destination.buffer.scope, end), [])
        if len(group) > 2 * _NEAREST:
            touches = destination.touches
            written = next((t.position for t in touches if t.position >= born and t.kind is AccessKind.WRITE), born)
            place = bisect_right(group, written, key=_first)
            group = group[max(0, place - _NEAREST) : place + _NEAREST]
        return (source for _, source in group if source is not destination)


class _Prover:
    """Looks for what stands against a pair. `budget` bounds how many accesses are compared in all."""

    def __init__(self, func: PrimFunc, extents: Extents | None, budget: int) -> None:
        self.budget = budget
        self.addresses = Addresses(IndexSpace(func, extents))
        definitions = self.addresses.space.definitions
        self.remarked = {definitions.root(buffer) for buffer in definitions.remarked}

    def obstacle(self, destination: Allocation, source: Allocation, during: Interval) -> Obstacle | None:
        home = destination.home
        if home.attach is not None and home.attach.is_thread:
            return InThreads()
        uses = [[t for t in a.touches if during[0] <= t.position < during[1]] for a in (destination, source)]
        for allocation, touches in zip((destination, source), uses, strict=True):
            if (found := self._unfit(allocation, touches)) is not None:
                return found
        writes, accesses = [t for t in uses[0] if t.kind is AccessKind.WRITE], uses[1]
        roots = source.buffer, destination.buffer
        if all(plainly_ordered(access, write, home, roots) for access in accesses for write in writes):
            return None
        writes, accesses = self._distinct(writes, latest=False), self._distinct(accesses, latest=True)
        count = len(writes) * len(accesses)
        if count > min(_MOST_COMPARED, self.budget):
            return TooMany(count)
        self.budget -= count
        for access in accesses:
            for write in writes:
                reversal = find_reversal(self.addresses, access, write, home)
                if reversal is not None:
                    return WrittenTooEarly(reversal)
        return None

    def _unfit(self, allocation: Allocation, touches: Sequence[Touch]) -> Obstacle | None:
        """What speaks against one buffer, whatever the other one."""
        buffer = allocation.buffer
        if any(touch.kind is AccessKind.OPAQUE for touch in allocation.touches):
            return AddressTaken(buffer)
        if buffer.volatile or any(_node(touch).buffer.volatile for touch in touches):
            return IsVolatile(buffer)
        if buffer in self.remarked:
            return IsRemarked(buffer)
        for touch in touches:
            region: Region | None = touch.region
            while region is not None and region is not allocation.home:
                if isinstance(region.composite, AttrStmt) and region.composite.key is AttrKey.EXTERN_SCOPE:
                    return ExternCode(buffer)
                if region.is_thread and _has_thread_loop(region):
                    return InThreads()
                region = region.parent
        return None

    def _distinct(self, touches: Sequence[Touch], *, latest: bool) -> list[Touch]:
        """One of all touches of the same elements in the same body: the latest, or the earliest.

        It is the one for which the order is hardest to prove.
        """
        found: dict[object, Touch] = {}
        for touch in touches if latest else reversed(touches):
            found[touch.region, self.addresses.of(_node(touch)).key] = touch
        return list(found.values())


def _has_thread_loop(region: Region) -> bool:
    """Whether further thread-bound loops stand inside the one of this region: these have no region of their own."""
    assert isinstance(region.composite, For)
    return any(isinstance(s, For) and s.kind is ForKind.THREAD for s in statements(region.composite.body))


def _node(touch: Touch) -> Load | Store:
    assert isinstance(touch.node, Load | Store)
    return touch.node


def _overlap(one: Sequence[Interval], other: Sequence[Interval]) -> list[Interval]:
    """The stretches of time that are in both."""
    both = ((max(a, c), min(b, d)) for a, b in one for c, d in other)
    return [(low, high) for low, high in both if low < high]


def _first(pair: tuple[int, Allocation]) -> int:
    return pair[0]
