"""Strategy `tvm`: the planner of TVM's StorageRewrite, the baseline. Requests of one memory in, slots out.

Source: TVM, storage_rewrite.cc (2017), with the later correction that a slot taken by a larger request grows.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Container, Iterator, Sequence
from dataclasses import field

from tirlite.plan.decision import Choice, Decision
from tirlite.plan.in_place import Handover, among, handovers
from tirlite.plan.plan import Plan
from tirlite.plan.problem import Problem
from tirlite.plan.request import Interval, Request
from tirlite.plan.scope import Rank, StorageScope
from tirlite.plan.slots import Slot, slot_plan
from tirlite.record import record

MATCH_RANGE = 16
_REGISTER_BITS = 32
_IN_PLACE = Decision(Choice.IN_PLACE)
_NEW = {choice: Decision(choice) for choice in (Choice.OPENS, Choice.REGISTER)}


def tvm(problem: Problem) -> Plan:
    """The plan of the ancestor: free storage of the same memory and element kind, of 1/16 to 16 times the size.

    Constant sizes look first upward from their own size, then downward. Symbolic ones take whatever symbolic storage
    has been free for longest. Lifetimes with gaps count without them. What TVM leaves to registers is not shared:
    untagged `local` and `warp` memory, handles, and untagged constants of up to 32 bits. Of candidate pairs each is
    taken in place where the kinds and sizes are equal.
    """
    pairs = handovers(problem)
    return slot_plan(problem, "tvm", lambda requests: tvm_slots(requests, among(pairs, requests)))


def tvm_slots(
    requests: Sequence[Request], pairs: Sequence[Handover] = (), match_range: int = MATCH_RANGE
) -> list[Slot]:
    """The slots, in the order in which they are opened. With match range 0 storage is taken in place only."""
    scopes = {scope: StorageScope.parse(scope) for scope in dict.fromkeys(request.scope for request in requests)}
    registers = [_is_register(request, scopes[request.scope]) for request in requests]
    in_place = _InPlace(requests, pairs, registers)
    free = {kind: _FreeList(match_range) for kind in dict.fromkeys(request.kind for request in requests)}
    slots: list[Slot] = []
    bits: list[int] = []  # of each slot
    taken: dict[int, int] = {}
    for index, born in _events(requests):
        request = requests[index]
        if not born:
            slot = taken[index]
            if not registers[index] and not 0 < bits[slot] <= _REGISTER_BITS and not in_place.has_handed_on(index):
                free[request.kind].put(slot, bits[slot])
            continue
        need = _bits(request)
        source = in_place.source(index, taken)
        if source is not None:
            found = taken[index] = taken[source]
            slots[found].take(request, _IN_PLACE)
            slots[found].pairs.append((request.id, requests[source].id))
            continue
        place, choice = (None, Choice.REGISTER) if registers[index] else free[request.kind].take(need)
        if place is None:
            place = len(slots)
            slots.append(Slot([request], [_NEW[choice]]))
            bits.append(need)
        else:
            slots[place].take(request, Decision(choice, bits[place] // 8 if need else None))
            bits[place] = max(bits[place], need)
        taken[index] = place
    return slots


@record(frozen=False)
class _FreeList:
    """Free slots of one kind: constant ones by size in bits and then by when they became free, and symbolic ones."""

    match_range: int
    constant: list[tuple[int, int, int]] = field(default_factory=list)
    symbolic: deque[int] = field(default_factory=deque)
    clock: int = 0

    def put(self, slot: int, bits: int) -> None:
        if bits == 0:
            self.symbolic.append(slot)
            return
        self.clock += 1
        insort(self.constant, (bits, self.clock, slot))

    def take(self, bits: int) -> tuple[int | None, Choice]:
        if self.match_range == 0:
            return None, Choice.OPENS
        if bits == 0:
            return (self.symbolic.popleft(), Choice.FIRST) if self.symbolic else (None, Choice.OPENS)
        middle = bisect_left(self.constant, (bits, 0, 0))
        if middle < len(self.constant) and self.constant[middle][0] <= bits * self.match_range:
            size, _, slot = self.constant.pop(middle)
            return slot, Choice.SAME if size == bits else Choice.ROOM
        if middle > 0 and self.constant[middle - 1][0] >= bits // self.match_range:
            return self.constant.pop(middle - 1)[2], Choice.GROWS
        return None, Choice.OPENS


class _InPlace:
    """Which requests have taken the place of which, so far."""

    def __init__(self, requests: Sequence[Request], pairs: Sequence[Handover], registers: Sequence[bool]) -> None:
        number = {request.id: index for index, request in enumerate(requests)} if pairs else {}
        self._candidates: dict[int, list[tuple[int, Interval]]] = {}
        for each in pairs:
            dst, src = each.destination, each.source
            destination, source = number[dst.id], number[src.id]
            if dst.kind == src.kind and dst.size == src.size and not registers[destination] and not registers[source]:
                self._candidates.setdefault(destination, []).append((source, each.at))
        self._since: dict[int, int] = {}
        self._handed_on: set[int] = set()

    def source(self, index: int, placed: Container[int]) -> int | None:
        """The number of the request whose place the one of this number takes, if any; it is among those `placed`."""
        for source, (low, high) in self._candidates.get(index, ()):
            if source not in placed or source in self._handed_on:
                continue  # born at the same time, and later in order; or gone
            if self._since.get(source, low) <= low:
                self._handed_on.add(source)
                self._since[index] = high
                return source
        return None

    def has_handed_on(self, index: int) -> bool:
        """Whether the storage of the request of this number is another's by now."""
        return index in self._handed_on


def _events(requests: Sequence[Request]) -> Iterator[tuple[int, bool]]:
    """(index, born) in order of time; at one time ends come before births, and ties are in the order of requests."""
    count = len(requests)
    # The times are put first, then the births after the ends, in one number: it sorts much faster than a tuple.
    events = [(2 * request.live[0][0] + 1) * count + index for index, request in enumerate(requests)]
    events += [2 * request.live[-1][1] * count + index for index, request in enumerate(requests)]
    for event in sorted(events):
        time, index = divmod(event, count)
        yield index, time % 2 == 1


def _bits(request: Request) -> int:
    """The constant size in bits, or 0 for a symbolic one."""
    return request.size * 8 if isinstance(request.size, int) else 0


def _is_register(request: Request, scope: StorageScope) -> bool:
    if scope.tag:
        return request.kind == "handle"
    return scope.rank > Rank.SHARED or request.kind == "handle" or 0 < _bits(request) <= _REGISTER_BITS
