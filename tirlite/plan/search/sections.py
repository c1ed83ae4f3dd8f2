"""Finds sections: sets of blocks that must be stacked in some order, and the least that each block fills there.

The blocks that are live at one time are such a set. So are blocks of which any two are live together at some time,
though never all at once; and, of the blocks live at one time, those with the larger alignments, which fill more by
themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from tirlite.plan.blocks import Block
from tirlite.record import record
from tirlite.sizes import round_up


def cliques(rows: Sequence[int], weights: Sequence[int], within: int, steps: int) -> Iterator[int]:
    """The maximal cliques within a set of vertices, kept as bits; the search takes at most `steps`."""
    stack = [(0, within, 0)]
    while stack and steps:
        steps -= 1
        chosen, left, met = stack.pop()
        if not left:
            if not met:
                yield chosen
            continue
        pivot = max(members(left | met), key=lambda v: (rows[v] & left).bit_count())
        following = []
        for v in sorted(members(left & ~rows[pivot]), key=lambda v: -weights[v]):
            following.append((chosen | 1 << v, left & rows[v], met & rows[v]))
            left, met = left & ~(1 << v), met | 1 << v
        stack += reversed(following)


def members(mask: int) -> Iterator[int]:
    """The members of a set that is kept as bits."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


# The blocks that are live at some time with each block. A set of blocks that are live together, and their sizes then.
Near = dict[int, dict[int, int]]
Together = tuple[tuple[int, ...], tuple[int, ...]]
# For some blocks, those that they may overlap.
Loose = Mapping[int, Collection[int]]
NONE_LOOSE: Loose = MappingProxyType({})
# The most blocks for which sets are sought that are never live all at once; steps of that search; the most sets kept;
# and steps to divide a set that is live at one time where some of it may overlap.
_FEW, _STEPS, _MOST, _APART = 400, 500, 64, 100


@record
class Section:
    """Blocks that must be stacked; what each fills, rounded up so that another may begin there, and not rounded."""

    members: tuple[int, ...]
    fills: tuple[int, ...]
    nets: tuple[int, ...]

    @property
    def slack(self) -> int:
        """By how much the rounded sizes may exceed the height, as the topmost one need not be rounded."""
        return max(fill - net for fill, net in zip(self.fills, self.nets, strict=True))


def meetings(blocks: Sequence[Block], numbers: Sequence[int], loose: Loose = NONE_LOOSE) -> tuple[Near, list[Together]]:
    """For each block, those that are live with it at some time; and the maximal sets that are live together, in time.

    Blocks that are loose of each other count as never live together.
    """
    events = sorted(
        (time, sign, number, size)
        for number in numbers
        for low, high, size in blocks[number].pieces
        if size
        for time, sign in ((low, 1), (high, -1))
    )
    near: Near = {number: {} for number in numbers}
    live: dict[int, int] = {}
    found: dict[Together, None] = {}
    grown = False
    for _, sign, number, size in events:
        if sign > 0:
            near[number].update(live)
            for other in live:
                near[other][number] = 0
            live[number] = size
        else:
            if grown:
                found.update(dict.fromkeys(_parted(tuple(sorted(live)), live, loose)))
            del live[number]
        grown = sign > 0
    for number in loose:
        near[number] = {other: 0 for other in near.get(number, ()) if other not in loose[number]}
    return near, list(found)


def _parted(members: tuple[int, ...], sizes: Mapping[int, int], loose: Loose) -> Iterator[Together]:
    """The maximal subsets of what is live at one time of which none are loose of each other."""
    if not any(number in loose for number in members):
        yield members, tuple([sizes[each] for each in members])
        return
    rows = [
        sum(1 << j for j, other in enumerate(members) if other != number and other not in loose.get(number, ()))
        for number in members
    ]
    for mask in cliques(rows, [sizes[each] for each in members], (1 << len(members)) - 1, _APART):
        part = tuple([number for j, number in enumerate(members) if mask >> j & 1])
        yield part, tuple([sizes[each] for each in part])


def sections(
    blocks: Sequence[Block], near: Near, live: Iterable[Together], steps: Mapping[int, int], loose: Loose
) -> list[Section]:
    """The sets that are live at one time, in order; after each, further sections that have the most in common with it.

    The offsets of blocks that lie on a block are multiples of its step.
    """
    found = [rounded_up(members, nets, steps) for members, nets in live]
    more = [*_aligned(blocks, steps, loose), *_scattered(blocks, near, steps)]
    if not more:
        return found
    inside = [set(section.members) for section in found]
    rows: list[list[Section]] = [[section] for section in found]
    for section in more:
        common = [len(each.intersection(section.members)) for each in inside]
        rows[common.index(max(common))].append(section)
    return [section for row in rows for section in row]


def rounded_up(members: Sequence[int], nets: Sequence[int], steps: Mapping[int, int], align: int = 1) -> Section:
    """The section of stacked blocks, at multiples of their steps and of `align`."""
    fills = tuple([round_up(net, max(steps[c], align)) for c, net in zip(members, nets, strict=True)])
    return Section(tuple(members), fills, tuple(nets))


def _aligned(blocks: Sequence[Block], steps: Mapping[int, int], loose: Loose) -> Iterator[Section]:
    """The sets of blocks of some alignment or more that are live together, where these fill more by themselves."""
    for align in sorted({blocks[number].align for number in steps} - {1}):
        inside = [number for number in steps if blocks[number].align >= align]
        if all(steps[c] >= align for c in inside):
            continue
        for members, nets in meetings(blocks, inside, loose)[1]:
            section = rounded_up(members, nets, steps, align)
            if len(members) > 1 and section.fills != rounded_up(members, nets, steps).fills:
                yield section


def _scattered(blocks: Sequence[Block], near: Near, steps: Mapping[int, int]) -> Iterator[Section]:
    """The sets with the largest sums of which any two blocks are live together, but never all at once."""
    numbers = list(steps)
    if len(numbers) > _FEW or not any(_has_gap(blocks[number]) for number in numbers):
        return
    place = {number: position for position, number in enumerate(numbers)}
    rows = [sum(1 << place[other] for other in near[number]) for number in numbers]
    sizes = [blocks[number].size for number in numbers]
    found = []
    for mask in cliques(rows, sizes, (1 << len(numbers)) - 1, _STEPS):
        members = [number for number in numbers if mask >> place[number] & 1]
        if len(members) > 2 and not _are_live_at_once([blocks[number] for number in members]):
            nets = [min(blocks[c].beside(blocks[d]) for d in members if d != c) for c in members]
            found.append(rounded_up(members, nets, steps))
    yield from sorted(found, key=lambda section: -sum(section.nets))[:_MOST]


def _has_gap(block: Block) -> bool:
    return any(before.high < after.low for before, after in pairwise(block.pieces))


def _are_live_at_once(blocks: Sequence[Block]) -> bool:
    """Whether all of them fill bytes at some time."""
    starts = [low for block in blocks for low, _, size in block.pieces if size]
    return any(
        all(any(low <= time < high for low, high, size in block.pieces if size) for block in blocks) for time in starts
    )
