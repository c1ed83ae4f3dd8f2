"""One memory's requests of constant size in; what a search needs to know about them, in small numbers, out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from operator import sub

from tirlite.plan.request import Interval
from tirlite.record import record

# For each buffer those that live at some time when it does. A set of buffers, and what each of them fills then.
_Near = dict[int, dict[int, int]]
_Clique = tuple[tuple[int, ...], tuple[int, ...]]


@record
class Item:
    """A buffer: bytes, a power of two that divides its offset, its offset if that is given, and when it lives.

    Where it does not fill its `size` all the time, `pieces` are what it fills in each stretch of its life.
    """

    size: int
    align: int
    fixed: int | None
    live: tuple[Interval, ...]
    pieces: tuple[tuple[Interval, int], ...] = ()

    @property
    def stretches(self) -> tuple[tuple[Interval, int], ...]:
        """What it fills in each stretch of its life."""
        return self.pieces or tuple([(span, self.size) for span in self.live])


@record
class Instance:
    """Buffers that a chain of overlaps connects, with sizes, alignments and offsets in multiples of `unit` bytes.

    `numbers` are the buffers' places in the sequence of items. A buffer fills `sizes` where something may lie above
    it, rounded up so that the next may follow at once, and `nets` at the top; `heights` are what it fills of that while
    each of its neighbours lives. `sections` are the sets of buffers that live together and that no other such set
    contains, in order of time, `fills` what each of these fills then, `loads` the sums of that, and `slacks` how far
    these may stand out over the top; `spans` are a buffer's first section and the one after its last. Of equal buffers
    each but the first has the one before it as its `before`, else -1. `floor` is a height that every plan needs.
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


def _sweep(items: Sequence[Item], numbers: Sequence[int]) -> tuple[_Near, list[_Clique]]:
    """For each buffer those that live at some time when it does; and the sets of buffers that are maximal."""
    events = sorted(
        (time, sign, number, size)
        for number in numbers
        for (low, high), size in items[number].stretches
        if size
        for time, sign in ((low, 1), (high, -1))
    )
    near: _Near = {number: {} for number in numbers}
    live: dict[int, int] = {}
    cliques: dict[_Clique, None] = {}
    grown = False
    for _, sign, number, size in events:
        if sign > 0:
            near[number].update(live)
            for other in live:
                near[other][number] = 0
            live[number] = size
        else:
            if grown:
                members = tuple(sorted(live))
                cliques[members, tuple([live[each] for each in members])] = None
            del live[number]
        grown = sign > 0
    return near, list(cliques)


def _connected(numbers: Sequence[int], near: _Near) -> Iterator[list[int]]:
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


def _instance(items: Sequence[Item], part: Sequence[int], near: _Near, cliques: Sequence[_Clique]) -> Instance:
    place = {number: index for index, number in enumerate(part)}
    steps = [min(items[other].align for other in (number, *near[number])) for number in part]
    rounded = [_up(items[number].size, step) for number, step in zip(part, steps, strict=True)]
    unit = _unit([items[number] for number in part], rounded, steps)
    neighbours = tuple(tuple(sorted(place[other] for other in near[number])) for number in part)
    inside = [clique for clique in cliques if clique[0][0] in place]
    sections = tuple(tuple([place[number] for number in members]) for members, _ in inside)
    spans = _spans(len(part), sections)
    sizes = tuple(size // unit for size in rounded)
    nets = tuple(items[number].size // unit for number in part)
    fixed = tuple(_divided(items[number].fixed, unit) for number in part)
    tops = [offset + net for offset, net in zip(fixed, nets, strict=True) if offset is not None]
    bare = [[size // unit for size in filled] for _, filled in inside]
    fills = tuple(
        tuple([_up(size, steps[c]) // unit for c, size in zip(section, filled, strict=True)])
        for section, (_, filled) in zip(sections, inside, strict=True)
    )
    slacks = tuple(max(map(sub, filled, nets)) for filled, nets in zip(fills, bare, strict=True))
    loads = tuple(map(sum, fills))
    return Instance(
        numbers=tuple(part),
        unit=unit,
        sizes=sizes,
        nets=nets,
        aligns=tuple(max(items[number].align // unit, 1) for number in part),
        fixed=fixed,
        widths=tuple(sum(high - low for low, high in items[number].live) for number in part),
        neighbours=neighbours,
        heights=tuple(_heights(items, part, c, row, steps[c], unit) for c, row in enumerate(neighbours)),
        sections=sections,
        fills=fills,
        loads=loads,
        slacks=slacks,
        spans=spans,
        before=_equal_before(items, part, neighbours),
        floor=max([*tops, *(load - slack for load, slack in zip(loads, slacks, strict=True))]),
    )


def _heights(
    items: Sequence[Item], part: Sequence[int], c: int, neighbours: Sequence[int], step: int, unit: int
) -> tuple[int, ...]:
    """What a buffer fills at most while each of its neighbours lives."""
    item = items[part[c]]
    if not item.pieces:
        return (_up(item.size, step) // unit,) * len(neighbours)
    return tuple([_up(_most(item, items[part[other]]), step) // unit for other in neighbours])


def _most(item: Item, other: Item) -> int:
    """The most that an item fills while the other one lives and fills anything."""
    return max(
        size
        for (low, high), size in item.stretches
        if any(low < end and begin < high for (begin, end), beside in other.stretches if beside)
    )


def _unit(items: Sequence[Item], rounded: Sequence[int], steps: Sequence[int]) -> int:
    """The largest number that divides all sizes and offsets; an alignment that divides it is always met."""
    pieces = [(size, step) for item, step in zip(items, steps, strict=True) for _, size in item.pieces]
    unit = gcd(*rounded, *(item.size for item in items), *(item.fixed or 0 for item in items))
    unit = gcd(unit, *(size for size, _ in pieces), *(_up(size, step) for size, step in pieces))
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
        # Where sizes vary, what others fill while it lives depends on when that is.
        is_even = not any(items[part[other]].pieces for other in (index, *neighbours[index]))
        when = () if is_even else (item.live, item.pieces)
        alike = (item.size, item.align, when, tuple(sorted((*neighbours[index], index))))
        before.append(latest.get(alike, -1) if item.fixed is None else -1)
        if item.fixed is None:
            latest[alike] = index
    return tuple(before)
