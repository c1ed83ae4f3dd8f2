"""Packs blocks within a budget by a portfolio: the best offsets that several heuristics and their improvement find."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from operator import add
from random import Random

from tirlite.plan.blocks import Block, Sections, sections_of, top_of
from tirlite.plan.pack.heuristics import Meeting, Skyline, Work, first_fit, meetings, sweep
from tirlite.plan.pack.many.fill import fillings
from tirlite.plan.pack.many.mend import mended
from tirlite.plan.pack.many.under import stands_out, under
from tirlite.plan.search.engine import Engine, Limits, PythonEngine

# Looks at blocks, all heuristics and their improvement together. About a microsecond each.
BUDGET = 60_000
# First fit needs all pairs that meet, and the skyline looks at those that live together: too many for more than these.
_PAIRS = 300_000
_SKYLINE = 2_000_000
# Where they live in more sections than this, all together, one run of the fill comes before all else.
_CROWDED = 100_000
# Of more blocks than this the skyline looks at too many again and again.
_LARGE = 5_000
# Of more blocks than this an engine fills: to compile that takes as long as to run it in Python for fewer.
_SOME = 1_000
# Of more blocks than this, plans that are over the floor by less than this part of it are good enough.
_MANY, _GOOD = 10_000, 0.002
# Runs of the fill by an engine: the least and the most, and how many blocks are placed in all. By Python: the most,
# and how many looks by block are to be spent for each.
_RUNS, _PLACED = (2, 10), 500_000
_SLOW_RUNS, _LOOKS_PER_RUN = 4, 10
# Where the few largest leave so little over the floor, as a part of it, nothing else is tried.
_NEAR = 0.03
# Runs of the fill that are made before the few largest are searched for, of this many blocks and of more.
_BEFORE, _AFTER, _MOST_BEFORE = 3, 1, 50_000
# Nodes times blocks to pack anew what stands out of many: by block, and at most, about a second of compiled code.
_MENDING, _MENDED = 4_000, 100_000_000
# Tightness and direction of sweeps, and how many blocks are swept in all; two are made in any case.
_SWEPT = 150_000
_SWEEPS = ((0, False), (0.1, True), (1, False), (0.1, False), (0, True), (1, True))
# Of more blocks than this only fillings are made; one sweep without an engine.
_HUGE = 200_000
# Where the floor cannot be reached, small problems give up early.
_LOOKS_PER_BLOCK = 300
# How much of the floor a block that stands out gains in rank, what part of its gain one keeps that does not, and the
# seed of the noise on it.
_STEP, _KEPT = 0.05, 0.95
_SEED = 20_231
# Improvements before other heuristics have their turn: where these are far from the floor they seldom come closer.
_EARLY = 20


def pack_blocks(
    blocks: Sequence[Block], budget: int = BUDGET, engine: Engine | None = None, limits: Limits | None = None
) -> list[int]:
    """Offsets for blocks of one memory; the first that need no more than the floor, or the least that are found.

    With an `engine`, many blocks are placed by the fill, and the largest of very many by searches.
    The answer is the same in every process. Cost: O(n log n) for many blocks; for few, what the budget allows.
    Many blocks are not tried again once the `limits` are over, which Ctrl-C brings about as well.
    """
    if len(blocks) > _HUGE and all(block.fixed is None for block in blocks):
        return _huge(blocks, engine, limits)
    sections = sections_of(blocks)
    floor = max(sections.floor, *(block.fixed + block.size for block in blocks if block.fixed is not None), 0)
    goal = floor + (int(floor * _GOOD) if len(blocks) > _MANY else 0)
    best: list[int] = []
    least = -1
    sizes = [block.size for block in blocks]
    attempts = _attempts(blocks, sections, Work(min(budget, _LOOKS_PER_BLOCK * len(blocks))), engine)

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


def _attempts(blocks: Sequence[Block], sections: Sections, work: Work, engine: Engine | None) -> Iterator[list[int]]:
    """Offsets, by one heuristic after the other, the most promising first."""
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
    """Many blocks are filled in, and where few large ones stand out among very many, those are searched."""
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
    blocks: Sequence[Block], sections: Sections, near: Sequence[Sequence[Meeting]], heights: Sequence[int], work: Work
) -> Iterator[list[int]]:
    """First fit by heights, which fixed offsets need, by birth, and where the most is live."""
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
    blocks: Sequence[Block], sections: Sections, aligns: Sequence[int], offsets: Sequence[int], work: Work
) -> Iterator[list[int]]:
    """The skyline again and again, from these offsets on; each time, what reached above the floor goes up in rank.

    Source: Joslin and Clements, Squeaky Wheel Optimization (1999).
    """
    noise = Random(_SEED)
    floor = sections.floor
    # At first by width alone: the bytes that are still to be placed are less than the floor.
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
