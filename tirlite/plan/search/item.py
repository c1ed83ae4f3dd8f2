"""A buffer as the search sees it: bytes, alignment, and when it lives. Also what it fills while another one lives."""

from __future__ import annotations

from tirlite.plan.request import Interval
from tirlite.record import record


@record
class Item:
    """A buffer: bytes, a power of two that divides its offset, its offset if that is given, and when it lives.

    Where it does not fill its `size` all the time, `pieces` are what it fills in each stretch of its life.
    """

    size: int
    align: int
    fixed: int | None
    live: tuple[Interval, ...]
    pieces: tuple[tuple[Interval, int], ...] = ()

    @property
    def stretches(self) -> tuple[tuple[Interval, int], ...]:
        """What it fills in each stretch of its life."""
        return self.pieces or tuple([(span, self.size) for span in self.live])

    def beside(self, other: Item) -> int:
        """The most that it fills while the other one lives and fills anything."""
        if not self.pieces:
            return self.size
        return max(
            size
            for (low, high), size in self.stretches
            if any(low < end and begin < high for (begin, end), filled in other.stretches if filled)
        )


def up(size: int, step: int) -> int:
    """The least multiple of `step` that is no less."""
    return -(-size // step) * step
