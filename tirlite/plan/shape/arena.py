"""Computes offsets in one memory whose sizes depend on dims, for each binding of the dims.

Lifetimes never change, so one order of stacking serves many bindings: each place rests on the earlier ones that are
live with it. Orders come from packings at sample bindings, made one by one as they are needed; if none of them reaches
the floor for some sizes, these are packed and searched by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tirlite.gate import GATE
from tirlite.plan.blocks import Block
from tirlite.plan.pack.portfolio import pack_blocks
from tirlite.plan.request import Interval
from tirlite.plan.search.descent import minimise
from tirlite.plan.search.engine import Engine, Limits, PythonEngine
from tirlite.plan.shape.formulas import rows_of
from tirlite.record import record

# Looks at places in a packing.
_BUDGET = 20_000
# The most pairs of places that are live together for a search.
_PAIRS = 1_000_000


@record
class Occupant:
    """What lies at one offset, whatever its size: its lifetime, its alignment, and its offset if that is fixed."""

    live: tuple[Interval, ...]
    align: int
    fixed: int | None = None


@record
class StackingOrder:
    """An order of stacking: for each place its number, its alignment, and the places before it that it may rest on."""

    steps: tuple[tuple[int, int, tuple[int, ...]], ...]

    def stacked(self, sizes: Sequence[int], least: int = 1) -> list[int]:
        """The offsets at these sizes, each aligned to `least` at least, a power of two."""
        offsets = [0] * len(sizes)
        ends = [0] * len(sizes)
        for number, align, below in self.steps:
            size = sizes[number]
            if below and size:
                offset = ends[below[0]] if len(below) == 1 else max([ends[other] for other in below])
                if align < least:
                    align = least
                if align > 1:
                    offset = -(-offset // align) * align
                offsets[number] = offset
                ends[number] = offset + size
            elif below:
                # What lies on a place of 0 bytes rests on what is below it.
                ends[number] = max([ends[other] for other in below])
            else:
                ends[number] = size
        return offsets


class ShapeArena:
    """Finds offsets at given sizes; the same sizes always get the same offsets.

    `samples` give sizes at which orders are sought, the most likely first. Where no order reaches the floor, there is a
    search of `nodes` on `engine`. Places are aligned to `line`, or to the largest power of two below it that does not
    raise the floor, if an order reaches the floor so.
    """

    def __init__(
        self,
        places: Sequence[Occupant],
        samples: Sequence[Callable[[], Sequence[int]]],
        nodes: int,
        engine: Engine | None,
        line: int = 1,
    ) -> None:
        self.places = tuple(places)
        self.rows = rows_of([place.live for place in self.places])
        self._samples = samples
        self._nodes = nodes
        self._engine = engine or PythonEngine()
        self._near = _neighbours(len(self.places), self.rows)
        self._line = line
        self._is_bare = all(place.align == 1 for place in self.places)
        aligns = [place.align for place in self.places]
        self._steps = [min(aligns[other] for other in (n, *self._near[n])) for n in range(len(self.places))]
        self._is_free = all(place.fixed is None for place in self.places)
        self._orders: list[StackingOrder] = []

    def floor(self, sizes: Sequence[int], least: int = 1) -> int:
        """A lower bound of the bytes: in each row, all places but the topmost are rounded up to where others may begin.

        Places are aligned to `least` at least, a power of two.
        """
        if self._is_bare and least == 1:
            return max([sum([sizes[number] for number in row]) for row in self.rows], default=0)
        steps = [max(step, least) for step in self._steps] if least > 1 else self._steps
        rounded = [-(-size // step) * step for size, step in zip(sizes, steps, strict=True)]
        return max(
            [
                sum([rounded[number] for number in row]) - max([rounded[number] - sizes[number] for number in row])
                for row in self.rows
            ],
            default=0,
        )

    def packed(self, sizes: Sequence[int]) -> tuple[list[int], int]:
        """The offsets, and the total size."""
        tops = [place.fixed + size for place, size in zip(self.places, sizes, strict=True) if place.fixed is not None]
        floor = max([self.floor(sizes), *tops])
        best: list[int] = []
        least = -1
        for line in self._lines(sizes, floor):
            for number in range(len(self._samples) if self._is_free else 0):
                offsets = self._order(number).stacked(sizes, line)
                top = max(map(int.__add__, offsets, sizes))
                if least < 0 or top < least:
                    best, least = offsets, top
                if top <= floor:
                    return best, least
        return self._alone(sizes, floor, best, least)

    def _lines(self, sizes: Sequence[int], floor: int) -> Iterator[int]:
        """The alignments to try in turn: the largest that need not cost padding, and then no more than is needed."""
        line = self._line
        while line > 1 and self.floor(sizes, line) > floor:
            line //= 2
        if line > 1:
            yield line
        yield 1

    def _alone(self, sizes: Sequence[int], floor: int, best: list[int], least: int) -> tuple[list[int], int]:
        """The best of what was found before, of a packing of these sizes, and of a search."""
        blocks = self._blocks(sizes)
        offsets = pack_blocks(blocks, _BUDGET)
        top = max(map(int.__add__, offsets, sizes), default=0)
        if least < 0 or top < least:
            best, least = offsets, top
        # Padding of less than one alignment is not worth a search.
        padding = max([place.align for place in self.places], default=1) - 1
        if least <= floor + padding or not self._nodes or sum(map(len, self._near)) > _PAIRS:
            return best, least
        engine = self._engine if sum(sizes) < self._engine.largest else PythonEngine()
        found = minimise(blocks, engine, Limits(self._nodes), best)
        return (list(found.offsets), found.total) if found is not None and found.total < least else (best, least)

    def _order(self, number: int) -> StackingOrder:
        with GATE.inside(self):
            while len(self._orders) <= number:
                sizes = self._samples[len(self._orders)]()
                offsets = pack_blocks(self._blocks(sizes), _BUDGET)
                ranked = sorted(range(len(sizes)), key=lambda i: (offsets[i], i))
                self._orders.append(_order(ranked, self._near, [place.align for place in self.places]))
            return self._orders[number]

    def _blocks(self, sizes: Sequence[int]) -> list[Block]:
        return [
            Block.even(size, place.live, place.align, place.fixed)
            for place, size in zip(self.places, sizes, strict=True)
        ]


def _neighbours(count: int, rows: Sequence[Sequence[int]]) -> list[dict[int, None]]:
    """For each place, those that are live with it at some time."""
    near: list[dict[int, None]] = [{} for _ in range(count)]
    for row in rows:
        for number in row:
            near[number].update((other, None) for other in row if other != number)
    return near


def _order(ranked: Sequence[int], near: Sequence[dict[int, None]], aligns: Sequence[int]) -> StackingOrder:
    """The order of stacking in which each place may rest on some of its neighbours before it.

    A neighbour that is live with another one placed after it is never the highest, and is left out.
    """
    position = {number: place for place, number in enumerate(ranked)}
    steps = []
    for number in ranked:
        before = sorted((o for o in near[number] if position[o] < position[number]), key=position.__getitem__)
        below: list[int] = []
        for other in reversed(before):
            if not any(later in near[other] for later in below):
                below.append(other)
        steps.append((number, aligns[number], tuple(below)))
    return StackingOrder(tuple(steps))
