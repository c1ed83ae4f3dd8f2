"""Choices that a plan leaves open, and limits in; the plan that makes the best of them out.

Which pairs go in place, where requests live that have several memories to choose from, and whether a memory is one
arena or several, is settled for small problems by looking at all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tirlite.plan.bound import lower_bound, memory_groups, open_bound
from tirlite.plan.check import check
from tirlite.plan.decision import Choice, Decision
from tirlite.plan.in_place import Handover, possible
from tirlite.plan.layout import Placement, Region, total_of
from tirlite.plan.plan import Plan
from tirlite.plan.pool import Pool
from tirlite.plan.problem import Problem
from tirlite.plan.request import Request
from tirlite.plan.scale import Scale
from tirlite.plan.search.engine import Engine
from tirlite.plan.search.homes import Figures, Homes, Settled, is_flat, turned_away
from tirlite.plan.search.limits import Limits
from tirlite.plan.search.pairing import Joint
from tirlite.record import record
from tirlite.sizes import Size, maximum

# Of more requests than this, which may live in several memories or arenas, all stay where they are.
_FEW = 32
_BYTES = Scale(1, 1)
# Of more requests than this, in one memory, the pairs stay as they are.
_SEVERAL = 400


@record
class Choices:
    """The memories of a problem in parts between which no request has a choice; and the most nodes for all of them."""

    parts: tuple[_Part, ...]
    most: int | None = None

    @classmethod
    def of(cls, problem: Problem, *, apart: bool = True, most: int | None = None) -> Choices | None:
        """None where there is nothing to choose, or too much. With `apart`, a memory may become several arenas."""
        if len(problem.requests) > len(problem.memories) * _SEVERAL:
            return None
        pairs = possible(problem)
        parts = tuple(_Part.of(problem, names, pairs, apart=apart) for names in memory_groups(problem))
        has_choice = problem.in_place or any(part.counted is not None for part in parts)
        return cls(parts, most) if has_choice else None

    def settled(self, plan: Plan, bounds: Mapping[str, Size | None], engine: Engine, limits: Limits) -> Plan:
        """The plan with the best choices that were found. `bounds` are what each memory needs, where that is known."""
        known: list[Size] = []
        is_changed = False
        is_given = stands(plan)
        limits.nodes = limits.nodes if self.most is None else min(limits.nodes, self.most)
        for number, part in enumerate(self.parts):
            reserve = limits.nodes * (len(self.parts) - number - 1) // (len(self.parts) - number)
            limits.nodes -= reserve
            found = part.settled(plan, engine, limits, is_given=is_given)
            limits.nodes += reserve
            if found is None:
                bound = bounds.get(part.memories[0].name) if part.is_free else None
                known.append(part.floor if bound is None else bound)
                continue
            known.append(part.bytes_of(found.bound))
            if found.arenas:
                plan, is_changed = part.replaced(plan, found.arenas), True
        proved = total_of(known)
        deterministic = plan.deterministic and not limits.is_timed
        given = proved if is_changed else maximum(plan.proved, proved)
        return replace(plan, proved=given, proved_open=proved, deterministic=deterministic)


@record
class _Part:
    """A problem by itself: some memories, and all requests and pairs that may be there.

    `counted` is the same in multiples of `scale`, for one copy where there is one memory; None where there is nothing
    to choose, too much, or where sizes vary. `has_apart` says that several arenas in one memory are looked at, and
    `is_proof` that nothing else than what is looked at can need less.
    """

    problem: Problem
    scale: Scale
    counted: Problem | None
    has_apart: bool
    is_proof: bool

    @classmethod
    def of(cls, problem: Problem, names: Sequence[str], pairs: Sequence[Handover], *, apart: bool) -> _Part:
        inside = set(names)
        requests = tuple(request for request in problem.requests if request.memories[0] in inside)
        memories = tuple(problem.memories[name] for name in names)
        within = tuple(each.pair for each in pairs if each.source.memories[0] in inside)
        alone = Problem(requests, memories, within, contiguous=problem.contiguous)
        align = max(*[pool.align for pool in memories], *[request.align for request in requests], 1)
        scale = Scale.of((request.size for request in requests), align)
        counted = None if scale is None else _counted(alone, scale)
        flat = counted is not None and all(is_flat(counted.requests, memory) for memory in counted.pools)
        has_apart = apart and len(requests) <= _FEW and not problem.contiguous and not flat
        is_whole = flat or has_apart or problem.contiguous
        is_small = len(requests) <= (_SEVERAL if len(names) == 1 else _FEW)
        has_choice = bool(within) or has_apart or len(names) > 1
        is_proof = is_whole and (scale == _BYTES or flat)
        return cls(alone, scale or _BYTES, counted if is_small and has_choice else None, has_apart, is_proof)

    @property
    def memories(self) -> tuple[Pool, ...]:
        return self.problem.pools

    @property
    def is_free(self) -> bool:
        """Whether there is nothing to choose but offsets and arenas."""
        return len(self.memories) == 1 and not self.problem.in_place

    @property
    def floor(self) -> Size:
        """Bytes that every plan needs, by what is live at one time."""
        return open_bound(self.problem) if self.problem.in_place else lower_bound(self.problem)

    def settled(self, plan: Plan, engine: Engine, limits: Limits, *, is_given: bool) -> Settled | None:
        """What is best, as far as the limits go; None where there is nothing to choose, or too much."""
        if self.counted is None:
            return None
        problem = self.counted
        floor = open_bound(problem) if problem.in_place else lower_bound(problem)
        assert isinstance(floor, int)
        homes = Homes(problem.requests, problem.pools, possible(problem), contiguous=not self.has_apart)
        return homes.settle(engine, limits, floor, self._given(plan) if is_given else None)

    def _given(self, plan: Plan) -> Figures | None:
        """The figures of a plan, None where it does not consist of multiples."""
        assert self.counted is not None
        total = turned = 0
        for pool in self.counted.pools:
            sizes = [region.size for region in plan.pools.values() if region.memory == pool.name]
            if self.problem.contiguous and sizes:
                sizes = [plan.row.ends[pool.name]]
            counts = [self.scale.count(size) for size in sizes]
            known = [count for count in counts if count is not None]
            if len(known) < len(counts) or not isinstance(pool.copies, int):
                return None
            total += sum(known) * pool.copies
        for request in self.counted.requests:
            turned += turned_away(request, plan.pools[plan.placements[request.id].pool].memory)
        return Figures(total, turned)

    def bytes_of(self, bound: int) -> Size:
        """What all plans need, in bytes."""
        times = self.memories[0].copies if len(self.memories) == 1 else 1
        return self.scale.unit * bound * times if self.is_proof else self.floor

    def replaced(self, plan: Plan, arenas: Sequence[tuple[int, Joint]]) -> Plan:
        """The plan with these arenas in the place of all that it has in these memories."""
        problem = plan.problem
        inside = {pool.name for pool in self.memories}
        pools = {name: region for name, region in plan.pools.items() if region.memory not in inside}
        placements, decisions = dict(plan.placements), dict(plan.decisions)
        own = {request.id for request in self.problem.requests}
        pairs = [pair for pair in plan.in_place if pair[0] not in own]
        for place, joint in arenas:
            memory = self.memories[place]
            requests = [problem.by_id[name] for name in joint.offsets]
            name = memory.name
            while name in problem.by_id or name in pools:
                name += "'"
            align = max(memory.align, *[request.align for request in requests])
            pools[name] = Region(memory.name, memory.scope, joint.size * self.scale.unit, align)
            taken = {dst for dst, _ in joint.in_place}
            for request in requests:
                placements[request.id] = Placement(name, joint.offsets[request.id] * self.scale.unit)
                decisions[request.id] = Decision(_choice(request, taken))
            pairs += joint.in_place
        return replace(plan, pools=pools, placements=placements, decisions=decisions, in_place=tuple(pairs))


def is_settled(plan: Plan) -> bool:
    """Whether no plan needs fewer bytes, all are where they would be, and nothing clashes."""
    problem = plan.problem
    at_home = all(
        len(request.pools) < 2 or plan.pools[plan.placements[request.id].pool].memory == request.pools[0]
        for request in problem.requests
    )
    return at_home and plan.proved_optimal and stands(plan)


def stands(plan: Plan) -> bool:
    """Whether the plan fits its memories, and fixed offsets do not clash in them."""
    problem = plan.problem
    is_plain = all(pool.capacity is None for pool in problem.memories.values())
    return (is_plain and all(request.fixed is None for request in problem.requests)) or bool(check(problem, plan))


def _choice(request: Request, taken: set[str]) -> Choice:
    if request.fixed is not None:
        return Choice.FIXED
    return Choice.IN_PLACE if request.id in taken else Choice.PACKED


def _counted(problem: Problem, scale: Scale) -> Problem | None:
    """The problem in multiples of a size; None where it has bytes in it that are no such multiples."""
    if len(problem.pools) > 1:
        is_constant = scale == _BYTES and all(isinstance(pool.copies, int) for pool in problem.pools)
        return problem if is_constant else None
    (pool,) = problem.pools
    is_free = pool.capacity is None and all(request.fixed is None for request in problem.requests)
    if scale != _BYTES and not is_free:
        return None
    requests = tuple(
        replace(request, size=scale.count(request.size) or 0, align=scale.align(request.align))
        for request in problem.requests
    )
    pool = replace(pool, align=scale.align(pool.align), copies=1)
    return Problem(requests, (pool,), problem.in_place, contiguous=problem.contiguous)
