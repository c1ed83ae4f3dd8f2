"""Stacks of blocks whose sizes are vectors: blocks and an order in, offsets out that hold for all values of the dims.

As in `stack`, each block rests on those before it that live when it does. What an offset is the maximum of is a front:
vectors none of which is nowhere above another. Where a front is too wide, two of its vectors become one that is as
large in each product as either: a little more than is needed at some values of the dims, and still above all below.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tirlite.plan.pack.blocks import Sections
from tirlite.record import record

if TYPE_CHECKING:
    from tirlite.plan.pack.products import Values, Vectors

# Of vectors that are too many so many are left.
_LEFT = 2 / 3
# Pairs that are merged at once, save those that cost nothing.
_AT_ONCE = 4
# Vectors that are compared at once, each with all others.
_BATCH = 512


@record
class Fronts:
    """The offset of each block and the total, each as the vectors that it is the maximum of."""

    offsets: tuple[Vectors, ...]
    total: Vectors


def fronts_of(
    spans: Sections, sizes: Sequence[Sequence[Vectors]], order: Iterable[int], prices: Values, wide: int
) -> Fronts:
    """Blocks over sections, stacked in an order; `sizes` of a block are vectors for each of its spans.

    An offset is the maximum of `wide` vectors at most. `prices` tell what each product is worth at each of some
    bindings, against the least that is needed there.
    """
    import numpy as np

    ground = np.zeros((1, len(prices)), np.int64)
    ends = [ground]
    tops = [0] * len(spans.load)
    offsets: list[Vectors] = [ground] * len(sizes)
    for number in order:
        rows = spans.spans[number]
        below = dict.fromkeys(top for low, high, _ in rows for top in tops[low:high])
        offsets[number] = front = _joined(ends, below, prices, wide)
        for (low, high, _), size in zip(rows, sizes[number], strict=True):
            tops[low:high] = [len(ends)] * (high - low)
            ends.append(front + size if len(size) == 1 else _raised(front, size, prices, wide))
    return Fronts(tuple(offsets), _joined(ends, dict.fromkeys(tops), prices, wide))


def _raised(front: Vectors, size: Vectors, prices: Values, wide: int) -> Vectors:
    return _narrowed([front + vector for vector in size], prices, wide)


def _joined(ends: Sequence[Vectors], below: Iterable[int], prices: Values, wide: int) -> Vectors:
    parts = [ends[number] for number in below]
    if len(parts) == 1:
        return parts[0]
    batch: list[Vectors] = []
    for part in parts:
        if batch and sum(map(len, batch)) + len(part) > _BATCH:
            batch = [_narrowed(batch, prices, wide)]
        batch.append(part)
    return _narrowed(batch, prices, wide)


def _narrowed(parts: Sequence[Vectors], prices: Values, wide: int) -> Vectors:
    """The front of all parts, in `wide` vectors at most."""
    import numpy as np

    front = _front(np.concatenate(parts))
    while len(front) > wide:
        front = _front(_merged(front, prices, int(wide * _LEFT)))
    return front


def _front(rows: Vectors) -> Vectors:
    """The rows that are nowhere above another one left out."""
    import numpy as np

    below = (rows[:, None, :] <= rows[None, :, :]).all(axis=2)
    # Of equal rows the first one stays.
    beaten = below & ~(below.T & np.triu(np.ones(below.shape, bool)))
    return rows[~beaten.any(axis=1)]


def _merged(rows: Vectors, prices: Values, least: int) -> Vectors:
    """Fewer rows: pairs of them are merged, those first that cost least at the bindings."""
    import numpy as np

    one, other = np.triu_indices(len(rows), 1)
    joint = np.maximum(rows[one], rows[other])
    above = (joint @ prices - (rows @ prices).max(axis=0)).clip(0)
    costs = (above + above * above).sum(axis=1)
    left = len(rows) - least
    used: set[int] = set()
    made: list[Vectors] = []
    for place in np.argsort(costs, kind="stable").tolist():
        pair = (int(one[place]), int(other[place]))
        if len(made) == left or (len(made) >= _AT_ONCE and costs[place] > 0):
            break
        if used.isdisjoint(pair):
            used.update(pair)
            made.append(joint[place])
    kept = [row for number, row in enumerate(rows) if number not in used]
    return np.array([*kept, *made])
