"""Bounds a sum with many unrelated dims from below: each negative term is covered by a positive one of its own.

That is how a slot in a row of many ends where the row ends, or before: the slot's term covers it, whatever the others
are. Each cover is a small proof about few dims, where a search through the whole sum would try all ways to bound all
of its terms together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from tirlite.sizes.box import minimum_in_box
from tirlite.sizes.dim import Dim
from tirlite.sizes.evaluate import dims_of
from tirlite.sizes.poly import Product, Terms, of_terms

# A sum over more dims than this is looked at in this way.
MANY_DIMS = 2
# Of fewer terms none is left out of a cover.
_FEWEST = 3
# Covers that may turn out to be none, and negative terms of which the sum is sampled.
_FAILURES, _SAMPLED = 64, 8
_LARGE = 1000

# A lower bound of a sum that reaches 0 if one is found that does.
Bound = Callable[[Terms], "int | None"]


def covered_minimum(terms: Terms, bound: Bound) -> int | None:
    """A number that the sum never falls below, or None where some negative term is not seen to be covered.

    Negative terms over the same dims are covered together, by one term or by all that are over the same dims: of
    `round_up(96 * n, 64)` there are two, `64 * n` and `64 * ((n + 1) // 2)`.
    """
    if sum(map(bool, terms)) < _FEWEST or any(not atom.bounds.nonnegative for product in terms for atom in product):
        return None
    dims = {product: dims_of(of_terms({product: 1})) for product in terms if product}
    free = _Free({product: over for product, over in dims.items() if terms[product] > 0})
    negative: dict[tuple[Dim, ...], list[Product]] = {}
    for product in dims:
        if terms[product] < 0:
            negative.setdefault(dims[product], []).append(product)
    failures = 0
    for over, needed in sorted(negative.items(), key=lambda each: len(free.meeting(each[0]))):
        for cover in free.covers(over):
            if failures > _FAILURES or len(needed) + len(cover) == len(dims):
                return None
            found = bound({product: terms[product] for product in (*needed, *cover)})
            if found is not None and found >= 0:
                free.take(cover)
                break
            failures += 1
        else:
            return None
    return terms.get((), 0) + (minimum_in_box({product: terms[product] for product in free.products}) or 0)


class _Free:
    """Positive terms that cover nothing yet, those over the fewest dims first."""

    def __init__(self, dims: Mapping[Product, tuple[Dim, ...]]) -> None:
        self._dims = dims
        self.products = {product: place for place, product in enumerate(sorted(dims, key=lambda each: len(dims[each])))}
        self._over: dict[Dim, list[Product]] = {}
        for product in self.products:
            for dim in dims[product]:
                self._over.setdefault(dim, []).append(product)

    def meeting(self, over: tuple[Dim, ...]) -> list[Product]:
        """The terms that have some of these dims."""
        found = {product for dim in over for product in self._over.get(dim, ()) if product in self.products}
        return sorted(found, key=self.products.__getitem__)

    def covers(self, over: tuple[Dim, ...]) -> list[list[Product]]:
        """What may cover a term over these dims: each term that meets it, then all of those over the same dims."""
        found = self.meeting(over)
        groups: dict[tuple[Dim, ...], list[Product]] = {}
        for product in found:
            groups.setdefault(self._dims[product], []).append(product)
        return [*([product] for product in found), *(group for group in groups.values() if len(group) > 1)]

    def take(self, cover: Sequence[Product]) -> None:
        for product in cover:
            del self.products[product]


def telling_bindings(terms: Terms) -> Iterator[Mapping[Dim, int]]:
    """Bindings at which one negative term each is large, and what is of other dims is small: there a sum is least."""
    dims = dims_of(of_terms(terms))
    negative = [product for product, coefficient in terms.items() if product and coefficient < 0]
    for product in negative[:_SAMPLED]:
        large = set(dims_of(of_terms({product: 1})))
        yield {dim: dim.nth(_LARGE if dim in large else 0) for dim in dims}
