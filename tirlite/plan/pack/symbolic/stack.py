"""Stacks symbolic blocks in an order, at offsets that hold for all values of the dims.

Each block rests on those before it in the order that live when it does: its offset is the largest of their ends. So any
order makes a safe plan, and only what it costs depends on the dims.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tirlite.plan.order import Order
from tirlite.record import record
from tirlite.sizes import Size, maximum, round_up

# Sizes of which an offset is the maximum; an order that needs more is given up.
_WIDE = 12

# The maximum of some sizes, none of which is proved to be at most another.
Height = tuple[Size, ...]


class Bytes(NamedTuple):
    """A stretch of sections [low, high) in which a block fills so many bytes."""

    low: int
    high: int
    size: Size


@record
class Tower:
    """A block of symbolic sizes, over sections."""

    spans: tuple[Bytes, ...]
    align: int


@record
class Stack:
    """The offset of each tower, and the bytes of all."""

    offsets: tuple[Size, ...]
    total: Size


def stack(towers: Sequence[Tower], count: int, order: Iterable[int], compare: Order) -> Stack | None:
    """The towers over `count` sections, stacked in an order; None where some offset depends on too many sizes."""
    tops: list[tuple[int, Size] | None] = [None] * count
    ends: dict[tuple[int, Size], Height] = {}
    offsets: list[Height] = [(0,)] * len(towers)
    for number in order:
        tower = towers[number]
        below = dict.fromkeys(top for low, high, _ in tower.spans for top in tops[low:high] if top is not None)
        height = _highest((size for top in below for size in ends[top]), compare)
        if tower.align > 1:
            height = _highest((round_up(size, tower.align) for size in height), compare)
        if len(height) > _WIDE:
            return None
        offsets[number] = height or (0,)
        for low, high, size in tower.spans:
            ends[number, size] = tuple(offset + size for offset in offsets[number])
            tops[low:high] = [(number, size)] * (high - low)
    total = _highest((size for top in dict.fromkeys(tops) if top is not None for size in ends[top]), compare)
    if len(total) > _WIDE:
        return None
    return Stack(tuple(_size(height) for height in offsets), _size(total or (0,)))


def _size(height: Height) -> Size:
    return height[0] if len(height) == 1 else maximum(*height)


def _highest(sizes: Iterable[Size], compare: Order) -> Height:
    """The sizes that are not proved to be at most another one, the largest at middling values first."""
    kept: list[Size] = []
    for size in sorted(dict.fromkeys(sizes), key=compare.values, reverse=True):
        if not any(compare.fits(size, other) for other in kept):
            kept = [other for other in kept if not compare.fits(other, size)]
            kept.append(size)
    return tuple(kept)
