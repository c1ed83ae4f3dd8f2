"""Stacks blocks whose symbolic sizes are vectors, the coefficients of their products; and proves bounds of the total.

Each dim, and whatever else a size is made of, counts from its least value, so that all products are at least 0. If no
coefficient of a vector is above that of another, its size is at most the other, for all values of the dims.

As in `stack`, each block rests on those before it that are live with it. An offset is the maximum of a front: vectors,
none of which is dominated by another. Where a front is too wide, two of its vectors are merged into their maximum in
each coefficient, which may be more than needed at some values of the dims.

`max(a, b) + max(c, d)` is at least any mean of `a` and `b` plus any mean of `c` and `d`, and so at least as large as a
vector, if such a sum is so in each product. Where products may have any values there is such a sum for each vector that
is never larger (Farkas' lemma), and a linear program finds it. What is known of the products, as `n*n >= n`, may be
added any number of times. The program is solved with floating numbers; what it finds is rounded to fractions, and
counts if it is right exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import gcd, lcm, prod
from typing import TYPE_CHECKING

from tirlite.diag import KernelError
from tirlite.plan.blocks import Sections
from tirlite.plan.order import Binding
from tirlite.record import record
from tirlite.sizes import Size, evaluate
from tirlite.sizes.poly import Atom, Product, Terms, of_terms, terms_of
from tirlite.sizes.terms import add, join, replace, scaled, without

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.int64]
    Values = npt.NDArray[np.float64]
    Numbers = npt.NDArray[np.int64]

# The most products in a vector.
_MANY = 96
# The largest coefficient: sums of as many vectors as there are fit into 63 bits.
_LARGEST = 1 << 40


@record
class Products:
    """The products of distances from low ends that some sizes are sums of; the first one is the constant."""

    products: tuple[Product, ...]
    lows: Mapping[Atom, int]
    vectors: Mapping[Size, tuple[int, ...]]

    @classmethod
    def of(cls, sizes: Iterable[Size]) -> Products | None:
        """The products of the sizes; None where there are too many, or an atom has no least value."""
        known = list(dict.fromkeys(sizes))
        atoms = dict.fromkeys(atom for size in known for product in terms_of(size) for atom in product)
        lows: dict[Atom, int] = {}
        for atom in atoms:
            if atom.bounds.low is None:
                return None
            lows[atom] = atom.bounds.low
        images = _images(lows, 1)
        try:
            moved = {size: replace(terms_of(size), images) for size in known}
        except KernelError:  # far too many
            return None
        products = tuple(dict.fromkeys([(), *(product for terms in moved.values() for product in terms)]))
        if len(products) > _MANY or any(abs(c) > _LARGEST for terms in moved.values() for c in terms.values()):
            return None
        vectors = {size: tuple(terms.get(product, 0) for product in products) for size, terms in moved.items()}
        return cls(products, lows, vectors)

    def size(self, vector: Sequence[int]) -> Size:
        """The size that a vector stands for."""
        terms = {product: int(count) for product, count in zip(self.products, vector, strict=True) if count}
        return of_terms(replace(terms, _images(self.lows, -1)))

    def values(self, bindings: Sequence[Binding]) -> Values:
        """The value of each product (rows) at each binding (columns)."""
        import numpy as np

        distances = {
            atom: [float(evaluate(atom, binding) - low) for binding in bindings] for atom, low in self.lows.items()
        }
        table = np.ones((len(self.products), len(bindings)))
        for row, product in zip(table, self.products, strict=True):
            for atom in product:
                row *= distances[atom]
        return table

    def facts(self) -> list[tuple[int, ...]]:
        """Vectors that are never negative: facts that relate products to each other, times products."""
        known: list[Terms] = []
        for atom in self.lows:
            for side, sign in ((atom.below(), -1), (atom.above(), 1)):
                known += [
                    add(scaled(terms_of(each.size), sign), {(atom,): each.scale}, -sign) for each in side if not each.by
                ]
            if atom.bounds.high is not None:
                known.append({(): atom.bounds.high, (atom,): -1})
        found: dict[tuple[int, ...], None] = {}
        for terms in known:
            if all(atom in self.lows for product in terms for atom in product):
                moved = replace(terms, _images(self.lows, 1))
                for product in self.products:
                    self._take(found, {join(each, product): count for each, count in moved.items()})
        for product in self.products:
            for atom in dict.fromkeys(product):
                if product.count(atom) > 1 and self.lows[atom] % atom.divisor == 0:
                    rest = without(product, (atom,))
                    assert rest is not None
                    self._take(found, {product: 1, rest: -atom.divisor})
        return list(found)

    def _take(self, found: dict[tuple[int, ...], None], terms: Terms) -> None:
        if all(product in self.products and abs(count) <= _LARGEST for product, count in terms.items()):
            found[tuple(terms.get(product, 0) for product in self.products)] = None

    def moduli(self, align: int) -> Numbers:
        """For each product, what must divide its coefficient so that `align` is known to divide the term."""
        import numpy as np

        steps = [prod(atom.divisor for atom in each if self.lows[atom] % atom.divisor == 0) for each in self.products]
        return np.array([align // gcd(align, step) for step in steps], np.int64)


def _images(lows: Mapping[Atom, int], sign: int) -> dict[Atom, Terms]:
    return {atom: {(atom,): 1, (): sign * low} if low else {(atom,): 1} for atom, low in lows.items()}


# The part of the width to which a front is narrowed.
_LEFT = 2 / 3
# Pairs that are merged in one step, beside those that cost nothing.
_AT_ONCE = 4
# The most vectors that are compared at once, each with all others.
_BATCH = 512


@record
class Padding:
    """Keeps offsets aligned where sizes may be no multiples of alignments: `sizes` are those of blocks, rounded up.

    The offset of a block is aligned if its `moduli` divide the coefficients.
    """

    sizes: Sequence[Sequence[Vectors]]
    moduli: Sequence[Numbers]


@record
class Fronts:
    """The offset of each block, and the total, each as the vectors that it is the maximum of."""

    offsets: tuple[Vectors, ...]
    total: Vectors


def fronts_of(
    spans: Sections,
    sizes: Sequence[Sequence[Vectors]],
    order: Iterable[int],
    prices: Values,
    wide: int,
    padding: Padding | None = None,
) -> Fronts:
    """Blocks over sections, stacked in an order; `sizes` of a block are vectors for each of its spans.

    An offset is the maximum of at most `wide` vectors. `prices` are the values of the products at some bindings,
    relative to the floors there. With a `padding`, a block rests on the rounded sizes of those below it where their own
    sizes would not keep it aligned.
    """
    import numpy as np

    ground = np.zeros((1, len(prices)), np.int64)
    ends, rounded = [ground], [ground]
    tops = [0] * len(spans.load)
    offsets: list[Vectors] = [ground] * len(sizes)
    for number in order:
        rows = spans.spans[number]
        below = dict.fromkeys(top for low, high, _ in rows for top in tops[low:high])
        offsets[number] = front = _joined(ends, below, prices, wide)
        if padding is not None:
            upper = _joined(rounded, below, prices, wide)
            if (front % padding.moduli[number]).any():
                offsets[number] = front = upper
            rounded += [_raised(upper, size, prices, wide) for size in padding.sizes[number]]
        for (low, high, _), size in zip(rows, sizes[number], strict=True):
            tops[low:high] = [len(ends)] * (high - low)
            ends.append(_raised(front, size, prices, wide))
    return Fronts(tuple(offsets), _joined(ends, dict.fromkeys(tops), prices, wide))


def _raised(front: Vectors, size: Vectors, prices: Values, wide: int) -> Vectors:
    return front + size if len(size) == 1 else _narrowed([front + vector for vector in size], prices, wide)


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
    """The front of all parts, in at most `wide` vectors."""
    import numpy as np

    front = _front(np.concatenate(parts))
    while len(front) > wide:
        front = _front(_merged(front, prices, int(wide * _LEFT)))
    return front


def _front(rows: Vectors) -> Vectors:
    """The rows that no other row dominates."""
    import numpy as np

    below = (rows[:, None, :] <= rows[None, :, :]).all(axis=2)
    # Of equal rows the first one stays.
    beaten = below & ~(below.T & np.triu(np.ones(below.shape, bool)))
    return rows[~beaten.any(axis=1)]


def _merged(rows: Vectors, prices: Values, least: int) -> Vectors:
    """Fewer rows: the pairs are merged whose merging costs least at the bindings."""
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


_PIVOTS, _BLAND = 600, 200
# Weights are near fractions with denominators up to this, or are rounded down to multiples of a small one.
_SIMPLE = 5040
_DENOMINATOR = 1 << 30
_LESS = 1e-4
_EPSILON = 1e-9


@record
class Cover:
    """The total of slots, each of which is the maximum of its `parts`; `numbers` are the slots of the parts.

    After these come facts, vectors that are never negative, negated, with a number beyond those of the slots.
    """

    parts: Vectors
    numbers: Numbers
    slots: int

    @classmethod
    def of(cls, slots: Sequence[Vectors], facts: Vectors) -> Cover | None:
        """The cover of slots; None where a part may be negative."""
        import numpy as np

        if not slots or any((slot < 0).any() for slot in slots):
            return None
        counts = [*(len(slot) for slot in slots), len(facts)]
        parts = np.concatenate([*slots, -facts])
        return cls(parts, np.repeat(np.arange(len(counts)), counts), len(slots))

    def excess(self, rows: Vectors) -> Values | None:
        """None where all rows are proved to be at most the total; else values of the products where one may not be."""
        left = rows
        while len(left):
            weights, direction = _solved(left[0], self)
            is_below = None if weights is None else self._below(left, weights)
            if is_below is None or not is_below[0]:
                return direction
            left = left[[not each for each in is_below]]
        return None

    def _below(self, rows: Vectors, weights: Values) -> list[bool] | None:
        """Which rows are at most the weighted sum of the parts, exactly; None where the first one is not."""
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
        """The weights rounded down; those of facts by more, as they are subtracted."""
        import numpy as np

        kept = np.where(self.numbers < self.slots, 1.0, 1 - _LESS)
        return [int(weight * _DENOMINATOR) for weight in (weights * kept).tolist()], _DENOMINATOR


def _simple(weights: Values) -> tuple[list[int], int]:
    """The simple fractions nearest to the weights, over one denominator."""
    exact = [Fraction(weight).limit_denominator(_SIMPLE) for weight in weights.tolist()]
    denominator = lcm(*(each.denominator for each in exact))
    return [each.numerator * (denominator // each.denominator) for each in exact], denominator


def _solved(row: Numbers, cover: Cover) -> tuple[Values | None, Values]:
    """Weights of the parts, at most 1 in all for each slot, whose weighted sum is at least the row; and a direction.

    The simplex method scales the row up from 0, at most to twice itself; there are no weights if it does not reach 1.
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
    """Pivots until nothing is gained: by the largest gain, and late by Bland's rule, which never cycles."""
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
