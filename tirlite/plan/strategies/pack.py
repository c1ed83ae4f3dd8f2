"""Strategy `pack` plans byte offsets in one arena for each memory, as well as heuristics can."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import le

from tirlite.collection import collection_paused
from tirlite.plan.blocks import Block, block_of, sections_of, top_of
from tirlite.plan.bound import open_bound, peak
from tirlite.plan.draft import Draft
from tirlite.plan.in_place import Group, Handover, among, chosen, grouped, handovers
from tirlite.plan.layout import PlannedPool, total_of
from tirlite.plan.order import Binding, SizeOrder, drawn, samples
from tirlite.plan.pack.heuristics import first_fit, meetings
from tirlite.plan.pack.portfolio import BUDGET, pack_blocks
from tirlite.plan.pack.symbolic.groups import Slots, even, layout_cost, pack_groups
from tirlite.plan.plan import Plan
from tirlite.plan.problem import Problem
from tirlite.plan.request import Pool, Request
from tirlite.plan.search.engine import Engine, Limits
from tirlite.plan.strategies.share import share
from tirlite.record import cached_property, record, replace
from tirlite.sizes import Size, alternatives, maximum, upper_bound


@record
class Arena:
    """An arena: the offset of each request, the bytes of all, and the pairs in place.

    `is_known` says that it is proved to need no more bytes than slots at any binding.
    """

    offsets: Mapping[str, Size]
    size: Size
    in_place: tuple[tuple[str, str], ...] = ()
    is_known: bool = False


@record
class Packer:
    """How to pack: the sample `bindings` of symbolic sizes, and those at which sizes are compared, `trials`.

    `budget` is the number of looks at requests for each memory; `engine`, if any, runs searches for very many requests,
    which end with the `limits`.
    """

    bindings: Sequence[Binding]
    trials: SizeOrder
    budget: int
    engine: Engine | None = None
    limits: Limits | None = None

    def is_at_most(self, size: Size, limit: Size) -> bool:
        """Whether `size` is at most `limit` at all trial bindings: much that holds is beyond a proof."""
        return all(map(le, self.trials.values(size), self.trials.values(limit)))

    def arena(
        self,
        requests: Sequence[Request],
        align: int,
        taken: Sequence[Handover],
        slots: Callable[[], Slots],
        fits: Callable[[Size], bool],
    ) -> Arena | None:
        """The first arena found that `fits`; each offset is a multiple of `align` and of its request's alignment.

        It holds for all values of the dims, with the pairs `taken` in place. `slots` is called where sizes are
        symbolic; an arena that is proved to need no more bytes than these always fits. None where nothing fits, where
        sizes are symbolic and offsets fixed, and where too many sizes are symbolic.
        """
        ways = self._ways(requests, align, taken, slots)
        return next((each for each in ways if each.is_known or fits(each.size)), None)

    def _ways(
        self, requests: Sequence[Request], align: int, taken: Sequence[Handover], slots: Callable[[], Slots]
    ) -> Iterator[Arena]:
        groups = grouped(requests, taken)
        in_place = tuple(each.pair for each in taken)
        if all(isinstance(size, int) for group in groups for _, size in group.pieces):
            blocks = [block_of(group, align) for group in groups]
            offsets = pack_blocks(blocks, self.budget, self.engine, self.limits)
            yield Arena(_named(groups, offsets), top_of(blocks, offsets), in_place)
        elif all(request.fixed is None for request in requests):
            aligns = [max(align, group.align) for group in groups]
            for each, is_known in pack_groups(groups, aligns, slots, self.bindings, self.budget):
                yield Arena(_named(groups, each.offsets), each.total, in_place, is_known)


def _named(groups: Sequence[Group], offsets: Sequence[Size]) -> dict[str, Size]:
    return {r.id: offset for group, offset in zip(groups, offsets, strict=True) for r in group.members}


_SAMPLES = 8
# Bindings at which arenas are compared with slots: as many for each of these greatest values of a dim.
_TRIALS, _TRIED = 128, (12, 4096, 1 << 20)
# Pairs in place are left out one by one for at most _FEW requests, where an arena is over the bound by a part _NEAR of
# it. What that saves is estimated by _MOVES moves of each block, at _DRAWN bindings beside the samples, among the _BORN
# requests that are born before a pair and as many after it.
_FEW, _MOVES, _DRAWN, _NEAR, _BORN = 128, 8, 16, 0.001, 8
# The most requests in one memory for which an arena is compared with whole slots.
_MANY = 10_000


@collection_paused()
def pack(problem: Problem, budget: int = BUDGET, engine: Engine | None = None, limits: Limits | None = None) -> Plan:
    """The plan with the fewest bytes that a portfolio of heuristics finds; never more than `share`, at any binding.

    For symbolic sizes that is proved, or else tried at several hundred bindings; sizes in the slots of `share` are
    rounded up there to alignments that may not divide them. Requests of constant size are placed by first fit in
    several orders, by filling the lowest place of the skyline, and by improving on that within `budget` looks at
    requests. Requests of symbolic sizes are stacked, each on those below it, in an order that is good at many bindings;
    the offsets hold for all. Pairs in place are taken where that lowers the total, and for symbolic sizes where it
    raises the total at none of these bindings, if possible. A request that may live in several memories goes to the
    first that has room for it. With less than the full budget, and for very many requests, `share` is not asked for
    comparison. If there is an `engine`, it searches for the places of the largest of very many requests. Where the
    clock of the `limits` or the user ends that, the plan is the best so far, and says `deterministic=False`.
    """
    settled = _settled(problem)
    tried = [each for most in _TRIED for each in drawn(settled.dims, _TRIALS, most)] if settled.dims else [{}]
    packer = Packer(samples(settled.dims, _SAMPLES), SizeOrder(tried), budget, engine, limits)
    pairs = handovers(settled)
    slots = _SharePlan(settled)
    bare = _SharePlan(replace(settled, in_place=())) if pairs else slots
    draft = Draft(problem)
    are_least = settled is problem
    for name, requests in settled.by_memory.items():
        # For very many requests, planning slots would take longest.
        is_asked = len(requests) <= _MANY and budget >= BUDGET
        memory = _MemoryPacker(settled, settled.memories[name], requests, packer, is_asked)
        way = memory.way(among(pairs, requests), slots, bare)
        are_least = are_least and way.is_least
        if way.arena is None:
            _put_slots(draft, way.slots.regions(name), way.slots.shared, requests)
        else:
            offsets = {request.id: way.arena.offsets[request.id] for request in requests}
            draft.put_arena(settled.memories[name], way.arena.size, offsets, way.arena.in_place)
    made = draft.plan("pack")
    if are_least:
        made = replace(made, proved_open=made.total)
    return made if limits is None or not limits.ended_by_clock else replace(made, deterministic=False)


@record
class _Way:
    """A way to plan one memory, and the bytes that it needs: in an arena if there is one, else in slots.

    `is_least` says that no plan of the memory needs less, whichever pairs it takes.
    """

    size: Size
    slots: _SharePlan
    arena: Arena | None = None
    is_least: bool = False

    def maxima(self, memory: str) -> Sequence[Sequence[Size]]:
        """Groups of sizes: the greatest of each group add up to the size of the way."""
        return self.slots.held(memory) if self.arena is None else [alternatives(self.arena.size)]


@record(slots=False, guarded=False)
class _MemoryPacker:
    """The requests of one memory, and their packer. With `is_asked`, the plan may need no more bytes than slots."""

    problem: Problem
    pool: Pool
    requests: Sequence[Request]
    packer: Packer
    is_asked: bool

    def way(self, pairs: Sequence[Handover], slots: _SharePlan, bare: _SharePlan) -> _Way:
        """The best way found; `slots` may have pairs in place, and `bare` have none.

        At no binding does it need more bytes than the slots; nor than without pairs, unless no plan meets both limits.
        """
        order = SizeOrder(self.packer.bindings)
        taken = chosen(pairs, order.value)
        if not pairs:
            return self._arena((), bare) or self._whole(bare)
        if (least := self._least(taken, slots)) is not None:
            return least
        if not self.is_asked or all(isinstance(request.size, int) for request in self.requests):
            found = [way for each in ((), taken) if (way := self._arena(each, slots)) is not None]
            return min(found, key=lambda way: sum(order.values(way.size)), default=None) or self._whole(slots)
        alone, whole = self._arena((), bare) or self._whole(bare), self._whole(slots)
        alike = [each for each in taken if order.fits(each.destination.size, each.source.size)]
        in_slots = set(slots.shared.in_place)
        held = [each for each in pairs if each.pair in in_slots]
        choices = {frozenset(each.pair for each in some): some for some in (held, alike, taken) if some}
        joint = (way for some in reversed(choices.values()) if (way := self._arena(some, slots, alone)) is not None)
        if (way := next(joint, None)) is not None:
            return self._unhindered(way, taken, slots, alone)
        for way, other in ((whole, alone), (alone, whole)):
            if self.packer.is_at_most(way.size, other.size):
                return way
        return self._unhindered(self._arena(held, slots) or whole, taken, slots)

    @cached_property
    def floor(self) -> Size:
        """A lower bound of the bytes of this memory, whichever pairs are in place."""
        here = {request.id for request in self.requests}
        pairs = tuple(pair for pair in self.problem.in_place if here.issuperset(pair))
        return open_bound(replace(self.problem, requests=tuple(self.requests), in_place=pairs))

    def _least(self, taken: Sequence[Handover], slots: _SharePlan) -> _Way | None:
        """An arena of many requests with these pairs, if it reaches a bound that plans without pairs cannot reach."""
        if len(self.requests) <= _FEW or self.floor == peak(self.problem, self.requests).size:
            return None
        way = self._arena(taken, slots, least=self.floor)
        return None if way is None else replace(way, is_least=True)

    def _unhindered(self, way: _Way, taken: Sequence[Handover], slots: _SharePlan, beside: _Way | None = None) -> _Way:
        """The way, or a better one that leaves out pairs which fragment the storage around them.

        Where a large request is born beside a small one that is in place of another large one, the small one splits
        what is free; so one of the pairs before it has to go.
        """
        if len(self.requests) > _FEW:
            return way
        bindings = (*self.packer.bindings, *drawn(self.problem.dims, _DRAWN))
        floor, values = self.floor, SizeOrder(bindings).values

        def beyond(size: Size) -> float:
            both = zip(values(size), values(floor), strict=True)
            return sum(bytes_ / max(least, 1) - 1 for bytes_, least in both) / len(bindings)

        def cost(near: Sequence[Request], some: Sequence[Handover]) -> float:
            return layout_cost(grouped(near, some), self.pool.align, bindings, floor, _MOVES, 1 + _NEAR)

        if beyond(way.size) < _NEAR:
            return way
        best = list(taken)
        for each in taken:
            near = self._beside(each)
            inside = [other for other in best if other.destination in near and other.source in near]
            least = cost(near, inside)
            if least > 1 + _NEAR and cost(near, [other for other in inside if other is not each]) < least:
                best.remove(each)
        if way.arena is not None and {each.pair for each in best} == {*way.arena.in_place}:
            return way
        return min(way, self._arena(best, slots, beside) or way, key=lambda each: beyond(each.size))

    def _beside(self, pair: Handover) -> list[Request]:
        """The two requests of a pair, those born a little before and after them, and all that are live then."""
        births = sorted(self.requests, key=lambda request: request.live[0][0])
        first, last = sorted((births.index(pair.source), births.index(pair.destination)))
        some = births[max(0, first - _BORN) : last + _BORN + 1]
        begin, end = some[0].live[0][0], some[-1].live[0][0]
        return [each for each in self.requests if each.live[0][0] <= end and begin < each.live[-1][1]]

    def _whole(self, slots: _SharePlan) -> _Way:
        return _Way(slots.size(self.pool.name), slots)

    def _arena(
        self, taken: Sequence[Handover], slots: _SharePlan, beside: _Way | None = None, least: Size | None = None
    ) -> _Way | None:
        """An arena that needs no more bytes than the slots, nor than the way `beside`; None where none is found.

        With a `least`, one that needs exactly that.
        """
        name = self.pool.name
        align = max(self.pool.align, *(request.align for request in self.requests))

        def shares() -> Slots:
            shared = slots.shares(name, align)
            return shared if beside is None or beside.arena is None else replace(shared, beside=beside.maxima(name))

        def fits(size: Size) -> bool:
            if least is not None:
                return size == least
            # Slots are not planned where nothing can need less.
            is_least = not taken and not slots.has_pairs and size == peak(self.problem, self.requests).size
            if not self.is_asked or is_least:
                return True
            return self.packer.is_at_most(size, slots.room(name, align)) and (
                beside is None or self.packer.is_at_most(size, beside.size)
            )

        arena = self.packer.arena(self.requests, self.pool.align, taken, shares, fits)
        return None if arena is None else _Way(arena.size, slots, arena)


class _SharePlan:
    """The plan of `share` for a problem, made when it is first needed."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    @property
    def has_pairs(self) -> bool:
        """Whether there are candidate pairs, so that slots can need less than is live at one time."""
        return bool(self._problem.in_place)

    @cached_property
    def shared(self) -> Plan:
        return share(self._problem)

    def regions(self, memory: str) -> dict[str, PlannedPool]:
        return {name: region for name, region in self.shared.pools.items() if region.memory == memory}

    def size(self, memory: str) -> Size:
        """Bytes of all slots in one memory, with padding between them where that counts."""
        if self._problem.contiguous:
            return self.shared.row.ends[memory]
        return total_of(region.size for region in self.regions(memory).values())

    def room(self, memory: str, align: int) -> Size:
        """The most bytes for an arena: those of all slots, with symbolic sizes rounded up to multiples of `align`."""
        sizes = [each for held in self.held(memory) for each in held]
        if self._problem.contiguous or all(isinstance(size, int) or even(size, align) == size for size in sizes):
            return self.size(memory)
        return total_of(maximum(*(even(size, align) for size in held)) for held in self.held(memory))

    def shares(self, memory: str, align: int) -> Slots:
        regions = self.regions(memory)
        numbers = {name: number for number, slot in enumerate(regions) for name in self.shared.residents[slot]}
        held = [[even(size, align) for size in sizes] for sizes in self.held(memory)]
        return Slots(numbers, held, bool(self.shared.in_place))

    def held(self, memory: str) -> list[list[Size]]:
        """The sizes that lie in each slot, each once."""
        by_id, residents = self._problem.by_id, self.shared.residents
        return [list(dict.fromkeys(by_id[each].size for each in residents[slot])) for slot in self.regions(memory)]


