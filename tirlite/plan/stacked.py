"""Slots in, a plan with one pool for each memory and kind out, in which the slots stand one behind the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tirlite.plan.decision import Choice, Decision
from tirlite.plan.layout import Placement, Region
from tirlite.plan.plan import Plan
from tirlite.plan.pool import Pool
from tirlite.plan.problem import Problem
from tirlite.plan.request import Request
from tirlite.plan.slots import Slot
from tirlite.sizes import Size, maximum, round_up

# What shares a pool: the requests of one memory with one key.
Key = Callable[[Request], str]
Fill = Callable[[Sequence[Request]], list[Slot]]


def stacked_plan(problem: Problem, strategy: str, fill: Fill, *, align: int, kind: Key) -> Plan:
    """The plan in which each pool is a sum: offsets and sizes of slots are rounded up to their alignment.

    Slots are aligned to `align` bytes at least. A request that may live in several memories goes to the first one that
    it names; those with a fixed offset stand in a pool of their own.
    """
    placements: dict[str, Placement] = {}
    pools: dict[str, Region] = {}
    decisions: dict[str, Decision] = {}
    for (memory, label, is_fixed), members in _by_pool(problem, kind).items():
        pool = problem.memories[memory]
        name = _name(memory, label, is_fixed)
        least = max(align, pool.align)
        if is_fixed:
            found = {request.id: request.fixed or 0 for request in members}
            decisions.update((request.id, Decision(Choice.FIXED)) for request in members)
            size = maximum(*(found[request.id] + request.size for request in members))
            placements.update((key, Placement(name, offset)) for key, offset in found.items())
        else:
            slots = fill(members)
            offsets, size = _stacked(slots, least)
            for slot, offset in zip(slots, offsets, strict=True):
                placements.update((request.id, Placement(name, offset)) for request in slot.members)
                decisions.update(zip((request.id for request in slot.members), slot.decisions, strict=True))
        pools[name] = _region(pool, members, size, 1 if is_fixed else align)
    return Plan(problem, placements, pools, strategy, decisions)


def _by_pool(problem: Problem, kind: Key) -> dict[tuple[str, str, bool], list[Request]]:
    groups: dict[tuple[str, str, bool], list[Request]] = {}
    for request in problem.requests:
        groups.setdefault((request.memories[0], kind(request), request.fixed is not None), []).append(request)
    return groups


def _name(memory: str, label: str, is_fixed: bool) -> str:
    return " ".join(part for part in (memory, label, "fixed" if is_fixed else "") if part)


def _stacked(slots: Iterable[Slot], least: int) -> tuple[list[Size], Size]:
    """The offset of each slot, and the bytes of all."""
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


def _region(memory: Pool, members: Sequence[Request], size: Size, align: int) -> Region:
    return Region(memory.name, memory.scope, size, max(memory.align, align, *(request.align for request in members)))
