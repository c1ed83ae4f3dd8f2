"""An instance in; orders of preference among its buffers out, in the order in which to try them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from tirlite.plan.search.instance import Instance

_SPREAD = 0.4


def orders(instance: Instance) -> list[list[int]]:
    """Orders that put forward what is hard to place: large, long-lived, or in a crowded section."""
    return [_sorted(instance, key) for key in _keys(instance)]


def varied(instance: Instance, seed: int) -> list[int]:
    """One of those orders, disturbed; the same for the same seed."""
    random = Random(seed)
    keys = _keys(instance)
    key = keys[seed % len(keys)]
    weights = [random.uniform(1 - _SPREAD, 1) for _ in instance.sizes]
    return _sorted(instance, lambda c: tuple(part * weights[c] for part in key(c)))


def _keys(instance: Instance) -> Sequence[Callable[[int], tuple[float, ...]]]:
    sizes, widths = instance.sizes, instance.widths
    spans = [last - first for first, last in instance.spans]
    crowds = [0] * len(sizes)
    for section in instance.sections:
        total = sum(sizes[c] for c in section)
        for c in section:
            crowds[c] = max(crowds[c], total)
    return (
        lambda c: (sizes[c] * widths[c],),
        lambda c: (widths[c],),
        lambda c: (sizes[c] * spans[c],),
        lambda c: (crowds[c], spans[c]),
        lambda c: (sizes[c],),
        lambda c: (spans[c],),
        lambda c: (crowds[c], sizes[c]),
    )


def _sorted(instance: Instance, key: Callable[[int], tuple[float, ...]]) -> list[int]:
    return sorted(range(len(instance.sizes)), key=lambda c: (*(-part for part in key(c)), c))
