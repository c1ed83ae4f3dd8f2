"""Packs blocks within a budget by a portfolio of heuristics, and by improving on the best of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from operator import add
from random import Random

from tirlite.plan.blocks import Block, Sections, sections_of, top_of
from tirlite.plan.pack.heuristics import Looks, Meeting, Skyline, first_fit, meetings, sweep
from tirlite.plan.pack.many.fill import fillings
from tirlite.plan.pack.many.mend import mended
from tirlite.plan.pack.many.under import stands_out, under
from tirlite.plan.search.engine import Engine, Limits, PythonEngine

# Looks at blocks by all heuristics together, of about a microsecond each.
BUDGET = 60_000
# The most pairs of blocks that are live together for first fit, and sections of all blocks for the skyline.
_PAIRS = 300_000
_SKYLINE = 2_000_000
# For more sections of all blocks than this, one run of the fill comes first.
_CROWDED = 100_000
# The most blocks for the skyline.
_LARGE = 5_000
# For more blocks than this an engine runs the fill: for fewer, compiling takes as long as running it in Python.
_SOME = 1_000
# For more than _MANY blocks, plans are good enough that are over the floor by less than the part _GOOD of it.
_MANY, _GOOD = 10_000, 0.002
# Runs of the fill by an engine: the least, the most, and the blocks placed in all of them. By Python: the most, and the
# looks per block that each counts for.
_RUNS, _PLACED = (2, 10), 500_000
_SLOW_RUNS, _LOOKS_PER_RUN = 4, 10
# If the search for the few largest comes within this part of the floor, nothing else is tried.
_NEAR = 0.03
# Runs of the fill before the search for the few largest: of at most _MOST_BEFORE blocks, and of more.
_BEFORE, _AFTER, _MOST_BEFORE = 3, 1, 50_000
# Nodes times blocks to repair a packing of many: per block, and at most, about a second of compiled code.
_MENDING, _MENDED = 4_000, 100_000_000
# Blocks that are swept in all, at least twice each; and tightness and direction of the sweeps.
_SWEPT = 150_000
_SWEEPS = ((0, False), (0.1, True), (1, False), (0.1, False), (0, True), (1, True))
# For more blocks than this there are fills only; without an engine, one sweep.
_HUGE = 200_000
# The budget per block: small problems that cannot reach the floor end early.
_LOOKS_PER_BLOCK = 300
# The part of the floor by which a block that ends above it gains in rank; the part of its gain that another one keeps;
# and the seed of the noise.
_STEP, _KEPT = 0.05, 0.95
_SEED = 20_231
# Improvements of the skyline before other heuristics have their turn.
_EARLY = 20


def pack_blocks(
    blocks: Sequence[Block], budget: int = BUDGET, engine: Engine | None = None, limits: Limits | None = None
) -> list[int]:
    """Offsets for blocks of one memory: the first that reach the floor, or else the lowest found.

    With an `engine`, many blocks are placed by the fill, and the largest of very many by searches. The answer is the
    same in every process. Cost: O(n log n) for many blocks; for few, what the budget allows. Many blocks are not packed
    again once the `limits` are over, or Ctrl-C is pressed.
    """
    if len(blocks) > _HUGE and all(block.fixed is None for block in blocks):
        return _huge(blocks, engine, limits)
    sections = sections_of(blocks)
    floor = max(sections.floor, *(block.fixed + block.size for block in blocks if block.fixed is not None), 0)
    goal = floor + (int(floor * _GOOD) if len(blocks) > _MANY else 0)
    best: list[int] = []
    least = -1
    sizes = [block.size for block in blocks]
    attempts = _attempts(blocks, sections, Looks(min(budget, _LOOKS_PER_BLOCK * len(blocks))), engine)

    def mends() -> Iterator[list[int]]:
        if engine is not None and best and len(blocks) > _LARGE:
            yield from mended(blocks, best, goal, engine, min(_MENDING * len(blocks), _MENDED))

    try:
        for offsets in chain(attempts, mends()):
            top = max(map(add, offsets, sizes), default=0)
            if least < 0 or top < least:
                best, least = offsets, top
            if least <= goal or (limits is not None and len(blocks) > _LARGE and _is_over(limits, least, floor)):
                break
    except KeyboardInterrupt:
        if limits is None or any(block.fixed is not None for block in blocks):
            raise
        limits.interrupt()
        best = best or sweep(blocks, 0)
    return best


def _huge(blocks: Sequence[Block], engine: Engine | None, limits: Limits | None) -> list[int]:
    best: list[int] = []
    try:
        for offsets in fillings(blocks, engine, _RUNS[0]) if engine is not None else ():
            if not best or top_of(blocks, offsets) < top_of(blocks, best):
                best = offsets
            if limits is not None and limits.is_late():
                break
    except KeyboardInterrupt:
        if limits is None:
            raise
        limits.interrupt()
    return best or sweep(blocks, 0)


def _is_over(limits: Limits, least: int, floor: int) -> bool:
    limits.report(least, floor)
    return limits.is_late()


def _attempts(blocks: Sequence[Block], sections: Sections, work: Looks, engine: Engine | None) -> Iterator[list[int]]:
    """Offsets by one heuristic after another, the most promising first."""
    count = len(blocks)
    aligns = [block.align for block in blocks]
    is_free = all(block.fixed is None for block in blocks)
    crowd = sum(high - low for rows in sections.spans for low, high, _ in rows)
    runs = min(_SLOW_RUNS, work.left // (_LOOKS_PER_RUN * max(count, 1)))
    is_small = crowd <= _SKYLINE and count <= _LARGE
    if is_free and is_small and crowd > _CROWDED:
        yield from fillings(blocks, PythonEngine(), 1)
    skyline = Skyline(sections, aligns).fill([0.0] * count, work) if is_small else []
    wheel: Iterator[list[int]] = iter(())
    if skyline and is_free:
        yield skyline
        wheel = _squeaky_wheel(blocks, sections, aligns, skyline, work)
        yield from islice(wheel, _EARLY)
    near = meetings(sections, _PAIRS if is_free else sum(map(len, sections.spans)) ** 2)
    if near is not None:
        yield from _by_orders(blocks, sections, near, skyline or [0] * count, work)
    if not is_free:
        return
    sweeps = (sweep(blocks, tightness, backward=backward) for tightness, backward in _SWEEPS)
    if engine is not None and count > _SOME:
        yield from _compiled(blocks, sections, engine)
    else:
        yield from islice(sweeps, 2)
        if runs or not skyline:
            yield from fillings(blocks, PythonEngine(), max(runs, 1))
            yield from islice(sweeps, max(0, _SWEPT // max(count, 1) - 2))
    yield from wheel


def _compiled(blocks: Sequence[Block], sections: Sections, engine: Engine) -> Iterator[list[int]]:
    """Offsets of many blocks by the fill; and by a search for the few largest, if these make up most of the load."""
    least, most = _RUNS
    runs = fillings(blocks, engine, max(least, min(most, _PLACED // len(blocks))))
    if len(blocks) > _LARGE and stands_out(blocks, sections):
        yield from islice(runs, _BEFORE if len(blocks) <= _MOST_BEFORE else _AFTER)
        found = under(blocks, sections, engine)
        if found is not None:
            yield found
            if top_of(blocks, found) <= sections.floor * (1 + _NEAR):
                return
    yield from runs


def _by_orders(
    blocks: Sequence[Block], sections: Sections, near: Sequence[Sequence[Meeting]], heights: Sequence[int], work: Looks
) -> Iterator[list[int]]:
    """First fit by height, which fixed offsets need; best fit by birth, and by the load where a block lives."""
    area = [sum((high - low) * size for low, high, size in rows) for rows in sections.spans]
    load = [max(max(sections.load[low:high]) for low, high, _ in rows) for rows in sections.spans]
    orders: tuple[Callable[[int], tuple[float, float]], ...] = (
        lambda i: (heights[i], -blocks[i].size),
        lambda i: (blocks[i].low, -blocks[i].high),
        lambda i: (-load[i], -area[i]),
    )
    for place, order in enumerate(orders):
        yield first_fit(blocks, near, sorted(range(len(blocks)), key=order), best=place > 0)
        work.left -= len(blocks) + sum(map(len, near)) // 16
        if work.left < 0:
            return


def _squeaky_wheel(
    blocks: Sequence[Block], sections: Sections, aligns: Sequence[int], offsets: Sequence[int], work: Looks
) -> Iterator[list[int]]:
    """Repeats the skyline, beginning with these offsets; each time, blocks that end above the floor gain in rank.

    Source: Joslin and Clements, Squeaky Wheel Optimization (1999).
    """
    noise = Random(_SEED)
    floor = sections.floor
    # First by width alone: that counts for more than any pressure, which is at most the floor.
    wide = [-(floor + 1.0) * sum(high - low for low, high, _ in rows) for rows in sections.spans]
    filled = Skyline(sections, aligns).fill(wide, work) if work.left > 0 else []
    if filled:
        yield filled
    ranks = [0.0] * len(blocks)
    while work.left > 0:
        for number, block in enumerate(blocks):
            if offsets[number] + block.size > floor:
                ranks[number] -= floor * _STEP * (1 + noise.random())
            else:
                ranks[number] *= _KEPT
        offsets = Skyline(sections, aligns).fill(ranks, work)
        if not offsets:
            return
        yield offsets
