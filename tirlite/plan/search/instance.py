"""Translates blocks into instances: the numbers that a search works on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import gcd

from tirlite.groups import by_key
from tirlite.plan.blocks import Block
from tirlite.plan.request import Interval
from tirlite.plan.search.sections import (
    NONE_LOOSE,
    Loose,
    Near,
    Section,
    meetings,
    rounded_up,
    sections,
)
from tirlite.record import record
from tirlite.sizes import round_up


@record
class Instance:
    """A connected component of buffers by overlap in time; sizes, alignments and offsets are in units of `unit` bytes.

    `numbers` are the indices of the buffers among the blocks. `nets` are their sizes, and `sizes` the same rounded up
    so that another buffer may begin there; `heights` are the bytes that a buffer fills, rounded up, while each of its
    `neighbours` is live. `sections` are sets of buffers that must be stacked, see `plan.search.sections`; `fills` are
    the bytes that each fills there, `loads` their sums, and `slacks` how far these may exceed the height. `spans` are
    the first section of a buffer and the one after its last. `before` is the previous one of equal buffers, or -1.
    `floor` is a lower bound of the height.
    """

    numbers: tuple[int, ...]
    unit: int
    sizes: tuple[int, ...]
    nets: tuple[int, ...]
    aligns: tuple[int, ...]
    fixed: tuple[int | None, ...]
    widths: tuple[int, ...]
    neighbours: tuple[tuple[int, ...], ...]
    heights: tuple[tuple[int, ...], ...]
    sections: tuple[tuple[int, ...], ...]
    fills: tuple[tuple[int, ...], ...]
    loads: tuple[int, ...]
    slacks: tuple[int, ...]
    spans: tuple[Interval, ...]
    before: tuple[int, ...]
    floor: int

    @property
    def is_flat(self) -> bool:
        """Whether all offsets that are multiples of the unit are aligned well enough for every buffer."""
        return self.sizes == self.nets and max(self.aligns) == 1


def instances(blocks: Sequence[Block], loose: Loose = NONE_LOOSE) -> Iterator[Instance]:
    """The independent instances of a problem, those with the largest lower bound first.

    Blocks of 0 bytes are in none of them. Those that are `loose` of each other may overlap.
    """
    numbers = [number for number, block in enumerate(blocks) if block.size]
    near, live = meetings(blocks, numbers, loose)
    parts = []
    connected = list(_connected(numbers, near))
    part_of = {number: index for index, part in enumerate(connected) for number in part}
    rows = by_key((part_of[each[0][0]], each) for each in live)
    for index, part in enumerate(connected):
        steps = _steps(blocks, part, near)
        parts.append(_instance(blocks, near, sections(blocks, near, rows[index], steps, loose), steps))
    yield from sorted(parts, key=lambda part: (-part.floor * part.unit, part.numbers))


def whole(blocks: Sequence[Block]) -> Instance:
    """All blocks of more than 0 bytes as one instance, connected or not. Its sections are sets that live together."""
    numbers = [number for number, block in enumerate(blocks) if block.size]
    near, live = meetings(blocks, numbers)
    steps = _steps(blocks, numbers, near)
    return _instance(blocks, near, [rounded_up(members, nets, steps) for members, nets in live], steps)


def _steps(blocks: Sequence[Block], numbers: Sequence[int], near: Near) -> dict[int, int]:
    """For each buffer, what divides its offset and those of all buffers that may lie on it."""
    return {number: min(blocks[other].align for other in (number, *near[number])) for number in numbers}


def overlaps(blocks: Sequence[Block], most: int) -> int:
    """The number of times that the life of one block begins during that of another; counting ends beyond `most`."""
    pieces = [piece for block in blocks for piece in block.pieces]
    events = sorted([(low, 1) for low, _, _ in pieces] + [(high, -1) for _, high, _ in pieces])
    count = live = 0
    for _, sign in events:
        if sign > 0:
            count += live
        live += sign
        if count > most:
            break
    return count


def _connected(numbers: Sequence[int], near: Near) -> Iterator[list[int]]:
    met: set[int] = set()
    for start in numbers:
        if start in met:
            continue
        met.add(start)
        part = [start]
        for number in part:
            fresh = [other for other in near[number] if other not in met]
            met.update(fresh)
            part += fresh
        yield sorted(part)


def _instance(blocks: Sequence[Block], near: Near, found: Sequence[Section], steps: Mapping[int, int]) -> Instance:
    part = list(steps)
    place = {number: index for index, number in enumerate(part)}
    rounded = [round_up(blocks[number].size, step) for number, step in steps.items()]
    unit = _unit([blocks[number] for number in part], rounded, list(steps.values()))
    neighbours = tuple(tuple(sorted(place[other] for other in near[number])) for number in part)
    members = tuple(tuple([place[number] for number in section.members]) for section in found)
    nets = tuple(blocks[number].size // unit for number in part)
    fixed = tuple(_divided(blocks[number].fixed, unit) for number in part)
    tops = [offset + net for offset, net in zip(fixed, nets, strict=True) if offset is not None]
    fills = tuple(tuple([fill // unit for fill in section.fills]) for section in found)
    slacks = tuple(section.slack // unit for section in found)
    loads = tuple(map(sum, fills))
    return Instance(
        numbers=tuple(part),
        unit=unit,
        sizes=tuple(size // unit for size in rounded),
        nets=nets,
        aligns=tuple(max(blocks[number].align // unit, 1) for number in part),
        fixed=fixed,
        widths=tuple(sum(high - low for low, high, _ in blocks[number].pieces) for number in part),
        neighbours=neighbours,
        heights=tuple(_heights(blocks, part, c, row, steps[part[c]], unit) for c, row in enumerate(neighbours)),
        sections=members,
        fills=fills,
        loads=loads,
        slacks=slacks,
        spans=_spans(len(part), members),
        before=_equal_before(blocks, part, neighbours),
        floor=max([*tops, *(load - slack for load, slack in zip(loads, slacks, strict=True))]),
    )


def _heights(
    blocks: Sequence[Block], part: Sequence[int], c: int, neighbours: Sequence[int], step: int, unit: int
) -> tuple[int, ...]:
    """The most that a buffer fills while each of its neighbours is live."""
    block = blocks[part[c]]
    if block.is_even:
        return (round_up(block.size, step) // unit,) * len(neighbours)
    return tuple([round_up(block.beside(blocks[part[other]]), step) // unit for other in neighbours])


def _unit(blocks: Sequence[Block], rounded: Sequence[int], steps: Sequence[int]) -> int:
    """The largest number that divides all sizes and offsets; alignments that divide it always hold."""
    pieces = [(size, step) for block, step in zip(blocks, steps, strict=True) for _, _, size in block.pieces]
    unit = gcd(*rounded, *(block.size for block in blocks), *(block.fixed or 0 for block in blocks))
    unit = gcd(unit, *(size for size, _ in pieces), *(round_up(size, step) for size, step in pieces))
    return gcd(unit, *(block.align for block in blocks if unit % block.align))


def _divided(offset: int | None, unit: int) -> int | None:
    return None if offset is None else offset // unit


def _spans(count: int, sections: Sequence[tuple[int, ...]]) -> tuple[Interval, ...]:
    first = [len(sections)] * count
    last = [0] * count
    for index, section in enumerate(sections):
        for c in section:
            first[c] = min(first[c], index)
            last[c] = index + 1
    return tuple(zip(first, last, strict=True))


def _equal_before(
    blocks: Sequence[Block], part: Sequence[int], neighbours: Sequence[tuple[int, ...]]
) -> tuple[int, ...]:
    """For each buffer the previous one that is equal to it, so that they could be swapped; or -1."""
    latest: dict[object, int] = {}
    before = []
    for index, number in enumerate(part):
        block = blocks[number]
        # If the size of one varies, it matters when they are live.
        are_even = all(blocks[part[other]].is_even for other in (index, *neighbours[index]))
        when = () if are_even else block.pieces
        alike = (block.size, block.align, when, tuple(sorted((*neighbours[index], index))))
        before.append(latest.get(alike, -1) if block.fixed is None else -1)
        if block.fixed is None:
            latest[alike] = index
    return tuple(before)
