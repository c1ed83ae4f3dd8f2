"""Strategy `pack`: byte offsets in one arena for each memory. A problem in, the best plan that heuristics find out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, partial

from tirlite.plan.bound import peak
from tirlite.plan.collection import collection_paused
from tirlite.plan.decision import Choice, Decision
from tirlite.plan.in_place import handovers
from tirlite.plan.layout import Placement, Region, total_of
from tirlite.plan.pack.arena import Arena, Packer, Shared
from tirlite.plan.pack.assign import assigned
from tirlite.plan.pack.portfolio import BUDGET
from tirlite.plan.plan import Plan
from tirlite.plan.pool import Pool
from tirlite.plan.problem import Problem
from tirlite.plan.request import Request
from tirlite.plan.samples import samples
from tirlite.plan.search.engine import Engine
from tirlite.plan.search.limits import Limits
from tirlite.plan.strategies.share import share
from tirlite.record import record
from tirlite.sizes import Proof, Size, alternatives, prove_le

_SAMPLES = 8
# Of more requests than this in one memory, what whole slots need is not asked.
_MANY = 10_000


@collection_paused()
def pack(problem: Problem, budget: int = BUDGET, engine: Engine | None = None, limits: Limits | None = None) -> Plan:
    """The plan with the fewest bytes that a portfolio of heuristics finds; never more than `share`, at any binding.

    Requests of constant size get offsets by first fit in several orders, by filling the lowest place of the skyline,
    and by improving on that within `budget`, counted in looks at requests. Symbolic ones are stacked, each on those
    below it, in an order that is good at several bindings; the offsets hold for all. Pairs in place are taken where
    that lowers the total. A request that may live in several memories goes to the first that has room for it. With
    less than the full budget, or very many requests, what `share` needs is not worked out for comparison. If there is
    an `engine`, the largest of very many requests are placed by searches that it runs. Where the clock of the `limits`
    or the user ends that, the plan is the best so far, and says `deterministic=False`.
    """
    settled = _settled(problem)
    slots = _Slots(settled)
    packer = Packer(samples(settled.dims, _SAMPLES), budget, engine, limits)
    pairs = handovers(settled)
    plan = _Parts()
    for name, requests in _by_memory(settled).items():
        memory = settled.memories[name]
        inside = [each for each in pairs if each.source.memories[0] == name]
        # Where nothing can need less, or asking would take longest, what slots need is not asked.
        is_asked = len(requests) <= _MANY and budget >= BUDGET
        floor = 0 if inside or not is_asked else peak(settled, requests).size
        fits = partial(_fits, floor=floor, ceiling=partial(slots.size, name) if is_asked else None)
        arena = packer.arena(requests, memory.align, inside, partial(slots.shares, name), fits)
        if arena is None:
            plan.add_slots(slots.regions(name), slots.shared, requests)
        else:
            plan.add_arena(_unused(name, settled), memory, requests, arena)
    made = plan.plan(problem)
    return made if limits is None or not limits.ended_by_clock else replace(made, deterministic=False)


class _Slots:
    """What `share` makes of a problem, worked out when it is asked for."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    @cached_property
    def shared(self) -> Plan:
        return share(self._problem)

    def regions(self, memory: str) -> dict[str, Region]:
        return {name: region for name, region in self.shared.pools.items() if region.memory == memory}

    def size(self, memory: str) -> Size:
        """Bytes of all slots in one memory, with padding between them where that counts."""
        if self._problem.contiguous:
            return self.shared.row.ends[memory]
        return total_of(region.size for region in self.regions(memory).values())

    def shares(self, memory: str) -> Shared:
        regions = self.regions(memory)
        numbers = {name: number for number, slot in enumerate(regions) for name in self.shared.residents[slot]}
        return Shared([region.size for region in regions.values()], numbers, bool(self.shared.in_place))


@record(frozen=False)
class _Parts:
    """A plan, memory by memory."""

    places: dict[str, Placement] = field(default_factory=dict)
    pools: dict[str, Region] = field(default_factory=dict)
    decisions: dict[str, Decision] = field(default_factory=dict)
    in_place: list[tuple[str, str]] = field(default_factory=list)

    def add_slots(self, slots: Mapping[str, Region], shared: Plan, requests: Sequence[Request]) -> None:
        """One memory as it is in a plan of slots."""
        ids = [request.id for request in requests]
        self.pools.update(slots)
        self.places.update((name, shared.placements[name]) for name in ids)
        self.decisions.update((name, shared.decisions[name]) for name in ids)
        inside = set(ids)
        self.in_place += [pair for pair in shared.in_place if pair[0] in inside]

    def add_arena(self, pool: str, memory: Pool, requests: Sequence[Request], arena: Arena) -> None:
        """One memory as an arena."""
        align = max(memory.align, *(request.align for request in requests))
        self.pools[pool] = Region(memory.name, memory.scope, arena.size, align)
        taken = {dst for dst, _ in arena.in_place}
        for request in requests:
            fixed = Choice.PACKED if request.fixed is None else Choice.FIXED
            self.places[request.id] = Placement(pool, arena.offsets[request.id])
            self.decisions[request.id] = Decision(Choice.IN_PLACE if request.id in taken else fixed)
        self.in_place += arena.in_place

    def plan(self, problem: Problem) -> Plan:
        return Plan(problem, self.places, self.pools, "pack", self.decisions, in_place=tuple(self.in_place))


def _settled(problem: Problem) -> Problem:
    """The problem with one memory for each request."""
    homes = assigned(problem)
    if all(len(request.memories) == 1 for request in problem.requests):
        return problem
    return replace(problem, requests=tuple(replace(r, pools=(homes[r.id],)) for r in problem.requests))


def _by_memory(problem: Problem) -> dict[str, list[Request]]:
    inside: dict[str, list[Request]] = {}
    for request in problem.requests:
        inside.setdefault(request.memories[0], []).append(request)
    return inside


def _fits(size: Size, *, floor: Size, ceiling: Callable[[], Size] | None) -> bool:
    """Whether `size` is `floor`, or is proved to be at most the ceiling, if there is one."""
    if size == floor or ceiling is None:
        return True
    limit = ceiling()
    return prove_le(size, limit) is Proof.YES or all(
        any(prove_le(one, other) is Proof.YES for other in alternatives(limit)) for one in alternatives(size)
    )


def _unused(name: str, problem: Problem) -> str:
    """A name for an arena that is no name of a request, as slots are called after those."""
    while name in problem.by_id:
        name += "'"
    return name