def _put_slots(draft: Draft, slots: Mapping[str, PlannedPool], shared: Plan, requests: Sequence[Request]) -> None:
    """Copies one memory from a plan of slots into the draft."""
    inside = {request.id for request in requests}
    draft.pools |= slots
    draft.placements |= {request.id: shared.placements[request.id] for request in requests}
    draft.decisions |= {request.id: shared.decisions[request.id] for request in requests}
    draft.in_place += [pair for pair in shared.in_place if pair[0] in inside]


def _settled(problem: Problem) -> Problem:
    """The problem with one memory for each request."""
    homes = assigned(problem)
    if all(len(request.memories) == 1 for request in problem.requests):
        return problem
    return replace(problem, requests=tuple(replace(r, pools=(homes[r.id],)) for r in problem.requests))


_BUDGET = 4000


def assigned(problem: Problem) -> dict[str, str]:
    """The memory of each request: the first that it names, the next one where that is full, and so on.

    Memories are filled in the order of the problem. Where one is too small, requests that can live nowhere else go
    first; of several orders of the others, the one is taken that turns away the fewest bytes. Requests that are in
    place of each other stay together. A symbolic size counts as its upper bound, or else as its value at middling
    values of the dims.
    """
    if not any(len(request.memories) > 1 for request in problem.requests):
        return {request.id: request.memories[0] for request in problem.requests}
    order = SizeOrder(samples(problem.dims, 1))
    groups = grouped(problem.requests, chosen(handovers(problem), order.value))
    homes = [group.memories[0] for group in groups]
    moved = True
    while moved:
        moved = False
        for memory in problem.memories.values():
            inside = [number for number, home in enumerate(homes) if home == memory.name]
            onward = [_next(groups[number], memory.name) for number in inside]
            if memory.capacity is None or not any(onward):
                continue
            blocks = [block_of(groups[number], memory.align, partial(_bytes, order)) for number in inside]
            for place in _turned_away(blocks, [each is None for each in onward], memory.capacity):
                next_home = onward[place]
                if next_home is not None:
                    homes[inside[place]] = next_home
                    moved = True
    return {request.id: home for group, home in zip(groups, homes, strict=True) for request in group.members}


