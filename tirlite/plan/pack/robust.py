"""Orders that are good at many bindings at once: trials of blocks in, the best orders found out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from random import Random
from typing import TYPE_CHECKING

from tirlite.plan.pack.blocks import Block, Piece
from tirlite.plan.pack.portfolio import pack_blocks
from tirlite.plan.pack.trials import Trials

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]

Order = tuple[int, ...]

# Looks at blocks for each packing; packings for weighted sums of bindings, and after that for some by themselves: the
# fewest, the most, and between them as many as come to so many blocks.
_BUDGET = 200
_WEIGHTED = (3, 12, 2000)
_SINGLE = (2, 8, 700)
_AGAIN = (2, 6, 900)
# What columns weigh at first that are no bindings.
_OTHERS = 0.05
# How fast a binding gains weight at which an order was bad.
_RATE = 2.0
# Sizes of blocks are whole numbers up to this where they are packed.
_UNITS = 1_000_000
# Blocks that are placed anew in all moves together, at first and again; moves for each block at most.
_PLACED, _PER_BLOCK = (24_000, 10_000), 12
# As good as the bound.
_ENOUGH = 1.0005


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
        if found[order] <= _ENOUGH:
            break
    best = min(found, key=found.__getitem__)
    if found[best] > _ENOUGH:
        order, cost = _moved(trials, best, found[best], _PLACED[0 if is_first else 1])
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


def _moved(trials: Trials, order: Order, cost: float, placed: int) -> tuple[Order, float]:
    """The order, improved on by moving single blocks to other places in it."""
    count = len(order)
    random = Random(count)
    for _ in range(min(_PER_BLOCK * count, placed // count)):
        moved = list(order)
        place = random.randrange(count)
        number = moved.pop(place)
        near = max(place + random.randrange(-8, 9), 0)
        moved.insert(near if random.random() < 0.5 else random.randrange(count), number)
        found = trials.cost(trials.tops(moved))
        if found <= cost:
            order, cost = tuple(moved), found
            if cost <= _ENOUGH:
                break
    return order, cost
