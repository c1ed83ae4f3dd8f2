"""Finds a lower bound of a sum over factors by telling apart which of two factors is the greater one.

`n*n - 2*n*m + m*m` falls and rises with either factor; with `n = m + d` it is `d*d`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import TypeVar

from tirlite.record import record
from tirlite.sizes.bounds import Bounds
from tirlite.sizes.box import minimum_in_box
from tirlite.sizes.terms import Factor, replace

F = TypeVar("F", bound=Factor)

# Pairs of factors that are looked at.
_MOST_PAIRS = 3


@record
class _Distance(Factor):
    """How far the greater of two factors is from the other one."""

    ident: int = -1
    divisor: int = 1
    bounds: Bounds = Bounds(0, None)


def minimum_by_order(terms: Mapping[tuple[F, ...], int]) -> int | None:
    """A number that the sum never falls below, or None. Looks at pairs whose product counts against their squares."""
    best: int | None = None
    for pair, _ in zip(_pairs(terms), range(_MOST_PAIRS), strict=False):
        found = [_with_greater(terms, *pair), _with_greater(terms, *reversed(pair))]
        values = [value for value in found if value is not None]
        if len(values) == len(found):
            best = min(values) if best is None else max(best, min(values))
    return best


def _pairs(terms: Mapping[tuple[F, ...], int]) -> Iterator[tuple[F, F]]:
    squared = {factor for product, c in terms.items() if c > 0 for factor in product if product.count(factor) > 1}
    met: set[tuple[F, F]] = set()
    for product, coefficient in terms.items():
        if coefficient < 0:
            for pair in combinations(dict.fromkeys(factor for factor in product if factor in squared), 2):
                if pair not in met:
                    met.add(pair)
                    yield pair


def _with_greater(terms: Mapping[tuple[F, ...], int], greater: F, less: F) -> int | None:
    widened: dict[tuple[Factor, ...], int] = {(*product,): coefficient for product, coefficient in terms.items()}
    return minimum_in_box(replace(widened, {greater: {(less,): 1, (_Distance(),): 1}}))