def _turned_away(blocks: Sequence[Block], stays: Sequence[bool], capacity: int) -> list[int]:
    """The numbers of the blocks for which there is no room; those that must stay are placed first."""
    offsets = pack_blocks(blocks, _BUDGET)
    if all(offset + block.size <= capacity for offset, block in zip(offsets, blocks, strict=True)):
        return []
    fixed = [i for i, block in enumerate(blocks) if block.fixed is not None and not stays[i]]
    beyond = [i for i in fixed if offsets[i] + blocks[i].size > capacity]
    if beyond:
        return beyond
    near = meetings(sections_of(blocks), sum(len(block.pieces) for block in blocks) ** 2)
    assert near is not None
    width = [sum(high - low for low, high, _ in block.pieces) for block in blocks]
    best: list[int] | None = None
    numbers = range(len(blocks))
    ranks: tuple[Callable[[int], tuple[int, int]], ...] = (
        lambda i: (offsets[i], 0),
        lambda i: (-blocks[i].size, -width[i]),
        lambda i: (-blocks[i].size * width[i], 0),
        lambda i: (-width[i], -blocks[i].size),
        lambda i: (blocks[i].size, -width[i]),
    )
    for rank in ranks:
        ranked = sorted(numbers, key=lambda i: (not stays[i], *rank(i), i))
        found = first_fit(blocks, near, ranked, limit=capacity)
        away = [i for i in numbers if found[i] < 0]
        if best is None or sum(blocks[i].size for i in away) < sum(blocks[i].size for i in best):
            best = away
    return best or []


def _next(group: Group, memory: str) -> str | None:
    """The memory that the group names after this one, if any."""
    place = group.memories.index(memory) + 1
    return group.memories[place] if place < len(group.memories) else None


def _bytes(order: SizeOrder, size: Size) -> int:
    bound = upper_bound(size)
    return order.value(size) if bound is None else bound
