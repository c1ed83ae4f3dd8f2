"""Packs blocks within a budget by a portfolio: the best offsets that several heuristics and their improvement find."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import chain, islice
from operator import add
from random import Random

from tirlite.plan.pack.blocks import Block, Sections, sections_of, top_of
from tirlite.plan.pack.first_fit import first_fit, meetings
from tirlite.plan.pack.many.filled import fillings
from tirlite.plan.pack.many.mend import mended
from tirlite.plan.pack.many.split import part_of_largest, split
from tirlite.plan.pack.many.under import under
from tirlite.plan.pack.many.valleys import valleys
from tirlite.plan.pack.skyline import Skyline, Work
from tirlite.plan.pack.sweep import sweep
from tirlite.plan.search.engine import Engine
from tirlite.plan.search.limits import Limits

# Looks at blocks, all heuristics and their improvement together. About a microsecond each.
BUDGET = 60_000
# First fit needs all pairs that meet, and the skyline looks at those that live together; beyond these the sweep alone.
_PAIRS = 300_000
_SKYLINE = 2_000_000
# Of more blocks than this the skyline looks at too many again and again, and its valleys are filled instead.
_LARGE = 5_000
# Tightness and direction of sweeps, and how many blocks are swept, all sweeps together; two are made in any case.
_SWEEPS = ((0, False), (0.1, True), (1, False), (0.1, False), (0, True), (1, True))
_SWEPT = 150_000
# Of more blocks than this an engine fills as well: to compile that takes as long as to try other ways for fewer.
_SOME = 1_000
# Of more blocks than this the valleys are filled once before all else, which takes a fraction of the skyline's time.
_FEW = 300
# Runs that fill valleys: the least, the most, and how many blocks are placed in all of them together.
_VALLEYS, _FILLED = (2, 8), 150_000
# Where there is time for fewer runs than this, large blocks are told apart only if they make up this part of the floor.
_SEVERAL, _OUTSTANDING = 3, 0.75
# Where blocks live in fewer sections than this on average, the skyline does well also among many.
_BRIEF = 30
# Where each size stands for so many blocks, a sweep does well also among many.
_ALIKE = 50
# Sections that blocks live in, all together, beyond which large and small blocks are not told apart.
_SPLIT = 40_000_000
# Of more blocks than this, plans that are over the floor by less than this part of it are good enough.
_MANY, _GOOD = 10_000, 0.002
# What a search of very many blocks leaves over the floor, as a part of it, where nothing else is tried, or little.
_NEAR, _CLOSE = 0.01, 0.03
# Runs of the fill that are made beside such a search.
_BEFORE = 3
# Nodes times blocks to pack anew what stands out of many: by block, and at most, about a second of compiled code.
_MENDING, _MENDED = 4_000, 100_000_000
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
        best = best or sweep(blocks, _SWEEPS[0][0])
    return best


def _huge(blocks: Sequence[Block], engine: Engine | None, limits: Limits | None) -> list[int]:
    best: list[int] = []
    try:
        for offsets in fillings(blocks, engine) if engine is not None else ():
            if not best or top_of(blocks, offsets) < top_of(blocks, best):
                best = offsets
            if limits is not None and limits.is_late():
                break
    except KeyboardInterrupt:
        if limits is None:
            raise
        limits.interrupt()
    return best or sweep(blocks, _SWEEPS[0][0])


def _is_over(limits: Limits, least: int, floor: int) -> bool:
    limits.report(least, floor)
    return limits.is_late()


def _attempts(blocks: Sequence[Block], sections: Sections, work: Work, engine: Engine | None) -> Iterator[list[int]]:
    """Offsets, by one heuristic after the other, the most promising first."""
    count = len(blocks)
    aligns = [block.align for block in blocks]
    none = [0.0] * count
    is_free = all(block.fixed is None for block in blocks)
    crowd = sum(high - low for rows in sections.spans for low, high, _ in rows)
    is_small = crowd <= _SKYLINE and count <= _LARGE
    pressed = none
    if is_small:
        if is_free and count > _FEW:
            yield from valleys(blocks, sections, 1)
        offsets = Skyline(sections, aligns).fill(none, work)
        is_small = len(offsets) == count
        if is_small:
            pressed = [float(offset) for offset in offsets]
        if is_small and is_free:
            yield offsets
    wheel = _squeaky_wheel(blocks, sections, aligns, pressed, work) if is_small and is_free else iter(())
    yield from islice(wheel, _EARLY)
    near = meetings(sections, _PAIRS if is_free else sum(map(len, sections.spans)) ** 2)
    if near is not None:
        yield from _by_orders(blocks, sections, near, pressed, work)
    if engine is not None and is_free and _SOME < count <= _LARGE:
        yield from fillings(blocks, engine)
    has_time = _FILLED // count >= _SEVERAL if count else True
    is_run = engine is not None and is_free and count > _LARGE
    stands_out = (is_run or not has_time) and near is None and part_of_largest(blocks, sections) >= _OUTSTANDING
    if engine is not None and is_run:
        is_near = yield from _compiled(blocks, sections, engine, has_time=has_time, stands_out=stands_out)
        if is_near:
            return
        # The fill sees neither gaps nor sizes that change.
        if all(len(block.pieces) == 1 for block in blocks):
            if crowd < _BRIEF * count:
                yield from _skylines(sections, aligns, work)
            return
    if is_free and not is_small:
        yield from _low_places(blocks, sections, aligns, work, is_brief=not has_time and crowd < _BRIEF * count)
    if is_free and count > 1:
        sweeps = (sweep(blocks, tightness, backward=backward) for tightness, backward in _SWEEPS)
        is_alike = len({block.size for block in blocks}) * _ALIKE <= count
        yield from islice(sweeps, 2 if is_small or is_alike or not (has_time or stands_out) else 0)
        if near is None and crowd <= _SPLIT and (has_time or stands_out):
            yield from split(blocks, sections)
        if near is None or work.left > 0:
            yield from islice(sweeps, max(0, _SWEPT // count - 2))
        yield from wheel


def _compiled(
    blocks: Sequence[Block], sections: Sections, engine: Engine, *, has_time: bool, stands_out: bool
) -> Generator[list[int], None, bool]:
    """Many blocks are filled in, and where few large ones stand out, those are searched; whether that came near."""
    runs = fillings(blocks, engine)
    first = islice(runs, _BEFORE if stands_out else None)
    yield from islice(first, None if has_time else 1)
    found = under(blocks, sections, engine) if stands_out else None
    if found is not None:
        yield found
        over = top_of(blocks, found) / max(sections.floor, 1) - 1
        if over <= _CLOSE:
            return over <= _NEAR
    yield from runs
    return False


def _low_places(
    blocks: Sequence[Block], sections: Sections, aligns: Sequence[int], work: Work, *, is_brief: bool
) -> Iterator[list[int]]:
    """The valleys of many blocks are filled; where these live briefly, the last time as the skyline of few is."""
    least, most = _VALLEYS
    runs = min(max(least, _FILLED // len(blocks)), most)
    yield from valleys(blocks, sections, runs - is_brief)
    if is_brief:
        yield from _skylines(sections, aligns, work)


def _skylines(sections: Sections, aligns: Sequence[int], work: Work) -> Iterator[list[int]]:
    """The offsets of the skyline of small problems, if it is not given up."""
    offsets = Skyline(sections, aligns).fill([0.0] * len(aligns), work)
    if offsets:
        yield offsets


def _by_orders(
    blocks: Sequence[Block],
    sections: Sections,
    near: Sequence[Sequence[tuple[int, int, int]]],
    heights: Sequence[float],
    work: Work,
) -> Iterator[list[int]]:
    area = [sum((high - low) * size for low, high, size in rows) for rows in sections.spans]
    load = [max(max(sections.load[low:high]) for low, high, _ in rows) for rows in sections.spans]
    orders: tuple[Callable[[int], tuple[float, float]], ...] = (
        lambda i: (heights[i], -blocks[i].size),
        lambda i: (-load[i], -area[i]),
        lambda i: (blocks[i].low, -blocks[i].high),
    )
    for place, order in enumerate(orders):
        yield first_fit(blocks, near, sorted(range(len(blocks)), key=order), best=place > 0)
        work.left -= len(blocks) + sum(map(len, near)) // 16
        if work.left < 0:
            return


def _squeaky_wheel(
    blocks: Sequence[Block], sections: Sections, aligns: Sequence[int], offsets: Sequence[float], work: Work
) -> Iterator[list[int]]:
    """The skyline again and again, from these offsets on; each time, what stood out above the floor goes up in rank.

    Source: Joslin and Clements, Squeaky Wheel Optimization (1999).
    """
    noise = Random(_SEED)
    widths = [-float(sum(high - low for low, high, _ in rows)) for rows in sections.spans]
    filled = Skyline(sections, aligns).fill(widths, work, pressed=False) if work.left > 0 else []
    if filled:
        yield filled
    ranks = [0.0] * len(blocks)
    floor = sections.floor
    while work.left > 0:
        for number, block in enumerate(blocks):
            if offsets[number] + block.size > floor:
                ranks[number] -= floor * _STEP * (1 + noise.random())
            else:
                ranks[number] *= _KEPT
        offsets = filled = Skyline(sections, aligns).fill(ranks, work)
        if not filled:
            return
        yield filled
