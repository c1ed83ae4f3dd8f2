"""Checks a layout for a problem: Ok or a counterexample. The checker shares no code with strategies and bound.

In a pool whose requests are live one after another there is nothing to compare. In others time is swept once. The
requests that are live form a chain ordered by offset, in which each is proved to end where the next begins or before;
so a new one is compared with its neighbours only.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import chain as chained, pairwise
from operator import itemgetter

from tirlite.collection import collection_paused
from tirlite.plan.arguments import demand
from tirlite.plan.layout import Layout, PlannedPool
from tirlite.plan.problem import Problem
from tirlite.plan.request import Interval, Pool, Request
from tirlite.plan.verdict import Counterexample, Fault, Ok
from tirlite.record import record
from tirlite.sizes import Proof, Size, alternatives, evaluate, prove_divides, prove_eq, round_up
from tirlite.sizes.prove import is_at_most


def pair_faults(problem: Problem, plan: Layout) -> Iterator[Counterexample]:
    """Faults of pairs in place: each must be a candidate, have one offset, and be live together at its handover alone.

    No request has two sources or two destinations, and handovers do not overlap.
    """
    candidates = set(problem.in_place)
    by_id, placements = problem.by_id, plan.placements
    sources: dict[str, str] = {}
    destinations: dict[str, str] = {}
    for pair in plan.in_place:
        dst, src = pair
        if pair not in candidates:
            yield _fault(pair, "is not a candidate for that")
            return
        if dst in sources:
            yield _three(dst, sources[dst], src)
        if src in destinations:
            yield _three(src, destinations[src], dst)
        sources[dst], destinations[src] = src, dst
        if placements[dst] != placements[src]:
            yield _fault(pair, "they lie at different offsets")
        if takeover(by_id[dst].live, by_id[src].live) is None:
            yield _fault(pair, "is not born where that dies")
    for middle, src in sources.items():
        if middle in destinations:
            dst = destinations[middle]
            if by_id[dst].live[0][0] < by_id[src].live[-1][1]:
                text = f"`{dst}` takes the place of `{middle}` before that has taken the place of `{src}`"
                yield Counterexample(Fault.IN_PLACE, text, (dst, middle, src))


def _three(name: str, before: str, other: str) -> Counterexample:
    text = f"`{name}` shares its place with `{before}` and `{other}`"
    return Counterexample(Fault.IN_PLACE, text, (name, before, other))


def _fault(pair: tuple[str, str], what: str) -> Counterexample:
    return Counterexample(Fault.IN_PLACE, f"`{pair[0]}` is in place of `{pair[1]}`, and {what}", pair)


def takeover(dst: Sequence[Interval], src: Sequence[Interval]) -> Interval | None:
    """The time in which a pair in place is live together: from the birth of the one to the death of the other."""
    low, high = dst[0][0], src[-1][1]
    return (low, high) if src[-1][0] <= low < high <= dst[0][1] else None


def without(live: Sequence[Interval], time: Interval) -> list[Interval]:
    """The intervals outside of `time`."""
    begin, end = time
    rest = []
    for low, high in live:
        if low < begin:
            rest.append((low, min(high, begin)))
        if end < high:
            rest.append((max(low, end), high))
    return rest


_Entry = tuple[tuple[int, int], int]

# Pairs of parts that are compared for one proof about maxima.
_PARTS = 128
# Sums that a proof may look into: what holds of some part takes a few, and only then are all given more.
_BUDGETS = (8, None)


@record(guarded=False)
class _Bytes:
    """The bytes from `low` to all of the `highs`, and their ends at one binding."""

    low: Size
    highs: tuple[Size, ...]
    key: tuple[int, int]


@record(guarded=False)
class _Occupied:
    """Bytes of one request, or of two that are live together in place, over some time."""

    names: tuple[str, ...]
    live: Sequence[Interval]
    bytes: _Bytes


@collection_paused()
def check(problem: Problem, plan: Layout) -> Ok | Counterexample:
    """Whether `plan` is a safe plan for `problem`, for all values of the dims.

    Each request is placed once, in a memory that it accepts, aligned, at its fixed offset if it has one, inside its
    pool; no two that live at one time share a byte, save a pair in place while it changes hands; the pools have the
    sizes and the total that the plan tells, and fit their memories. What cannot be proved counts as wrong.
    Cost: O(n log n), and more only where symbolic offsets are out of order.
    """
    demand("check", "problem", problem, "a Problem", fits=isinstance(problem, Problem))
    demand("check", "plan", plan, "a Plan", fits=isinstance(plan, Layout))
    proofs = _Proofs()
    for test in (_check_names, _check_places, _check_in_place, _check_overlaps, _check_total, _check_capacity):
        fault = next(test(proofs, problem, plan), None)
        if fault is not None:
            return fault
    return Ok()


def _check_names(_: _Proofs, problem: Problem, plan: Layout) -> Iterator[Counterexample]:
    if plan.placements.keys() == problem.by_id.keys():
        return
    ids = set()
    for request in problem.requests:
        ids.add(request.id)
        if request.id not in plan.placements:
            yield Counterexample(Fault.MISSING, f"`{request.id}` is not placed", (request.id,))
    for name in plan.placements:
        if name not in ids:
            yield Counterexample(Fault.STRANGER, f"`{name}` is placed and is not a request of the problem", (name,))


def _check_places(proofs: _Proofs, problem: Problem, plan: Layout) -> Iterator[Counterexample]:
    fixed_in: dict[str, tuple[str, str]] = {}
    placements, pools, memories = plan.placements, plan.pools, problem.memories
    for request in problem.requests:
        pool, offset = placements[request.id]
        region = pools.get(pool)
        if region is not None and request.fixed is None and _lies_well(request, offset, region, memories):
            continue
        ids = (request.id,)
        if region is None:
            yield Counterexample(Fault.NO_POOL, f"`{request.id}` lies in `{pool}`, which the plan does not have", ids)
            continue
        if region.memory not in request.memories or region.memory not in memories:
            text = (
                f"`{request.id}` lies in memory `{region.memory}`, and may only live in {' or '.join(request.memories)}"
            )
            yield Counterexample(Fault.WRONG_MEMORY, text, ids)
            continue
        align = max(request.align, memories[region.memory].align)
        fault = _offset_fault(proofs, request, offset, align, region)
        if fault is not None:
            yield fault
        if request.fixed is not None:
            if offset != request.fixed:
                text = f"`{request.id}` lies at {offset} and is fixed at {request.fixed}"
                yield Counterexample(Fault.NOT_FIXED, text, ids)
            first, other = fixed_in.setdefault(region.memory, (pool, request.id))
            if first != pool:
                text = (
                    f"`{other}` and `{request.id}` have fixed offsets in `{region.memory}` and lie in different pools"
                )
                yield Counterexample(Fault.NOT_FIXED, text, (other, request.id))


def _lies_well(request: Request, offset: Size, region: PlannedPool, memories: Mapping[str, Pool]) -> bool:
    """Whether a request is plainly in a memory that it accepts, aligned, and inside its pool, without a proof."""
    name, size, room = region.memory, request.size, region.size
    if not (type(offset) is type(size) is type(room) is int) or name not in memories or name not in request.memories:
        return False
    align = max(request.align, memories[name].align)
    return offset >= 0 and offset + size <= room and offset % align == 0 and region.align % align == 0


def _offset_fault(
    proofs: _Proofs, request: Request, offset: Size, align: int, region: PlannedPool
) -> Counterexample | None:
    ids = (request.id,)
    if not proofs.at_most(0, offset):
        return Counterexample(Fault.NEGATIVE, f"`{request.id}` lies at offset {offset}", ids)
    if not _multiple(align, offset) or region.align % align:
        text = f"`{request.id}` lies at {offset} in a pool aligned to {region.align}, and needs {align}"
        return Counterexample(Fault.MISALIGNED, text, ids)
    end = _end(offset, request.size)
    if not proofs.at_most(end, region.size):
        text = f"`{request.id}` ends at {end}, and its pool has {region.size} bytes"
        return Counterexample(Fault.OUTSIDE, text, ids, bytes=(region.size, end))
    return None


def _check_in_place(_: _Proofs, problem: Problem, plan: Layout) -> Iterator[Counterexample]:
    return pair_faults(problem, plan)


def _check_overlaps(proofs: _Proofs, problem: Problem, plan: Layout) -> Iterator[Counterexample]:
    crowded = _crowded(problem, plan)
    for blocks in _blocks(problem, plan, crowded) if crowded else ():
        if len(blocks) > 1:
            yield from _sweep(proofs, blocks)


def _crowded(problem: Problem, plan: Layout) -> frozenset[str]:
    """The pools of the plan in which two requests are live together, except for the handovers of pairs in place."""
    by_id, placements = problem.by_id, plan.placements
    handed_over = {dst: by_id[src].live[-1][1] for dst, src in plan.in_place}
    times: dict[str, list[Interval]] = {}
    for request in problem.requests:
        name, live = request.id, request.live
        lives = times.setdefault(placements[name].pool, [])
        lives += live if name not in handed_over else without(live, (live[0][0], handed_over[name]))
    return frozenset(pool for pool, lives in times.items() if _meet(lives))


def _meet(lives: list[Interval]) -> bool:
    lives.sort()
    return any(low < end for (_, end), (low, _) in pairwise(lives))


def _blocks(problem: Problem, plan: Layout, crowded: Container[str]) -> Iterator[list[_Occupied]]:
    """For each crowded pool of the plan: requests, and pairs in place while both are live."""
    value = _ordering(problem)
    by_id, placements = problem.by_id, plan.placements
    times: dict[str, list[Interval]] = {}
    joint: list[tuple[tuple[str, str], Interval]] = []
    for dst, src in plan.in_place:
        if placements[dst].pool not in crowded:
            continue
        time = takeover(by_id[dst].live, by_id[src].live)
        assert time is not None
        joint.append(((dst, src), time))
        for name in (dst, src):
            times[name] = without(times.get(name, by_id[name].live), time)
    alone = [((r.id,), times.get(r.id, r.live)) for r in problem.requests if placements[r.id].pool in crowded]
    pools: dict[str, list[_Occupied]] = {}
    known: dict[tuple[Size, ...], _Bytes] = {}  # often the same few sizes lie at the same few offsets
    for names, live in chained(alone, ((pair, (time,)) for pair, time in joint)):
        if not live:
            continue
        pool, low = placements[names[0]]
        sizes = (low, *[by_id[name].size for name in names])
        if sizes not in known:
            highs = tuple([_end(low, size) for size in sizes[1:] if not isinstance(size, int) or size > 0])
            known[sizes] = _Bytes(low, highs, (value(low), max(map(value, highs), default=0)))
        if known[sizes].highs:
            pools.setdefault(pool, []).append(_Occupied(names, live, known[sizes]))
    yield from pools.values()


def _sweep(proofs: _Proofs, blocks: Sequence[_Occupied]) -> Iterator[Counterexample]:
    """Sweeps over time with the chain of live blocks, each proved to end where the next begins or before."""
    count = len(blocks)
    # Time, whether it is a birth, and who, in one number: it sorts much faster than a tuple.
    births = [(2 * low + 1) * count + index for index, block in enumerate(blocks) for low, _ in block.live]
    deaths = [2 * high * count + index for index, block in enumerate(blocks) for _, high in block.live]
    entries = [(block.bytes.key, index) for index, block in enumerate(blocks)]
    chain: list[_Entry] = []
    for event in sorted(births + deaths):
        moment, index = divmod(event, count)
        entry = entries[index]
        if moment % 2 == 0:
            place = bisect_left(chain, entry)
            if place == len(chain) or chain[place] != entry:
                place = chain.index(entry)
            del chain[place]
            continue
        place = _gap(proofs, blocks, chain, entry)
        if place < 0:
            yield _overlap(proofs, blocks, chain, entry, moment // 2)
            return
        chain.insert(place, entry)


def _gap(proofs: _Proofs, blocks: Sequence[_Occupied], chain: Sequence[_Entry], entry: _Entry) -> int:
    """The place in the chain where the new block is proved to fit, or -1."""
    if not chain:
        return 0
    new = blocks[entry[1]].bytes
    for place in chained((bisect_left(chain, entry),), range(len(chain) + 1)):
        left = blocks[chain[place - 1][1]].bytes if place > 0 else None
        right = blocks[chain[place][1]].bytes if place < len(chain) else None
        if (left is None or proofs.below(left, new)) and (right is None or proofs.below(new, right)):
            return place
    return -1


def _overlap(
    proofs: _Proofs,
    blocks: Sequence[_Occupied],
    chain: Sequence[_Entry],
    entry: _Entry,
    time: int,
) -> Counterexample:
    new = blocks[entry[1]].bytes
    live = [blocks[index] for _, index in chain]
    surely = [b for b in live if max(b.bytes.key[0], new.key[0]) < min(b.bytes.key[1], new.key[1])]
    unproved = [b for b in live if not proofs.below(b.bytes, new) and not proofs.below(new, b.bytes)]
    found = (surely or unproved)[0]
    ids = (found.names[0], blocks[entry[1]].names[0])
    other = found.bytes
    stretch = f"[{other.low}, {other.highs[0]}) and [{new.low}, {new.highs[0]})"
    if surely:
        low = max((other.key[0], other.low), (new.key[0], new.low), key=itemgetter(0))[1]
        high = min((other.key[1], other.highs[0]), (new.key[1], new.highs[0]), key=itemgetter(0))[1]
        text = f"`{ids[0]}` and `{ids[1]}` live together at time {time} and share bytes: {stretch}"
        return Counterexample(Fault.OVERLAP, text, ids, time, (low, high))
    text = f"`{ids[0]}` and `{ids[1]}` live together at time {time} and are not proved to lie apart: {stretch}"
    return Counterexample(Fault.OVERLAP, text, ids, time)


def _check_total(proofs: _Proofs, problem: Problem, plan: Layout) -> Iterator[Counterexample]:
    shares: deque[Size] = deque()
    for name, region in plan.pools.items():
        if region.memory not in problem.memories:
            text = f"pool `{name}` lies in memory `{region.memory}`, which the problem does not have"
            yield Counterexample(Fault.WRONG_MEMORY, text)
            return
        if not proofs.at_most(0, region.size):
            yield Counterexample(Fault.NEGATIVE, f"pool `{name}` has {region.size} bytes")
    for name, row in _rows(problem, plan).items():
        copies = problem.memories[name].copies
        for size in (_end_of(row),) if problem.contiguous else (region.size for region in row):
            shares.append(size if copies == 1 else size * copies)
    while len(shares) > 1:
        shares.append(shares.popleft() + shares.popleft())
    expected = shares.pop() if shares else 0
    if prove_eq(plan.total, expected) is not Proof.YES:
        yield Counterexample(Fault.TOTAL, f"the pools have {expected} bytes together, and the plan tells {plan.total}")


def _rows(problem: Problem, plan: Layout) -> dict[str, list[PlannedPool]]:
    """The pools of each memory in the order of their addresses: those with fixed offsets first."""
    fixed = {plan.placements[request.id].pool for request in problem.requests if request.fixed is not None}
    rows: dict[str, list[PlannedPool]] = {}
    for name in sorted(plan.pools, key=lambda name: name not in fixed):
        rows.setdefault(plan.pools[name].memory, []).append(plan.pools[name])
    return rows


def _end_of(row: Sequence[PlannedPool]) -> Size:
    """The end of pools one after another, each aligned."""
    end: Size = 0
    for region in row:
        end = round_up(end, region.align) + region.size
    return end


def _check_capacity(proofs: _Proofs, problem: Problem, plan: Layout) -> Iterator[Counterexample]:
    for name, row in _rows(problem, plan).items():
        capacity = problem.memories[name].capacity
        if capacity is None:
            continue
        end = _end_of(row)
        if not proofs.at_most(end, capacity):
            text = f"memory `{name}` holds {capacity} bytes, and the plan needs {end}"
            yield Counterexample(Fault.CAPACITY, text, bytes=(capacity, end), memory=name)


class _Proofs:
    """Proofs, each made once, as the same few symbolic sizes are compared again and again."""

    def __init__(self) -> None:
        self._known: dict[tuple[Size, Size], bool] = {}
        self._parts: dict[tuple[Size, Size, int | None], bool] = {}
        self._left = 0

    def at_most(self, low: Size, high: Size) -> bool:
        if isinstance(low, int) and isinstance(high, int):
            return low <= high
        pair = (low, high)
        if pair not in self._known:
            self._known[pair] = low == high or self._proved(low, high)
        return self._known[pair]

    def _proved(self, low: Size, high: Size) -> bool:
        from tirlite.sizes import prove_le_by_cases
        from tirlite.sizes.cases import fails_at_a_sample, is_plainly_at_most

        if is_plainly_at_most(low, high):
            return True
        if fails_at_a_sample(low, high):
            return False
        for budget in _BUDGETS:
            self._left = _PARTS
            if is_at_most(low, high, budget) or self._by_parts(low, high, budget):
                return True
        return prove_le_by_cases(low, high) is Proof.YES

    def _by_parts(self, low: Size, high: Size, budget: int | None) -> bool:
        """Whether each of the sizes that `low` is the maximum of is at most one of those that `high` is one of.

        Maxima of many sizes have many parts, each with parts of its own: only some of them are
        tried.
        """
        lows, highs = alternatives(low), alternatives(high)
        if len(lows) == len(highs) == 1:
            return False
        return all(any(self._is_part(one, other, budget) for other in highs) for one in lows)

    def _is_part(self, low: Size, high: Size, budget: int | None) -> bool:
        key = (low, high, budget)
        if key not in self._parts:
            if self._left <= 0:
                return False
            self._left -= 1
            self._parts[key] = low == high or is_at_most(low, high, budget) or self._by_parts(low, high, budget)
        return self._parts[key]

    def below(self, lower: _Bytes, upper: _Bytes) -> bool:
        """Whether the lower bytes are proved to end where the upper ones begin, or before."""
        return all(self.at_most(high, upper.low) for high in lower.highs)


def _end(offset: Size, size: Size) -> Size:
    return size if offset == 0 else offset + size


def _multiple(factor: int, size: Size) -> bool:
    if isinstance(size, int):
        return size % factor == 0
    return factor == 1 or prove_divides(factor, size) is Proof.YES


def _ordering(problem: Problem) -> Callable[[Size], int]:
    """The value of sizes at one binding that the facts allow: a guess at the order of symbolic offsets."""
    binding = {dim: dim.nth(1000 // dim.multiple_of) if dim.high is None else dim.high for dim in problem.dims}
    known: dict[Size, int] = {}

    def value(size: Size) -> int:
        if isinstance(size, int):
            return size
        if size not in known:
            known[size] = evaluate(size, binding)
        return known[size]

    return value
