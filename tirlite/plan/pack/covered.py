"""Whether a maximum of vectors is at most a sum of others, for all values of their products: a proof, or a direction.

`max(a, b) + max(c, d)` is at least any mean of `a` and `b` plus any mean of `c` and `d`, and so at least as large as a
vector, if such a sum is so in each product. Where products may have any values there is such a sum for each vector that
is never larger (Farkas' lemma), and a linear program finds it. What is known of the products, as `n*n >= n`, may be
added any number of times. The program is solved with floating numbers; what it finds is rounded to fractions, and
counts if it is right exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING

from tirlite.record import record

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tirlite.plan.pack.products import Values, Vectors

    Numbers = npt.NDArray[np.int64]

_PIVOTS, _BLAND = 600, 200
# Weights are near fractions with denominators up to this, or are rounded down to multiples of a small one.
_SIMPLE = 5040
_DENOMINATOR = 1 << 30
_LESS = 1e-4
_EPSILON = 1e-9


@record
class Cover:
    """The sum of slots, each of which is the maximum of its `parts`; the part at each place is of slot `numbers`.

    `facts` are vectors that are never negative; they stand behind the parts, subtracted, with a number beyond those of
    the slots.
    """

    parts: Vectors
    numbers: Numbers
    slots: int

    @classmethod
    def of(cls, slots: Sequence[Vectors], facts: Vectors) -> Cover | None:
        """That of slots; None where some part may be negative."""
        import numpy as np

        if not slots or any((slot < 0).any() for slot in slots):
            return None
        counts = [*(len(slot) for slot in slots), len(facts)]
        parts = np.concatenate([*slots, -facts])
        return cls(parts, np.repeat(np.arange(len(counts)), counts), len(slots))

    def excess(self, rows: Vectors) -> Values | None:
        """None where each row is proved to be at most the sum; else values of the products at which one may not be."""
        left = rows
        while len(left):
            weights, direction = _solved(left[0], self)
            is_below = None if weights is None else self._below(left, weights)
            if is_below is None or not is_below[0]:
                return direction
            left = left[[not each for each in is_below]]
        return None

    def _below(self, rows: Vectors, weights: Values) -> list[bool] | None:
        """Which rows are at most the parts so often, exactly; None where the first one is not."""
        columns = self.parts.T.tolist()
        for whole, denominator in (_simple(weights), self._less(weights)):
            sums = [0] * (self.slots + 1)
            for number, weight in zip(self.numbers.tolist(), whole, strict=True):
                sums[number] += weight
            if max(sums[:-1]) > denominator:
                continue
            bound = [sum(w * c for w, c in zip(whole, column, strict=True) if w) for column in columns]
            found = [all(c * denominator <= b for c, b in zip(row, bound, strict=True)) for row in rows.tolist()]
            if found[0]:
                return found
        return None

    def _less(self, weights: Values) -> tuple[list[int], int]:
        """The weights rounded down; those of facts by more, so that they take from no product what others give."""
        import numpy as np

        kept = np.where(self.numbers < self.slots, 1.0, 1 - _LESS)
        return [int(weight * _DENOMINATOR) for weight in (weights * kept).tolist()], _DENOMINATOR


def _simple(weights: Values) -> tuple[list[int], int]:
    """The weights as the simple fractions that they are near to, over one denominator."""
    exact = [Fraction(weight).limit_denominator(_SIMPLE) for weight in weights.tolist()]
    denominator = lcm(*(each.denominator for each in exact))
    return [each.numerator * (denominator // each.denominator) for each in exact], denominator


def _solved(row: Numbers, cover: Cover) -> tuple[Values | None, Values]:
    """Weights of the parts, of each slot 1 together at most, whose sum is no less than the row; or a direction.

    The row is scaled up from nothing, to twice itself, by the simplex method.
    """
    import numpy as np

    products, count = len(row), len(cover.parts)
    height = products + cover.slots + 1
    scale = np.maximum(np.abs(cover.parts).max(axis=0), 1).astype(np.float64)
    table = np.zeros((height, count + height + 2))
    table[:products, :count] = -cover.parts.T / scale[:, None]
    table[:products, count] = row / scale
    inside = np.flatnonzero(cover.numbers < cover.slots)
    table[products + cover.numbers[inside], inside] = 1.0
    table[-1, count] = 0.5
    table[:, count + 1 : -1] = np.eye(height)
    table[products:, -1] = 1.0
    gain = np.zeros(table.shape[1])
    gain[count] = 1.0
    basis = list(range(count + 1, count + 1 + height))
    _climb(table, gain, basis)
    direction = np.maximum(-gain[count + 1 : count + 1 + products], 0.0) / scale
    if -gain[-1] < 1 - 1e-7:
        return None, direction
    weights = np.zeros(count)
    for place, number in enumerate(basis):
        if number < count:
            weights[number] = max(table[place, -1], 0.0)
    return weights, direction


def _climb(table: Values, gain: Values, basis: list[int]) -> None:
    """Pivots until nothing is gained any more: by what gains most, late by Bland's rule, which never circles."""
    import numpy as np

    for pivot in range(_PIVOTS):
        entering = np.flatnonzero(gain[:-1] > _EPSILON)
        if not len(entering):
            return
        column = int(entering[0] if pivot >= _BLAND else np.argmax(gain[:-1]))
        rising = table[:, column] > _EPSILON
        if not rising.any():
            return
        quotients = np.where(rising, table[:, -1] / np.where(rising, table[:, column], 1.0), np.inf)
        tied = np.flatnonzero(quotients <= quotients.min() + 1e-12).tolist()
        leaving = min(tied, key=basis.__getitem__)
        table[leaving] /= table[leaving, column]
        factors = table[:, column].copy()
        factors[leaving] = 0.0
        table -= factors[:, None] * table[leaving]
        gain -= gain[column] * table[leaving]
        basis[leaving] = column
