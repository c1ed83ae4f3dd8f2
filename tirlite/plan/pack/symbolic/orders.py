"""Searches for orders in which to stack blocks of symbolic sizes, by their cost at many bindings."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from random import Random
from typing import TYPE_CHECKING

from tirlite.plan.blocks import Block, Piece, Sections
from tirlite.plan.pack.portfolio import pack_blocks
from tirlite.record import cached_property, record

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]

# The weight of the worst binding beside the mean, and the ratio to the floor up to which it does not count.
_WORST, _GOOD = 0.3, 1.03
# The weight of bytes beyond the limits: an order within them is always better.
_BEYOND = 10.0
_STEEP = 4.0


@record(slots=False)
class Trials:
    """Blocks over sections with their sizes in several columns: `values` has those of the spans of each block.

    The first `count` columns are bindings; in each of the others a size is its coefficient of one product, which
    decides where that product outgrows the rest. No plan should need more bytes than the `limits`.
    """

    spans: Sequence[tuple[Piece, ...]]
    aligns: Sequence[int]
    values: Sequence[Values]
    limits: Values
    count: int
    sections: int
    floors: Values

    @cached_property
    def firsts(self) -> list[int]:
        """The number of the first piece of each block; 0 is the ground."""
        return [*accumulate(map(len, self.spans), initial=1)]

    @cached_property
    def pieces(self) -> list[list[tuple[int, int, int, Values]]]:
        """The pieces of each block: begin and end, number, and sizes."""
        return [
            [(low, high, first + place, sizes[place]) for place, (low, high, _) in enumerate(rows)]
            for first, rows, sizes in zip(self.firsts, self.spans, self.values, strict=False)
        ]

    @cached_property
    def masks(self) -> list[int]:
        """The sections in which each block is live, as bits."""
        return [sum([(1 << high) - (1 << low) for low, high, _ in rows]) for rows in self.spans]

    @cached_property
    def allowed(self) -> Values:
        """The limits relative to the floors."""
        return self.limits / self.floors

    @cached_property
    def steps(self) -> list[Values | None]:
        """The alignment of each block; in columns that are no bindings it is so small that it never matters."""
        import numpy as np

        made = {align: np.full(len(self.limits), 2.0**-600) for align in {*self.aligns} if align > 1}
        for align, step in made.items():
            step[: self.count] = align
        return [made.get(align) for align in self.aligns]

    @classmethod
    def of(
        cls, sections: Sections, aligns: Sequence[int], values: Sequence[Values], limits: Values, count: int
    ) -> Trials:
        """The trials of blocks over these sections; `floors` are the most bytes live at one time, at least 1."""
        import numpy as np

        load = np.zeros((len(sections.load), len(limits)))
        for rows, sizes in zip(sections.spans, values, strict=True):
            for (low, high, _), size in zip(rows, sizes, strict=True):
                load[low:high] += size
        floors = np.maximum(load.max(axis=0), 1.0)
        return cls(sections.spans, aligns, values, limits, count, len(load), floors)

    def tops(self, order: Iterable[int]) -> Values:
        """The total in each column with the blocks stacked in that order."""
        return self.stacked(tuple(order)).tops

    @property
    def births(self) -> Order:
        """The blocks in the order in which they begin to live."""
        return tuple(sorted(range(len(self.spans)), key=lambda number: self.spans[number][0].low))

    def stacked(self, order: Order, known: Stacked | None = None) -> Stacked:
        """The blocks stacked in that order, each as low as possible above those before it.

        `known` may be the blocks stacked in a similar order, with one block elsewhere or two swapped: blocks that rest
        on the same pieces, none of which has moved, are copied from it.
        """
        import numpy as np

        ground = np.zeros(len(self.limits))
        # `dirty` are the sections in which another piece may be on top than in `known`. Between the first and the last
        # place at which the orders differ, they include those of the moved blocks.
        held, dirty, moved = -1, -1, set[int]()
        first, final = 0, len(order)
        if known is None:
            heights = [ground] * (sum(map(len, self.spans)) + 1)
            offsets, under = [ground] * len(order), list[tuple[int, ...]]([()] * len(order))
        else:
            heights, offsets, under = [*known.heights], [*known.offsets], [*known.under]
            differ = [place for place, pair in enumerate(zip(order, known.order, strict=True)) if pair[0] != pair[1]]
            if not differ:
                return known
            first, final = differ[0], differ[-1]
            held, dirty = self.masks[order[first]] | self.masks[order[final]], 0
        last = [0] * self.sections
        maximum, multiply, ceil = np.maximum, np.multiply, np.ceil
        for place, number in enumerate(order):
            if first <= place <= final + 1:
                dirty |= held
            mask, pieces = -1 if known is None else self.masks[number], self.pieces[number]
            if dirty & mask:
                rests = tuple(dict.fromkeys([each for low, high, _, _ in pieces for each in last[low:high]]))
                is_same = known is not None and rests == under[number] and moved.isdisjoint(rests)
                if not is_same:
                    offset = heights[rests[0]]
                    for each in rests[1:]:
                        offset = maximum(offset, heights[each])
                    if (step := self.steps[number]) is not None:
                        offset = multiply(ceil(offset / step), step)
                    is_same = known is not None and offset.tobytes() == offsets[number].tobytes()
                    under[number], offsets[number] = rests, offset
                if is_same:
                    dirty &= ~mask
                else:
                    dirty |= mask
                    for _, _, piece, size in pieces:
                        heights[piece] = offset + size
                        moved.add(piece)
            for low, high, piece, _ in pieces:
                last[low:high] = [piece] * (high - low)
        return Stacked(order, heights, offsets, under, last)

    def pressure(self, tops: Values) -> Values:
        """How bad each column is: at bindings the total relative to the floor, elsewhere the excess over the limit."""
        import numpy as np

        beyond = 1 + _STEEP * (tops / np.maximum(self.limits, 1e-12) - 1)
        found: Values = tops / self.floors
        found[self.count :] = beyond[self.count :].clip(0)
        return np.maximum(found, np.where(beyond > 1, beyond, 0.0))

    def cost(self, tops: Values) -> float:
        """The cost of totals: mean and worst ratio to the floor over the bindings, and the excess over the limits."""
        import numpy as np

        over, most, total = tops / self.floors, np.maximum.reduce, np.add.reduce
        ratios = np.maximum(over, 1.0)[: self.count]
        beyond = np.maximum(over - self.allowed - 1e-9, 0.0)
        worst = max(float(most(ratios)) - _GOOD, 0.0)
        mean = float(total(ratios)) / self.count
        return round(mean + _WORST * worst + _BEYOND * float(most(beyond) + total(beyond)), 9)

    def worse(self, tops: Values) -> list[int]:
        """The columns in which totals exceed the floor or the limit."""
        import numpy as np

        is_worse = tops > self.limits + 1e-9 * self.floors
        is_worse[: self.count] |= (tops > ENOUGH * self.floors)[: self.count]
        found: list[int] = np.flatnonzero(is_worse).tolist()
        return found

    def pile(self, stacked: Stacked, column: int) -> list[int]:
        """The blocks that make up the total in a column: the highest one, the one that it rests on, and so on."""
        found, rests = list[int](), stacked.last
        while piece := max(dict.fromkeys(rests), key=lambda each: stacked.heights[each][column]):
            found.append(bisect_right(self.firsts, piece) - 1)
            rests = stacked.under[found[-1]]
        return found

    def beside(self, block: int) -> list[int]:
        """The other blocks that are live with it; itself where there is none."""
        mask = self.masks[block]
        return [number for number, other in enumerate(self.masks) if other & mask and number != block] or [block]


Order = tuple[int, ...]


@record(eq=False)
class Stacked:
    """Blocks stacked in an order: the height of the top of each piece in each column.

    `under` has the numbers of the pieces that were on top in the sections of each block when it was placed; `last` are
    the pieces on top in the end.
    """

    order: Order
    heights: Sequence[Values]
    offsets: Sequence[Values]
    under: Sequence[tuple[int, ...]]
    last: Sequence[int]

    @property
    def tops(self) -> Values:
        """The total in each column."""
        import numpy as np

        tops: Values = np.maximum.reduce([self.heights[each] for each in {*self.last}])
        return tops


# Looks at blocks for each packing. Packings at weighted sums of bindings, at single bindings, and in later turns: the
# fewest, the most, and blocks in all of them.
_BUDGET = 200
_WEIGHTED = (3, 12, 2000)
_SINGLE = (2, 8, 700)
_AGAIN = (2, 6, 900)
# The first weight of columns that are not bindings.
_OTHERS = 0.05
# How fast the weight of a column grows with its pressure.
_RATE = 2.0
# The greatest size of blocks that are packed, which are whole numbers.
_UNITS = 1_000_000
# Blocks that are placed in all moves, in the first turn and in later ones; the most moves per block.
_PLACED, _PER_BLOCK = (24_000, 10_000), 24
# Moves below _SWAPS swap two blocks, those below _APART put a block anywhere, others put one beside another.
_SWAPS, _APART = 0.2, 0.6
# As good as the bound.
ENOUGH = 1 + 1e-6


def robust_orders(trials: Trials, starts: Sequence[Order], count: int, *, is_first: bool = True) -> list[Order]:
    """At most `count` of the best orders found, the best first; `starts` are among those that are tried.

    Blocks are packed with weighted sums of their sizes at all bindings, in which bindings gain weight where the last
    order was bad, and with their sizes at single bindings. The best order is improved by moves of single blocks.
    """
    import numpy as np

    found = {order: trials.cost(trials.tops(order)) for order in starts}
    singles = np.eye(len(trials.limits))[: _times(_SINGLE, trials)]
    weightings = (
        chain(_weightings(trials, found, _WEIGHTED), singles) if is_first else _weightings(trials, found, _AGAIN)
    )
    for weights in weightings:
        order = _packed(trials, weights)
        if order not in found:
            found[order] = trials.cost(trials.tops(order))
        if found[order] <= ENOUGH:
            break
    best = min(found, key=found.__getitem__)
    moves = min(_PER_BLOCK * len(best), _PLACED[0 if is_first else 1] // len(best))
    for start in (best, trials.births) if is_first else (best,):
        if min(found.values()) > ENOUGH:
            order, cost = _moved(trials, start, moves)
            found[order] = cost
    return sorted(found, key=found.__getitem__)[:count]


def _weightings(trials: Trials, found: dict[Order, float], limits: tuple[int, int, int]) -> Iterator[Values]:
    """Weights of columns to pack with: each depends on the order that was last added to `found`."""
    import numpy as np

    weights = np.full(len(trials.limits), 1 / trials.count)
    weights[trials.count :] *= _OTHERS
    for _ in range(_times(limits, trials)):
        yield weights
        pressure = trials.pressure(trials.tops(next(reversed(found))))
        weights = weights * np.exp(_RATE * (pressure - pressure.max()))
        weights /= weights.sum()


def _times(limits: tuple[int, int, int], trials: Trials) -> int:
    fewest, most, blocks = limits
    return max(fewest, min(most, blocks // len(trials.spans)))


def _packed(trials: Trials, weights: Values) -> Order:
    """The order of offsets in a packing at weighted sums of sizes, each relative to the floor of its column."""
    scaled = weights / trials.floors
    sums = [(values @ scaled).tolist() for values in trials.values]
    unit = max(map(max, sums)) / _UNITS or 1.0
    blocks = [
        Block(tuple(Piece(low, high, int(size / unit)) for (low, high, _), size in zip(rows, row, strict=True)))
        for rows, row in zip(trials.spans, sums, strict=True)
    ]
    offsets = pack_blocks(blocks, _BUDGET)
    return tuple(sorted(range(len(blocks)), key=lambda number: (offsets[number], number)))


def least_cost(trials: Trials, per_block: int, enough: float) -> float:
    """The cost of the better of two orders: of a packing at the mean, and of births improved by moves per block."""
    import numpy as np

    cost = trials.cost(trials.tops(_packed(trials, np.full(trials.count, 1 / trials.count))))
    if cost <= enough:
        return cost
    return min(cost, _moved(trials, trials.births, per_block * len(trials.spans), enough)[1])


def _moved(trials: Trials, order: Order, moves: int, enough: float = ENOUGH) -> tuple[Order, float]:
    """The order improved by moves of single blocks, and its cost.

    The total at a binding is the sum of a pile of a few blocks, each of which rests on the next. Only moves of these,
    or of blocks that are live with them, can lower it.
    """
    count = len(order)
    random = Random(count)
    stacked = trials.stacked(order)
    cost = trials.cost(stacked.tops)
    worse: list[int] = []
    piles: dict[int, list[int]] = {}
    for _ in range(moves):
        if not worse:
            tops = stacked.tops
            worse, piles = trials.worse(tops) or [int((tops / trials.floors).argmax())], {}
        column = random.choice(worse)
        if column not in piles:
            piles[column] = trials.pile(stacked, column)
        block = random.choice(piles[column])
        moved, kind = list(order), random.random()
        place = random.randrange(count)
        if kind < _SWAPS:
            at = moved.index(block)
            moved[at], moved[place] = moved[place], moved[at]
        else:
            other = block if kind < _APART else random.choice(trials.beside(block))
            moved.remove(other)
            place = place if other == block else moved.index(block) + random.randrange(2)
            moved.insert(place, other)
        other_stack = trials.stacked(tuple(moved), stacked)
        found = trials.cost(other_stack.tops)
        if found <= cost:
            order, cost, stacked, worse = other_stack.order, found, other_stack, []
            if cost <= enough:
                break
    return order, cost
