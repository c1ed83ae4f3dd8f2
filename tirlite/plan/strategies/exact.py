"""Strategy `exact`: the fewest bytes, proved, or the best plan within the budget, with a valid lower bound.

For small problems, `Choices` also searches over pairs in place, memories of requests that name several, and whether a
memory is one arena or several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter

from tirlite.plan.blocks import Block, Piece
from tirlite.plan.bound import lower_bound, memory_groups, open_bound
from tirlite.plan.check import check
from tirlite.plan.draft import Draft
from tirlite.plan.in_place import Group, Handover, grouped, possible
from tirlite.plan.layout import PlannedPool, total_of
from tirlite.plan.plan import Plan
from tirlite.plan.problem import Problem
from tirlite.plan.request import Pool, Request
from tirlite.plan.scale import Scale
from tirlite.plan.search.descent import Packing, minimise
from tirlite.plan.search.engine import Engine, Limits, PythonEngine
from tirlite.plan.search.homes import Figures, Homes, Settled, is_flat, turned_away
from tirlite.plan.search.instance import overlaps
from tirlite.plan.search.pairing import Joint
from tirlite.plan.strategies.pack import pack
from tirlite.plan.strategy import DEFAULT, Effort
from tirlite.record import record, replace
from tirlite.sizes import Size, is_at_most, maximum

# Nodes of a search without limits: some seconds of Python.
BUDGET = 20_000
_ENDLESS = 1 << 60
# The budget of `pack` before the search; with a time limit and no compiled engine, per second and at most.
_FIRST_LOOK, _LOOKS_PER_SECOND, _LONG_LOOK = 2_000, 300_000, 30_000
# The most pairs of requests that are live together in a memory that is searched.
_MOST_PAIRS = 4_000_000
_BYTES = Scale(1, 1)


def exact(problem: Problem, effort: Effort = DEFAULT) -> Plan:
    """The plan with the fewest bytes, or the best one found within the effort; with `stop_at_fit` the first that fits.

    `plan.proved_optimal` says which. It needs no more bytes than `pack`, unless the clock ended the search. In small
    problems pairs in place, memories, and the division of memories into arenas are chosen as well; of plans with equal
    bytes, the one that turns away the fewest bytes from preferred memories. See `improved` and `Choices`.
    """
    # The search improves a plan faster than the heuristics, which get their full budget only if it ends without proof.
    start = perf_counter()
    first = pack(problem, _first_look(effort.engine, effort.time_limit))
    if is_settled(first) or (effort.stop_at_fit and stands(first)):
        return replace(first, strategy="exact")
    found = improved(first, effort.since(start), Choices.of(problem))
    if not found.proved_optimal and found.deterministic and not (effort.stop_at_fit and stands(found)):
        packed = pack(problem)
        if not is_at_most(found.total, packed.total) and stands(packed) >= stands(found):
            found = packed
    return replace(found, strategy="exact")


def _first_look(engine: Engine | None, time_limit: float | None) -> int:
    """The budget of `pack`: more where the search runs in Python, as heuristics are faster than that."""
    if time_limit is None or (engine is not None and engine.is_parallel):
        return _FIRST_LOOK
    return max(_FIRST_LOOK, int(min(time_limit * _LOOKS_PER_SECOND, _LONG_LOOK)))


def improved(plan: Plan, effort: Effort = DEFAULT, choices: Choices | None = None) -> Plan:
    """The best plan that a branch and bound search finds from `plan` on; `plan` itself if it finds none better.

    It searches each memory in which all sizes are constant, or constant multiples of one size; without limits, for
    BUDGET nodes. Requests keep their memories, and pairs in place are those of `plan`; `plan.proved` is a lower bound
    given that. With `choices`, half of the effort, or what is left of it, goes to choosing these anew. A plan of a
    search that the clock or Ctrl-C ended says `deterministic=False`. Several threads search at once if the engine is
    compiled; within a budget of nodes, their plan is that of one thread.

    See `plan.search` for the rules of the search. The engine runs them, by default in Python.
    """
    budget, engine = effort.budget, effort.engine or PythonEngine()
    if budget is None:
        budget = BUDGET if effort.time_limit is None else _ENDLESS
    limits = Limits(budget, effort.time_limit, effort.listener, effort.threads, effort.stop_at_fit)
    share = limits if choices is None else limits.part(2)
    found, bounds = _searched(plan, engine, share)
    if choices is None or is_settled(found) or (effort.stop_at_fit and stands(found)):
        return found
    limits.take_back(share)
    try:
        return choices.settled(found, bounds, engine, limits)
    except KeyboardInterrupt:
        return replace(found, deterministic=False)


def _searched(plan: Plan, engine: Engine, limits: Limits) -> tuple[Plan, dict[str, Size | None]]:
    """The improved plan; and for each memory a lower bound given the choices of the plan, where it is known."""
    memories = [
        _SearchedMemory.of(plan, name) for name in dict.fromkeys(region.memory for region in plan.pools.values())
    ]
    bounds: dict[str, Size | None] = {}
    for left, memory in zip(range(len(memories), 0, -1), memories, strict=True):
        reserve = limits.nodes * (left - 1) // left
        limits.nodes -= reserve
        packing = memory.packed(engine, limits)
        limits.nodes += reserve
        is_known = packing is not None and memory.is_proof(packing)
        bounds[memory.pool.name] = memory.bytes_of(packing.bound) if packing is not None and is_known else None
        if packing is not None and packing.total < memory.total:
            plan = memory.replaced(plan, packing)
    known = [bound for bound in bounds.values() if bound is not None]
    is_whole = len(known) == len(bounds) and all(len(r.memories) == 1 for r in plan.problem.requests)
    deterministic = plan.deterministic and not limits.is_timed
    proved = maximum(plan.proved, total_of(known)) if is_whole else plan.proved
    return replace(plan, proved=proved, deterministic=deterministic), bounds


@record
class _SearchedMemory:
    """One memory of a plan: its requests, in groups that share one offset; the groups as blocks in units of `scale`.

    There are no blocks where their sizes are not multiples of one. `offsets` are those of the groups with the regions
    of the memory in a row; None if that would move a fixed offset. `total` is the size.
    """

    pool: Pool
    contiguous: bool
    requests: tuple[Request, ...]
    groups: tuple[Group, ...]
    scale: Scale
    blocks: tuple[Block, ...] | None
    offsets: tuple[int, ...] | None
    total: int

    @classmethod
    def of(cls, plan: Plan, name: str) -> _SearchedMemory:
        problem, pool = plan.problem, plan.problem.memories[name]
        inside = {key: region for key, region in plan.pools.items() if region.memory == name}
        requests = tuple(r for r in problem.requests if plan.placements[r.id].pool in inside)
        taken = {pair for pair in plan.in_place if plan.placements[pair[0]].pool in inside}
        groups = tuple(grouped(requests, [each for each in possible(problem) if each.pair in taken]))
        align = max(region.align for region in inside.values())
        scale = Scale.of((size for group in groups for _, size in group.pieces), align) or _BYTES
        blocks = [_block(group, pool.align, scale) for group in groups]
        known = tuple(block for block in blocks if block is not None)
        counts = {key: scale.count(region.size) for key, region in inside.items()}
        sizes = {key: count for key, count in counts.items() if count is not None}
        if len(known) < len(blocks) or len(sizes) < len(inside) or not isinstance(pool.copies, int):
            return cls(pool, problem.contiguous, requests, groups, scale, None, None, 0)
        offsets, end = _in_a_row(plan, groups, inside, sizes, scale)
        total = end if problem.contiguous else sum(sizes.values())
        return cls(pool, problem.contiguous, requests, groups, scale, known, offsets, total)

    def packed(self, engine: Engine, limits: Limits) -> Packing | None:
        """The packing that the search finds; None where there is nothing to search."""
        if self.blocks is None or overlaps(self.blocks, _MOST_PAIRS) > _MOST_PAIRS:
            return None
        if sum(block.size + block.align + (block.fixed or 0) for block in self.blocks) > engine.largest:
            engine = PythonEngine()
        wanted = self.pool.capacity if self.scale == _BYTES else None
        return minimise(self.blocks, engine, limits, self.offsets, wanted)

    def is_proof(self, packing: Packing) -> bool:
        """Whether the bound of one arena is a bound of the memory.

        Several arenas may save padding that alignment costs in one, unless they stand in a row. With sizes over dims it
        is not known which alignments cost padding.
        """
        return packing.is_flat or (self.contiguous and self.scale == _BYTES)

    def bytes_of(self, size: int) -> Size:
        """The bytes of an arena of this many units, in all copies of the memory."""
        return size * self.scale.unit * self.pool.copies

    def replaced(self, plan: Plan, packing: Packing) -> Plan:
        """The plan with this memory packed anew."""
        unit, draft = self.scale.unit, Draft.without(plan, {self.pool.name})
        places = zip(self.groups, packing.offsets, strict=True)
        offsets = {request.id: offset * unit for group, offset in places for request in group.members}
        draft.put_arena(self.pool, packing.total * unit, offsets)
        return draft.onto(plan)


def _block(group: Group, align: int, scale: Scale) -> Block | None:
    """The group as one block; None where its sizes are not numbers of units.

    A fixed offset is a number of bytes, which is not a number of units where these depend on the dims.
    """
    counts = [(low, high, scale.count(size)) for (low, high), size in group.pieces]
    pieces = tuple([Piece(low, high, count) for low, high, count in counts if count is not None])
    if len(pieces) < len(counts) or not (group.fixed is None or scale == _BYTES):
        return None
    return Block(pieces, scale.align(max(align, group.align)), group.fixed)


def _in_a_row(
    plan: Plan, groups: Sequence[Group], regions: Mapping[str, PlannedPool], sizes: Mapping[str, int], scale: Scale
) -> tuple[tuple[int, ...] | None, int]:
    """The offsets of the groups with the regions one after the other, and the end of the last.

    The offsets are None where that would move a fixed one.
    """
    held = {plan.placements[r.id].pool for group in groups for r in group.members if r.fixed is not None}
    starts: dict[str, int] = {}
    end = 0
    for name in sorted(regions, key=lambda name: name not in held):
        align = scale.align(regions[name].align)
        starts[name] = -(-end // align) * align
        end = starts[name] + sizes[name]
    if any(starts[name] for name in held):
        return None, end
    places = [plan.placements[group.members[0].id] for group in groups]
    offsets = [(starts[place.pool], scale.count(place.offset)) for place in places]
    known = tuple(start + offset for start, offset in offsets if offset is not None)
    return (known if len(known) == len(offsets) else None), end


# The most requests for which memories and arenas are chosen.
_FEW = 32
# The most requests in one memory for which pairs in place are chosen.
_SEVERAL = 400


@record
class Choices:
    """A problem divided into independent subproblems; and the most nodes for all of them."""

    parts: tuple[_Subproblem, ...]
    most: int | None = None

    @classmethod
    def of(cls, problem: Problem, *, apart: bool = True, most: int | None = None) -> Choices | None:
        """None where there are no choices, or too many. With `apart`, a memory may become several arenas."""
        if len(problem.requests) > len(problem.memories) * _SEVERAL:
            return None
        pairs = possible(problem)
        parts = tuple(_Subproblem.of(problem, names, pairs, apart=apart) for names in memory_groups(problem))
        has_choice = problem.in_place or any(part.counted is not None for part in parts)
        return cls(parts, most) if has_choice else None

    def settled(self, plan: Plan, bounds: Mapping[str, Size | None], engine: Engine, limits: Limits) -> Plan:
        """The plan with the best choices found. `bounds` are lower bounds of the memories, where they are known."""
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
class _Subproblem:
    """Some memories with all requests and pairs that may be there: it is independent of the rest of the problem.

    `counted` is the same in multiples of `scale`, for one copy if there is one memory; None where there are no choices,
    too many, or sizes of no common unit. `has_apart` says that several arenas in one memory are tried, and `is_proof`
    that no other plan can need fewer bytes than those that are tried.
    """

    problem: Problem
    scale: Scale
    counted: Problem | None
    has_apart: bool
    is_proof: bool

    @classmethod
    def of(cls, problem: Problem, names: Sequence[str], pairs: Sequence[Handover], *, apart: bool) -> _Subproblem:
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
        """Whether only offsets and arenas can be chosen."""
        return len(self.memories) == 1 and not self.problem.in_place

    @property
    def floor(self) -> Size:
        """A lower bound of the bytes of every plan, by what is live at one time."""
        return open_bound(self.problem) if self.problem.in_place else lower_bound(self.problem)

    def settled(self, plan: Plan, engine: Engine, limits: Limits, *, is_given: bool) -> Settled | None:
        """The best choices found within the limits; None where there are no choices, or too many."""
        if self.counted is None:
            return None
        problem = self.counted
        floor = open_bound(problem) if problem.in_place else lower_bound(problem)
        assert isinstance(floor, int)
        homes = Homes(problem.requests, problem.pools, possible(problem), contiguous=not self.has_apart)
        return homes.settle(engine, limits, floor, self._given(plan) if is_given else None)

    def _given(self, plan: Plan) -> Figures | None:
        """The figures of a plan; None where its sizes are not multiples of the scale."""
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
        """A lower bound of the bytes of every plan."""
        times = self.memories[0].copies if len(self.memories) == 1 else 1
        return self.scale.unit * bound * times if self.is_proof else self.floor

    def replaced(self, plan: Plan, arenas: Sequence[tuple[int, Joint]]) -> Plan:
        """The plan with these arenas in place of all its pools in these memories."""
        unit, draft = self.scale.unit, Draft.without(plan, {pool.name for pool in self.memories})
        for place, joint in arenas:
            offsets = {name: offset * unit for name, offset in joint.offsets.items()}
            draft.put_arena(self.memories[place], joint.size * unit, offsets, joint.in_place)
        return draft.onto(plan)


def is_settled(plan: Plan) -> bool:
    """Whether the plan is optimal, all requests are in their preferred memories, and it is valid."""
    problem = plan.problem
    at_home = all(
        len(request.pools) < 2 or plan.pools[plan.placements[request.id].pool].memory == request.pools[0]
        for request in problem.requests
    )
    return at_home and plan.proved_optimal and stands(plan)


def stands(plan: Plan) -> bool:
    """Whether the plan fits its memories, and fixed offsets do not clash."""
    problem = plan.problem
    is_plain = all(pool.capacity is None for pool in problem.memories.values())
    return (is_plain and all(request.fixed is None for request in problem.requests)) or bool(check(problem, plan))


def _counted(problem: Problem, scale: Scale) -> Problem | None:
    """The problem in units of `scale`; None where a capacity or fixed offset is not counted in these."""
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
