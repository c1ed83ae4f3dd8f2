"""Intervals of integers: the rough bounds of a size."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.record import record


@record
class Bounds:
    """`low <= value <= high`, where None means that no bound is known."""

    low: int | None = None
    high: int | None = None

    @property
    def width(self) -> int | None:
        """How far apart the ends are."""
        return None if self.low is None or self.high is None else self.high - self.low

    @property
    def nonnegative(self) -> bool:
        return self.low is not None and self.low >= 0

    @property
    def positive(self) -> bool:
        return self.low is not None and self.low >= 1

    def __neg__(self) -> Bounds:
        return Bounds(None if self.high is None else -self.high, None if self.low is None else -self.low)


def of_maximum(operands: Sequence[Bounds]) -> Bounds:
    """The bounds of the greatest of several values: one low end is enough, all high ends are needed."""
    low = max((bounds.low for bounds in operands if bounds.low is not None), default=None)
    highs = [bounds.high for bounds in operands if bounds.high is not None]
    return Bounds(low, max(highs) if len(highs) == len(operands) else None)


def of_minimum(operands: Sequence[Bounds]) -> Bounds:
    """The bounds of the least of several values."""
    return -of_maximum([-bounds for bounds in operands])


def of_quotient(x: Bounds, y: Bounds) -> Bounds:
    """The bounds of `x // y`; nothing is known unless `y` is positive."""
    if y.low is None or y.low < 1:
        return Bounds()
    low = high = None
    if x.low is not None:
        # A greater divisor brings the quotient nearer to 0, or to -1 from below.
        divisor = y.low if x.low < 0 else y.high
        low = 0 if divisor is None else x.low // divisor
    if x.high is not None:
        divisor = y.high if x.high < 0 else y.low
        high = -1 if divisor is None else x.high // divisor
    return Bounds(low, high)


def of_remainder(x: Bounds, y: Bounds, step: int) -> Bounds:
    """The bounds of `x % y` where `step` divides both; nothing is known unless `y` is positive."""
    if y.low is None or y.low < 1:
        return Bounds()
    highs = [y.high - step] if y.high is not None else []
    if x.low is not None and x.low >= 0 and x.high is not None:
        highs.append(x.high)
    return Bounds(0, min(highs, default=None))
