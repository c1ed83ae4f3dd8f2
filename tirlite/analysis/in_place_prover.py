"""Two allocations of a function in, what stands against one of them taking over the bytes of the other out.

A call is looked at through the parameters that the two are given for: the same question about them, in the callee.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tirlite.analysis.access import AccessKind, Allocation, Region, Touch, parameter_touches
from tirlite.analysis.addresses import Addresses
from tirlite.analysis.dependence import exclude_each_other, find_reversal, plainly_ordered, shared_loops
from tirlite.analysis.extents import Extents
from tirlite.analysis.in_place_proof import (
    AddressTaken,
    ExternCode,
    InCallee,
    Interval,
    InThreads,
    IsRemarked,
    IsVolatile,
    Obstacle,
    OtherPlaces,
    RepeatedCall,
    TooMany,
    WrittenBefore,
    WrittenTooEarly,
)
from tirlite.analysis.index_space import IndexSpace
from tirlite.ir import (
    AttrKey,
    AttrStmt,
    Buffer,
    For,
    ForKind,
    Function,
    KernelCall,
    Load,
    PrimFunc,
    Steps,
    Store,
    statements,
)

# How many pairs of accesses are compared for two buffers at most, and for all those of a callee.
_MOST_COMPARED = 1024
_COMPARED_IN_CALLEE = 10_000

# The touches of the destination and those of the source.
_Uses: TypeAlias = tuple[Sequence[Touch], Sequence[Touch]]


class Callees:
    """Proofs about the parameters of functions that are called, each made once."""

    def __init__(self) -> None:
        self._provers: dict[Function, Prover] = {}
        self._touches: dict[Function, dict[Buffer, Allocation]] = {}
        self._known: dict[tuple[Function, Buffer, Buffer], Obstacle | None] = {}

    def obstacle(self, func: Function, destination: Buffer, source: Buffer) -> Steps[Obstacle | None]:
        """What stands against two parameters of `func` in one place."""
        key = (func, destination, source)
        if key not in self._known:
            if func not in self._provers:
                assert isinstance(func, PrimFunc)
                self._provers[func] = Prover(func, None, self, _COMPARED_IN_CALLEE)
                self._touches[func] = parameter_touches(func)
            touches = self._touches[func]
            prover = self._provers[func]
            pair = touches[destination], touches[source]
            self._known[key] = yield prover.obstacle(*pair, (pair[0].touches, pair[1].touches))
        return self._known[key]


class Prover:
    """Looks for what stands against a pair. `budget` bounds how many accesses are compared in all."""

    def __init__(self, func: PrimFunc, extents: Extents | None, callees: Callees, budget: int) -> None:
        self.budget = budget
        self.callees = callees
        self.addresses = Addresses(IndexSpace(func, extents))
        definitions = self.addresses.space.definitions
        self.remarked = {definitions.root(buffer) for buffer in definitions.remarked}

    def obstacle(self, destination: Allocation, source: Allocation, uses: _Uses) -> Steps[Obstacle | None]:
        """What forbids the two in one place while these touches happen; None where they are proved to be safe."""
        home = destination.home
        if home.attach is not None and home.attach.is_thread:
            return InThreads()
        for allocation, touches in zip((destination, source), uses, strict=True):
            if (found := self._unfit(allocation, touches)) is not None:
                return found
        writes, accesses = [t for t in uses[0] if t.kind is AccessKind.WRITE], list(uses[1])
        if any(map(_is_call, writes)) or any(map(_is_call, accesses)):
            calls: Obstacle | None = yield self._in_calls(accesses, writes, home)
            if calls is not None:
                return calls
            writes, accesses = [t for t in writes if not _is_call(t)], [t for t in accesses if not _is_call(t)]
        return self._among(accesses, writes, home, (source.buffer, destination.buffer))

    def _among(
        self, accesses: list[Touch], writes: list[Touch], home: Region, roots: tuple[Buffer, Buffer]
    ) -> Obstacle | None:
        """The same for loads and stores."""
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

    def _in_calls(self, accesses: list[Touch], writes: list[Touch], home: Region) -> Steps[Obstacle | None]:
        """The same for pairs of which one or both are calls."""
        pairs = [(a, w) for a in accesses for w in writes if _is_call(a) or _is_call(w)]
        if len(pairs) > _MOST_COMPARED:
            return TooMany(len(pairs))
        for access, write in pairs:
            found: Obstacle | None = yield self._in_call(access, write, home)
            if found is not None:
                return found
        return None

    def _in_call(self, access: Touch, write: Touch, home: Region) -> Steps[Obstacle | None]:
        call = write.node if isinstance(write.node, KernelCall) else access.node
        assert isinstance(call, KernelCall)
        loops = shared_loops(access.region, write.region, home)
        if loops:
            return RepeatedCall(call.callee.name, loops[-1])
        if write.node is access.node and write.position == access.position:
            assert write.param is not None
            assert access.param is not None
            mine, other = (self.addresses.window(_buffer(touch)) for touch in (write, access))
            if mine.moves or other.moves or not mine.start.same_as(other.start):
                return OtherPlaces(call.callee.name, _buffer(write), _buffer(access))
            inside: Obstacle | None = yield self.callees.obstacle(call.callee, write.param, access.param)
            return None if inside is None else InCallee(call.callee.name, inside)
        if access.position < write.position or exclude_each_other(access.region, write.region, home):
            return None
        return WrittenBefore(call.callee.name, _buffer(write), _buffer(access))

    def _unfit(self, allocation: Allocation, touches: Sequence[Touch]) -> Obstacle | None:
        """What speaks against one buffer, whatever the other one."""
        buffer = allocation.buffer
        for touch in allocation.touches:
            if touch.kind is AccessKind.OPAQUE:
                return AddressTaken(buffer)
        if buffer.volatile:
            return IsVolatile(buffer)
        for touch in touches:
            if _buffer(touch).volatile:
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
            assert isinstance(touch.node, Load | Store)
            found[touch.region, self.addresses.of(touch.node).key] = touch
        return list(found.values())


def touches_during(allocation: Allocation, during: Interval) -> tuple[Touch, ...]:
    """The touches of an allocation at some positions."""
    low, high = during
    return tuple([touch for touch in allocation.touches if low <= touch.position < high])


def _has_thread_loop(region: Region) -> bool:
    """Whether further thread-bound loops stand inside the one of this region: these have no region of their own."""
    assert isinstance(region.composite, For)
    return any(isinstance(s, For) and s.kind is ForKind.THREAD for s in statements(region.composite.body))


def _is_call(touch: Touch) -> bool:
    return isinstance(touch.node, KernelCall)


def _buffer(touch: Touch) -> Buffer:
    """The buffer that is accessed, or given to a callee."""
    node = touch.node
    if isinstance(node, (Load, Store)):
        return node.buffer
    assert isinstance(node, KernelCall)
    return next(given for param, given in node.buffers() if param is touch.param)
