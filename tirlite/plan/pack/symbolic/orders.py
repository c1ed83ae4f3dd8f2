"""Orders in which to stack blocks of symbolic sizes: what they cost at many bindings, and the best ones found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from random import Random
from typing import TYPE_CHECKING

from tirlite.plan.pack.blocks import Block, Piece, Sections
from tirlite.plan.pack.portfolio import pack_blocks
from tirlite.record import record

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]

# What the worst binding counts for beside the mean, above the ratio that is as good as any there.
_WORST, _GOOD = 0.3, 1.03
# What bytes beyond the limits count for: an order that needs less than they do is always better.
_BEYOND = 10.0
_STEEP = 4.0


@record
class Trials:
    """Blocks over sections with their sizes in several columns: `values` of a block are those of its spans.

    The first `count` columns are bindings; in others sizes count by one of the products in them alone, which tells what
    they come to where that outgrows the rest. No plan should need more than the `limits`.
    """

    spans: Sequence[tuple[Piece, ...]]
    aligns: Sequence[int]
    values: Sequence[Values]
    limits: Values
    count: int
    sections: int
    floors: Values

    @classmethod
    def of(
        cls, sections: Sections, aligns: Sequence[int], values: Sequence[Values], limits: Values, count: int
    ) -> Trials:
        """Those of blocks over these sections; `floors` are what is live at one time at most, and never 0."""
        import numpy as np

        load = np.zeros((len(sections.load), len(limits)))
        for rows, sizes in zip(sections.spans, values, strict=True):
            for (low, high, _), size in zip(rows, sizes, strict=True):
                load[low:high] += size
        floors = np.maximum(load.max(axis=0), 1.0)
        return cls(sections.spans, aligns, values, limits, count, len(load), floors)

    def tops(self, order: Iterable[int]) -> Values:
        """What is needed in each column where blocks are stacked in that order."""
        return self.top_of(self.levels(tuple(order)))

    @property
    def births(self) -> Order:
        """The blocks in the order in which they begin to live."""
        return tuple(sorted(range(len(self.spans)), key=lambda number: self.spans[number][0].low))

    def top_of(self, levels: Sequence[Values]) -> Values:
        """What is needed in each column, of the `levels` of an order."""
        tops: Values = levels[-1].max(axis=0)
        return tops

    def levels(self, order: Order, known: Sequence[Values] = ()) -> list[Values]:
        """The heights of all sections before each block of the order and after the last; the first ones as `known`."""
        import numpy as np

        levels = [*known] or [np.zeros((self.sections, len(self.limits)))]
        highest = np.maximum.reduce
        heights = levels[-1]
        for number in order[len(levels) - 1 :]:
            rows, sizes, align = self.spans[number], self.values[number], self.aligns[number]
            low, high, _ = rows[0]
            offset = highest(heights[low:high])
            for low, high, _ in rows[1:]:
                offset = np.maximum(offset, highest(heights[low:high]))
            if align > 1:
                offset[: self.count] = np.ceil(offset[: self.count] / align) * align
            heights = heights.copy()
            for (low, high, _), size in zip(rows, sizes, strict=True):
                heights[low:high] = offset + size
            levels.append(heights)
        return levels

    def pressure(self, tops: Values) -> Values:
        """How bad each column is: at bindings what is needed over what must be, elsewhere what exceeds the limit."""
        import numpy as np

        beyond = 1 + _STEEP * (tops / np.maximum(self.limits, 1e-12) - 1)
        found: Values = tops / self.floors
        found[self.count :] = beyond[self.count :].clip(0)
        return np.maximum(found, np.where(beyond > 1, beyond, 0.0))

    def cost(self, tops: Values) -> float:
        """Less is better: the mean over the bindings of what is needed over what must be, and of the worst of it."""
        import numpy as np

        ratios = np.maximum(tops / self.floors, 1.0)[: self.count]
        beyond = (tops / self.floors - self.limits / self.floors - 1e-9).clip(0)
        worst = max(float(ratios.max()) - _GOOD, 0.0)
        return round(float(ratios.mean()) + _WORST * worst + _BEYOND * float(beyond.max() + beyond.sum()), 9)

    def worse(self, tops: Values) -> list[int]:
        """The columns in which more is needed than must be, or than the limits allow."""
        import numpy as np

        is_worse = tops > self.limits + 1e-9 * self.floors
        is_worse[: self.count] |= (tops > ENOUGH * self.floors)[: self.count]
        found: list[int] = np.flatnonzero(is_worse).tolist()
        return found

    def pile(self, order: Order, levels: Sequence[Values], column: int) -> list[int]:
        """The blocks that make up what is needed in a column: the highest one, what that rests on, and so on."""
        found, at = list[int](), int(levels[-1][:, column].argmax())
        for place in range(len(order) - 1, -1, -1):
            rows = self.spans[order[place]]
            if any(low <= at < high for low, high, _ in rows):
                found.append(order[place])
                heights = levels[place][:, column].tolist()
                at = max((each for low, high, _ in rows for each in range(low, high)), key=heights.__getitem__)
        return found

    def beside(self, block: int) -> list[int]:
        """The other blocks that live when it does; itself where there is none."""
        spans = self.spans[block]
        return [
            number
            for number, rows in enumerate(self.spans)
            if number != block and any(a < d and c < b for a, b, _ in rows for c, d, _ in spans)
        ] or [block]


Order = tuple[int, ...]

# Looks at blocks for each packing; packings for weighted sums of bindings, and after that for some by themselves: the
# fewest, the most, and between them as many as come to so many blocks.
_BUDGET = 200
_WEIGHTED = (3, 12, 2000)
_SINGLE = (2, 8, 700)
_AGAIN = (2, 6, 900)
# What columns weigh at first that are not bindings.
_OTHERS = 0.05
# How fast a binding gains weight at which an order was bad.
_RATE = 2.0
# Sizes of blocks are whole numbers up to this where they are packed.
_UNITS = 1_000_000
# Blocks that are placed anew in all moves together, at first and again; moves for each block at most.
_PLACED, _PER_BLOCK = (24_000, 10_000), 24
# The shares of moves, added up, that swap two blocks, and that put one anywhere; others put one beside another.
_SWAPS, _APART = 0.2, 0.6
# As good as the bound.
ENOUGH = 1 + 1e-6


def robust_orders(trials: Trials, starts: Sequence[Order], count: int, *, is_first: bool = True) -> list[Order]:
    """The best orders found, `count` at most, the best first; `starts` are among those that are tried.

    Blocks are packed with their sizes at some binding, and with sums of their sizes at all, where those bindings weigh
    more at which earlier orders were bad. The best order is then improved on by moving single blocks.
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
    """Weights of columns to pack with; each time after what came of the last ones is among those found."""
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
    """The order of offsets where a block is as large as the weighted sum of its sizes, each over the least needed."""
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
    """What the best order costs: of blocks packed by the mean, or as they are born and after so many moves for each."""
    import numpy as np

    cost = trials.cost(trials.tops(_packed(trials, np.full(trials.count, 1 / trials.count))))
    if cost <= enough:
        return cost
    return min(cost, _moved(trials, trials.births, per_block * len(trials.spans), enough)[1])


