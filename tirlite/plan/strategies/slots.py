"""Slots: storage that requests take whole, one after another; and plans with a pool for each slot, or in a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from operator import attrgetter

from tirlite.groups import by_key
from tirlite.plan.draft import Draft
from tirlite.plan.layout import Choice, Decision
from tirlite.plan.plan import Plan
from tirlite.plan.problem import Problem
from tirlite.plan.request import Request
from tirlite.record import record
from tirlite.sizes import Size, is_at_most, maximum, round_up


@record(frozen=False)
class Slot:
    """The requests that take one slot in turn, the decision for each of them, and the pairs in place."""

    members: list[Request] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    pairs: list[tuple[str, str]] = field(default_factory=list)

    def take(self, request: Request, decision: Decision) -> None:
        self.members.append(request)
        self.decisions.append(decision)

    @property
    def size(self) -> Size:
        """Bytes: the maximum over the members."""
        if len(self.members) == 1:
            return self.members[0].size
        sizes = dict.fromkeys([request.size for request in self.members])
        return maximum(*sizes) if len(sizes) > 1 else next(iter(sizes))


_live = attrgetter("live")

Fill = Callable[[Sequence[Request]], list[Slot]]


def slot_plan(problem: Problem, strategy: str, fill: Fill) -> Plan:
    """A plan with one pool for each slot that `fill` makes of the requests of a memory.

    Requests with fixed offsets share one more pool. A slot is named after its first request. A request that may live in
    several memories goes to the first that it names.
    """
    draft = Draft(problem)
    for memory, requests in problem.by_memory.items():
        pool, loose = problem.memories[memory], [request for request in requests if request.fixed is None]
        for slot in fill(loose) if loose else ():
            name = min(slot.members, key=_live).id
            offsets = dict.fromkeys([request.id for request in slot.members], 0)
            draft.put(name, pool, slot.size, offsets, slot.decisions)
            draft.in_place += slot.pairs
        if fixed := [request for request in requests if request.fixed is not None]:
            draft.put_fixed(fixed[0].id, pool, fixed)
    return draft.plan(strategy)


# Requests of one memory with one key share a pool.
Key = Callable[[Request], str]


def stacked_plan(problem: Problem, strategy: str, fill: Fill, *, align: int, kind: Key) -> Plan:
    """A plan with one pool for all slots of a memory and `kind`, one after another, each rounded up to its alignment.

    Slots are aligned to `align` bytes at least. A request that may live in several memories goes to the first that it
    names; those with fixed offsets are in a pool of their own.
    """
    draft = Draft(problem)
    for (memory, label, is_fixed), members in _by_pool(problem, kind).items():
        pool = problem.memories[memory]
        name = " ".join(part for part in (memory, label, "fixed" if is_fixed else "") if part)
        if is_fixed:
            draft.put_fixed(name, pool, members)
            continue
        slots = fill(members)
        starts, size = _stacked(slots, max(align, pool.align))
        offsets = {each.id: start for slot, start in zip(slots, starts, strict=True) for each in slot.members}
        draft.put(name, pool, size, offsets, [each for slot in slots for each in slot.decisions], align)
    return draft.plan(strategy)


def _by_pool(problem: Problem, kind: Key) -> dict[tuple[str, str, bool], list[Request]]:
    return by_key(
        ((request.memories[0], kind(request), request.fixed is not None), request) for request in problem.requests
    )


def _stacked(slots: Iterable[Slot], least: int) -> tuple[list[Size], Size]:
    """The offset of each slot, and the total size."""
    offsets: list[Size] = []
    end: Size = 0
    known = 1 << 62  # what the end is a multiple of
    for slot in slots:
        align = max(least, *(request.align for request in slot.members))
        start = end if known % align == 0 else round_up(end, align)
        offsets.append(start)
        end = start + round_up(slot.size, align)
        known = align
    return offsets, end


def none(problem: Problem) -> Plan:
    """A plan that shares nothing: what the program needs as it is written."""
    return slot_plan(problem, "none", _own_slots)


def _own_slots(requests: Sequence[Request]) -> list[Slot]:
    return [Slot([request], [Decision(Choice.ALONE)]) for request in requests]


def coalesce(problem: Problem) -> Plan:
    """A plan that shares nothing and allocates once for each region."""
    return stacked_plan(problem, "coalesce", _own_slots, align=1, kind=lambda request: request.kind)


_ALIGN = 64


def group(problem: Problem) -> Plan:
    """A plan with one pool for each memory; a group is as large as its largest request, rounded up to 64 bytes.

    The groups depend on lifetimes alone, so that they are the same for other sizes. A lifetime with gaps counts from
    its begin to its end.
    """
    return stacked_plan(problem, "group", groups, align=_ALIGN, kind=lambda request: "")


def groups(requests: Sequence[Request]) -> list[Slot]:
    """The groups in the order in which they are opened; a request joins the group that was freed last."""
    order = sorted(range(len(requests)), key=lambda number: (requests[number].live[0][0], number))
    ends = sorted(range(len(requests)), key=lambda number: (requests[number].live[-1][1], number))
    of: dict[int, int] = {}
    opened: list[Slot] = []
    sizes: list[Size] = []
    free: list[int] = []
    ended = 0
    for number in order:
        request = requests[number]
        while requests[ends[ended]].live[-1][1] <= request.live[0][0]:
            free.append(of[ends[ended]])
            ended += 1
        if free:
            place = free.pop()
            opened[place].take(request, _joining(request.size, sizes[place]))
            sizes[place] = maximum(sizes[place], request.size)
        else:
            place = len(opened)
            opened.append(Slot([request], [Decision(Choice.OPENS)]))
            sizes.append(request.size)
        of[number] = place
    return opened


def _joining(size: Size, room: Size) -> Decision:
    if size == room:
        return Decision(Choice.SAME)
    return Decision(Choice.ROOM if is_at_most(size, room) else Choice.GROWS, room)
