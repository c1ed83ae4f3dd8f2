"""One memory's requests of constant size in; what a search needs to know about them, in small numbers, out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd

from tirlite.plan.request import Interval
from tirlite.record import record


@record
class Item:
    """A buffer: bytes, a power of two that divides its offset, its offset if that is given, and when it lives."""

    size: int
    align: int
    fixed: int | None
    live: tuple[Interval, ...]


@record
class Instance:
    """Buffers that a chain of overlaps connects, with sizes, alignments and offsets in multiples of `unit` bytes.

    `numbers` are the buffers' places in the sequence of items. A buffer fills `sizes` where something may lie above
    it, rounded up so that the next may follow at once, and `nets` at the top. `sections` are the sets of buffers that
    live together and that no other such set contains, in order of time, `loads` the sums of their sizes, and `slacks`
    how far these may stand out over the top; `spans` are a buffer's first section and the one after its last. Of equal
    buffers each but the first has the one before it as its `before`, else -1. `floor` is a height that every plan
    needs.
    """

    numbers: tuple[int, ...]
    unit: int
    sizes: tuple[int, ...]
    nets: tuple[int, ...]
    aligns: tuple[int, ...]
    fixed: tuple[int | None, ...]
    widths: tuple[int, ...]
    neighbours: tuple[tuple[int, ...], ...]
    sections: tuple[tuple[int, ...], ...]
    loads: tuple[int, ...]
    slacks: tuple[int, ...]
    spans: tuple[Interval, ...]
    before: tuple[int, ...]
    floor: int

    @property
    def is_flat(self) -> bool:
        """Whether all offsets that are multiples of the unit are aligned well enough for every buffer."""
        return self.sizes == self.nets and max(self.aligns) == 1


def instances(items: Sequence[Item]) -> Iterator[Instance]:
    """The parts of a problem that have nothing to do with each other, those with the largest bound first.

    Items of no size are in none of them.
    """
    numbers = [number for number, item in enumerate(items) if item.size]
    near, cliques = _sweep(items, numbers)
    parts = [_instance(items, part, near, cliques) for part in _connected(numbers, near)]
    yield from sorted(parts, key=lambda part: (-part.floor * part.unit, part.numbers))


def whole(items: Sequence[Item]) -> Instance:
    """All items as one instance, whether or not overlaps connect them. Those of no size are not in it."""
    numbers = [number for number, item in enumerate(items) if item.size]
    return _instance(items, numbers, *_sweep(items, numbers))


def overlaps(items: Sequence[Item], most: int) -> int:
    """How often the life of one item begins during that of another; counting ends beyond `most`."""
    events = sorted((time, sign) for item in items for low, high in item.live for time, sign in ((low, 1), (high, -1)))
    count = live = 0
    for _, sign in events:
        if sign > 0:
            count += live
        live += sign
        if count > most:
            break
    return count


def _sweep(items: Sequence[Item], numbers: Sequence[int]) -> tuple[dict[int, dict[int, None]], list[tuple[int, ...]]]:
    """For each buffer those that live at some time when it does; and the sets of buffers that are maximal."""
    events = sorted(
        (time, sign, number)
        for number in numbers
        for low, high in items[number].live
        for time, sign in ((low, 1), (high, -1))
    )
    near: dict[int, dict[int, None]] = {number: {} for number in numbers}
    live: dict[int, None] = {}
    cliques: dict[tuple[int, ...], None] = {}
    grown = False
    for _, sign, number in events:
        if sign > 0:
            near[number].update(live)
            for other in live:
                near[other][number] = None
            live[number] = None
        else:
            if grown:
                cliques[tuple(sorted(live))] = None
            del live[number]
        grown = sign > 0
    return near, list(cliques)


def _connected(numbers: Sequence[int], near: dict[int, dict[int, None]]) -> Iterator[list[int]]:
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


def _instance(
    items: Sequence[Item], part: Sequence[int], near: dict[int, dict[int, None]], cliques: Sequence[tuple[int, ...]]
) -> Instance:
    place = {number: index for index, number in enumerate(part)}
    steps = [min(items[other].align for other in (number, *near[number])) for number in part]
    rounded = [_up(items[number].size, step) for number, step in zip(part, steps, strict=True)]
    unit = _unit([items[number] for number in part], rounded)
    neighbours = tuple(tuple(sorted(place[other] for other in near[number])) for number in part)
    sections = tuple(tuple(place[number] for number in clique) for clique in cliques if clique[0] in place)
    spans = _spans(len(part), sections)
    sizes = tuple(size // unit for size in rounded)
    nets = tuple(items[number].size // unit for number in part)
    fixed = tuple(_divided(items[number].fixed, unit) for number in part)
    tops = [offset + net for offset, net in zip(fixed, nets, strict=True) if offset is not None]
    slacks = tuple(max(sizes[c] - nets[c] for c in section) for section in sections)
    loads = tuple(sum(sizes[c] for c in section) for section in sections)
    return Instance(
        numbers=tuple(part),
        unit=unit,
        sizes=sizes,
        nets=nets,
        aligns=tuple(max(items[number].align // unit, 1) for number in part),
        fixed=fixed,
        widths=tuple(sum(high - low for low, high in items[number].live) for number in part),
        neighbours=neighbours,
        sections=sections,
        loads=loads,
        slacks=slacks,
        spans=spans,
        before=_equal_before(items, part, neighbours),
        floor=max([*tops, *(load - slack for load, slack in zip(loads, slacks, strict=True))]),
    )


def _unit(items: Sequence[Item], rounded: Sequence[int]) -> int:
    """The largest number that divides all sizes and offsets; an alignment that divides it is always met."""
    unit = gcd(*rounded, *(item.size for item in items), *(item.fixed or 0 for item in items))
    return gcd(unit, *(item.align for item in items if unit % item.align))


def _divided(offset: int | None, unit: int) -> int | None:
    return None if offset is None else offset // unit


def _up(size: int, step: int) -> int:
    return -(-size // step) * step


def _spans(count: int, sections: Sequence[tuple[int, ...]]) -> tuple[Interval, ...]:
    first = [len(sections)] * count
    last = [0] * count
    for index, section in enumerate(sections):
        for c in section:
            first[c] = min(first[c], index)
            last[c] = index + 1
    return tuple(zip(first, last, strict=True))


def _equal_before(items: Sequence[Item], part: Sequence[int], neighbours: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """For each buffer the one before it that it could change places with, or -1."""
    latest: dict[object, int] = {}
    before = []
    for index, number in enumerate(part):
        item = items[number]
        alike = (item.size, item.align, tuple(sorted((*neighbours[index], index))))
        before.append(latest.get(alike, -1) if item.fixed is None else -1)
        if item.fixed is None:
            latest[alike] = index
    return tuple(before)