def _moved(trials: Trials, order: Order, moves: int, enough: float = ENOUGH) -> tuple[Order, float]:
    """The order, improved on by moves of single blocks that have to do with what is highest at some binding.

    What is needed there is the sum of a few blocks, each of which rests on the next. An order that needs less takes
    one of these away, or puts one that lives with it elsewhere; other moves change nothing.
    """
    count = len(order)
    random = Random(count)
    levels = trials.levels(order)
    cost = trials.cost(trials.top_of(levels))
    worse: list[int] = []
    piles: dict[int, list[int]] = {}
    for _ in range(moves):
        if not worse:
            tops = trials.top_of(levels)
            worse, piles = trials.worse(tops) or [int((tops / trials.floors).argmax())], {}
        column = random.choice(worse)
        if column not in piles:
            piles[column] = trials.pile(order, levels, column)
        block = random.choice(piles[column])
        moved, kind = list(order), random.random()
        place = random.randrange(count)
        if kind < _SWAPS:
            at = moved.index(block)
            moved[at], moved[place] = moved[place], moved[at]
        else:
            other = block if kind < _APART else random.choice(trials.beside(block))
            at = moved.index(other)
            moved.remove(other)
            place = place if other == block else moved.index(block) + random.randrange(2)
            moved.insert(place, other)
        heights = trials.levels(tuple(moved), levels[: min(at, place) + 1])
        found = trials.cost(trials.top_of(heights))
        if found <= cost:
            order, cost, levels, worse = tuple(moved), found, heights, []
            if cost <= enough:
                break
    return order, cost
