"""Strategy `tvm` assigns requests of one memory to slots as the planner of TVM's StorageRewrite does: the baseline.

Source: TVM, storage_rewrite.cc, as it is today: since 2017 slots grow, room is for any kind, and pairs go in place.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import TypeAlias

from tirlite.plan.in_place import Handover, among, handovers
from tirlite.plan.layout import Choice, Decision
from tirlite.plan.plan import Plan
from tirlite.plan.problem import Problem
from tirlite.plan.request import Interval, Request
from tirlite.plan.scope import Rank, StorageScope
from tirlite.plan.strategies.slots import Slot, slot_plan
from tirlite.record import record

_Free: TypeAlias = tuple[int, int, int, str]  # bits, when it became free, slot, kind

MATCH_RANGE = 16
_REGISTER_BITS = 32
_IN_PLACE = Decision(Choice.IN_PLACE)
_NEW = {choice: Decision(choice) for choice in (Choice.OPENS, Choice.REGISTER)}


def tvm(problem: Problem) -> Plan:
    """The plan of TVM: requests take free slots of the same memory, of 1/16 to 16 times their size.

    A constant size takes the next larger slot, else the next smaller one of its own kind, which is the kind of the
    first request in it. A symbolic size takes the symbolic slot of its kind that has been free for longest. Gaps of
    lifetimes are ignored. What TVM leaves to registers is not shared: untagged `local` and `warp` memory, handles, and
    untagged constants of up to 32 bits. A candidate pair is taken in place where the slot of the source has the kind
    and the constant size of the destination, or both sizes are symbolic.
    """
    pairs = handovers(problem)
    return slot_plan(problem, "tvm", lambda requests: tvm_slots(requests, among(pairs, requests)))


def tvm_slots(
    requests: Sequence[Request], pairs: Sequence[Handover] = (), match_range: int = MATCH_RANGE
) -> list[Slot]:
    """The slots, in the order in which they are opened. With match range 0 only pairs in place share."""
    scopes = {scope: StorageScope.parse(scope) for scope in dict.fromkeys(request.scope for request in requests)}
    needs = [request.size * 8 if isinstance(request.size, int) else 0 for request in requests]
    registers = [
        _is_register(request, need, scopes[request.scope]) for request, need in zip(requests, needs, strict=True)
    ]
    in_place = _InPlace(requests, pairs, registers)
    free = _FreeSlots(match_range)
    slots: list[Slot] = []
    kinds: list[str] = []  # of each slot
    bits: list[int] = []
    taken: dict[int, int] = {}

    def is_alike(source: int, index: int) -> bool:
        place = taken.get(source)  # None: born at the same time, and later in order
        return place is not None and bits[place] == needs[index] and kinds[place] == requests[index].kind

    for index, born in _events(requests):
        request = requests[index]
        if not born:
            slot = taken[index]
            is_free = index not in in_place.handed_on and not registers[index]
            if is_free and not 0 < bits[slot] <= _REGISTER_BITS:
                free.put(slot, kinds[slot], bits[slot])
            continue
        need = needs[index]
        source = in_place.source(index, is_alike)
        if source is not None:
            found = taken[index] = taken[source]
            slots[found].take(request, _IN_PLACE)
            slots[found].pairs.append((request.id, requests[source].id))
            continue
        place, choice = (None, Choice.REGISTER) if registers[index] else free.take(request.kind, need)
        if place is None:
            place = len(slots)
            slots.append(Slot([request], [_NEW[choice]]))
            kinds.append(request.kind)
            bits.append(need)
        else:
            slots[place].take(request, Decision(choice, bits[place] // 8 if need else None))
            bits[place] = max(bits[place], need)
        taken[index] = place
    return slots


@record(frozen=False)
class _FreeSlots:
    """Free slots: constant ones of all kinds and of each kind, by bits and time of release; and symbolic ones."""

    match_range: int
    constant: list[_Free] = field(default_factory=list)
    constant_of: dict[str, list[_Free]] = field(default_factory=dict)
    symbolic_of: dict[str, deque[int]] = field(default_factory=dict)
    clock: int = 0

    def put(self, slot: int, kind: str, bits: int) -> None:
        if bits == 0:
            self.symbolic_of.setdefault(kind, deque()).append(slot)
            return
        self.clock += 1
        insort(self.constant, (bits, self.clock, slot, kind))
        insort(self.constant_of.setdefault(kind, []), (bits, self.clock, slot, kind))

    def take(self, kind: str, bits: int) -> tuple[int | None, Choice]:
        if self.match_range == 0:
            return None, Choice.OPENS
        if bits == 0:
            symbolic = self.symbolic_of.get(kind)
            return (symbolic.popleft(), Choice.FIRST) if symbolic else (None, Choice.OPENS)
        middle = bisect_left(self.constant, (bits,))
        if middle < len(self.constant) and self.constant[middle][0] <= bits * self.match_range:
            free = self.constant[middle]
            return self._taken(free), Choice.SAME if free[0] == bits else Choice.ROOM
        own = self.constant_of.get(kind, [])
        middle = bisect_left(own, (bits,))
        if middle > 0 and own[middle - 1][0] >= bits // self.match_range:
            return self._taken(own[middle - 1]), Choice.GROWS
        return None, Choice.OPENS

    def _taken(self, free: _Free) -> int:
        _, _, slot, kind = free
        for slots in (self.constant, self.constant_of[kind]):
            slots.pop(bisect_left(slots, free))
        return slot


class _InPlace:
    """The pairs taken in place so far; the slots of sources in `handed_on` belong to their destinations."""

    def __init__(self, requests: Sequence[Request], pairs: Sequence[Handover], registers: Sequence[bool]) -> None:
        number = {request.id: index for index, request in enumerate(requests)} if pairs else {}
        self._candidates: dict[int, list[tuple[int, Interval]]] = {}
        for each in pairs:
            dst, src = each.destination, each.source
            destination, source = number[dst.id], number[src.id]
            if not registers[destination] and not registers[source]:
                self._candidates.setdefault(destination, []).append((source, each.at))
        self._since: dict[int, int] = {}
        self.handed_on: set[int] = set()

    def source(self, index: int, is_alike: Callable[[int, int], bool]) -> int | None:
        """The source whose place this request takes, among those for which `is_alike` holds; None if there is none."""
        for source, (low, high) in self._candidates.get(index, ()):
            if source in self.handed_on or not is_alike(source, index):
                continue
            if self._since.get(source, low) <= low:
                self.handed_on.add(source)
                self._since[index] = high
                return source
        return None


def _events(requests: Sequence[Request]) -> Iterator[tuple[int, bool]]:
    """(number of a request, whether it is born or else ends) in order of time, up to the last birth.

    Ends come before births at the same time; ties are in the order of the requests.
    """
    count = len(requests)
    last = max((request.live[0][0] for request in requests), default=0)
    # Time, kind and number packed into one integer sort much faster than a tuple.
    events = [(2 * request.live[0][0] + 1) * count + index for index, request in enumerate(requests)]
    events += [
        2 * request.live[-1][1] * count + index for index, request in enumerate(requests) if request.live[-1][1] <= last
    ]
    for event in sorted(events):
        time, index = divmod(event, count)
        yield index, time % 2 == 1


def _is_register(request: Request, bits: int, scope: StorageScope) -> bool:
    if scope.tag:
        return request.kind == "handle"
    return scope.rank > Rank.SHARED or request.kind == "handle" or 0 < bits <= _REGISTER_BITS
