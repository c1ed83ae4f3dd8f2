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
from tirlite.plan.request import Request
from tirlite.plan.scope import Rank, StorageScope
from tirlite.plan.slots import Slot, slot_plan
from tirlite.record import record

_MATCH_RANGE = 16
_REGISTER_BITS = 32


def tvm(problem: Problem) -> Plan:
    """The plan of the ancestor: free storage of the same memory and element kind, of 1/16 to 16 times the size.

    Constant sizes look first upward from their own size, then downward. Symbolic ones take whatever symbolic storage
    has been free for longest. Lifetimes with gaps count without them. What TVM leaves to registers is not shared:
    untagged `local` and `warp` memory, handles, and untagged constants of up to 32 bits. Of candidate pairs each is
    taken in place where the kinds and sizes are equal.
    """
    pairs = handovers(problem)
    return slot_plan(problem, "tvm", lambda requests: tvm_slots(requests, among(pairs, requests)))


def tvm_slots(requests: Sequence[Request], pairs: Sequence[Handover] = ()) -> list[Slot]:
    """The slots, in the order in which they are opened."""
    in_place = _InPlace(requests, pairs)
    free: dict[str, _FreeList] = {}
    slots: list[Slot] = []
    bits: dict[int, int] = {}
    taken: dict[int, int] = {}
    for index, born in _events(requests):
        request = requests[index]
        lists = free.setdefault(request.kind, _FreeList())
        if not born:
            slot = taken[index]
            if not in_place.has_handed_on(index) and not _is_register(request) and not 0 < bits[slot] <= _REGISTER_BITS:
                lists.put(slot, bits[slot])
            continue
        need = _bits(request)
        source = in_place.source(index, taken)
        if source is not None:
            taken[index] = taken[source]
            slots[taken[index]].take(request, Decision(Choice.IN_PLACE))
            slots[taken[index]].pairs.append((request.id, requests[source].id))
            continue
        found, choice = (None, Choice.REGISTER) if _is_register(request) else lists.take(need)
        if found is None:
            found = len(slots)
            slots.append(Slot())
            slots[found].take(request, Decision(choice))
        else:
            slots[found].take(request, Decision(choice, bits[found] // 8 if need else None))
        bits[found] = max(bits.get(found, 0), need)
        taken[index] = found
    return slots


@record(frozen=False)
class _FreeList:
    """Free slots of one kind: constant ones by size in bits and then by when they became free, and symbolic ones."""

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
        if bits == 0:
            return (self.symbolic.popleft(), Choice.FIRST) if self.symbolic else (None, Choice.OPENS)
        middle = bisect_left(self.constant, (bits, 0, 0))
        if middle < len(self.constant) and self.constant[middle][0] <= bits * _MATCH_RANGE:
            size, _, slot = self.constant.pop(middle)
            return slot, Choice.SAME if size == bits else Choice.ROOM
        if middle > 0 and self.constant[middle - 1][0] >= bits // _MATCH_RANGE:
            return self.constant.pop(middle - 1)[2], Choice.GROWS
        return None, Choice.OPENS


class _InPlace:
    """Which requests have taken the place of which, so far."""

    def __init__(self, requests: Sequence[Request], pairs: Sequence[Handover]) -> None:
        number = {request.id: index for index, request in enumerate(requests)} if pairs else {}
        self._candidates: dict[int, list[tuple[int, Handover]]] = {}
        for each in pairs:
            entry = number[each.source.id], each
            self._candidates.setdefault(number[each.destination.id], []).append(entry)
        self._since: dict[int, int] = {}
        self._handed_on: set[int] = set()

    def source(self, index: int, placed: Container[int]) -> int | None:
        """The number of the request whose place the one of this number takes, if any; it is among those `placed`."""
        for source, each in self._candidates.get(index, ()):
            dst, src = each.destination, each.source
            alike = dst.kind == src.kind and dst.size == src.size and not _is_register(dst) and not _is_register(src)
            if source not in placed or source in self._handed_on:
                continue  # born at the same time, and later in order; or gone
            if alike and self._since.get(source, each.at[0]) <= each.at[0]:
                self._handed_on.add(source)
                self._since[index] = each.at[1]
                return source
        return None

    def has_handed_on(self, index: int) -> bool:
        """Whether the storage of the request of this number is another's by now."""
        return index in self._handed_on


def _events(requests: Sequence[Request]) -> Iterator[tuple[int, bool]]:
    """(index, born) in order of time; at one time ends come before births, and ties are in the order of requests."""
    events = [(request.live[0][0], True, index) for index, request in enumerate(requests)]
    events += [(request.live[-1][1], False, index) for index, request in enumerate(requests)]
    for _, born, index in sorted(events):
        yield index, born


def _bits(request: Request) -> int:
    """The constant size in bits, or 0 for a symbolic one."""
    return request.size * 8 if isinstance(request.size, int) else 0


def _is_register(request: Request) -> bool:
    scope = StorageScope.parse(request.scope)
    if scope.tag:
        return request.kind == "handle"
    return scope.rank > Rank.SHARED or request.kind == "handle" or 0 < _bits(request) <= _REGISTER_BITS
