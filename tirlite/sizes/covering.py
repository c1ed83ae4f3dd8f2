"""A sum with many unrelated dims in, a lower bound out: each negative term is covered by a positive one of its own.

That is how a slot in a row of many ends where the row ends, or before: the slot's term covers it, whatever the others
are. Each cover is a small proof about few dims, where a search through the whole sum would try all ways to bound all
of its terms together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tirlite.sizes.box import minimum_in_box
from tirlite.sizes.dim import Dim
from tirlite.sizes.evaluate import dims_of
from tirlite.sizes.poly import Product, Terms, of_terms

# A sum over more dims than this is looked at in this way.
MANY_DIMS = 2
# Of fewer terms none is left out of a cover.
_FEWEST = 3
# Covers that are tried, and negative terms of which the sum is sampled.
_TRIES, _SAMPLED = 64, 8
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
    dims = {product: frozenset(dims_of(of_terms({product: 1}))) for product in terms if product}
    free = sorted((product for product in dims if terms[product] > 0), key=lambda product: len(dims[product]))
    negative: dict[frozenset[Dim], list[Product]] = {}
    for product in dims:
        if terms[product] < 0:
            negative.setdefault(dims[product], []).append(product)
    tries = 0
    for over, needed in sorted(negative.items(), key=lambda each: sum(bool(each[0] & dims[p]) for p in free)):
        for cover in _covers([product for product in free if dims[product] & over], dims):
            tries += 1
            if tries > _TRIES or len(needed) + len(cover) == len(dims):
                return None
            found = bound({product: terms[product] for product in (*needed, *cover)})
            if found is not None and found >= 0:
                free = [product for product in free if product not in cover]
                break
        else:
            return None
    return terms.get((), 0) + (minimum_in_box({product: terms[product] for product in free}) or 0)


def _covers(free: list[Product], dims: Mapping[Product, frozenset[Dim]]) -> list[list[Product]]:
    """Each product alone, then all over the same dims together."""
    groups: dict[frozenset[Dim], list[Product]] = {}
    for product in free:
        groups.setdefault(dims[product], []).append(product)
    return [*([product] for product in free), *(group for group in groups.values() if len(group) > 1)]


def telling_bindings(terms: Terms) -> Iterator[Mapping[Dim, int]]:
    """Bindings at which one negative term each is large, and what is of other dims is small: there a sum is least."""
    dims = dims_of(of_terms(terms))
    negative = [product for product, coefficient in terms.items() if product and coefficient < 0]
    for product in negative[:_SAMPLED]:
        large = set(dims_of(of_terms({product: 1})))
        yield {dim: dim.nth(_LARGE if dim in large else 0) for dim in dims}
