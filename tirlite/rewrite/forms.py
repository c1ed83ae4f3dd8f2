"""The versions of a function, and the calls that each serves, by the bytes of their arrays."""

from __future__ import annotations

from enum import Enum

from tirlite.ir import i64
from tirlite.record import record

# As many elements as no array has.
NEVER = 1 << 48


class Form(Enum):
    """The versions of a function.

    The usual one leaves calls that break its conditions on accesses to the one that runs `IN_ORDER`, as it is written,
    and may leave those with large arrays to the `LARGE` one, which is transformed more, and those with small ones to
    the `SMALL` one, which is transformed less. A version `ALONE`, in a program in C, checks what is not proved where it
    is accessed, and serves arrays of all sizes.
    """

    USUAL = "usual"
    ALONE = "alone"
    IN_ORDER = "in order"
    LARGE = "large arrays"
    SMALL = "small arrays"


@record
class Limits:
    """The total bytes of arrays below which a call is for the version `SMALL`, and from which on for `LARGE`.

    0 if there is no such version.
    """

    small_below: int = 0
    large_from: int = 0

    def form(self, size: int) -> Form:
        """The version for a call whose arrays take this many bytes in all."""
        if size < self.small_below:
            return Form.SMALL
        return Form.LARGE if 0 < self.large_from <= size else Form.USUAL

    def beside(self, other: Limits) -> Limits:
        """Those of both, for calls that either would serve."""
        least = min(filter(None, (self.large_from, other.large_from)), default=0)
        return Limits(min(filter(None, (self.small_below, other.small_below)), default=0), least)

    def each(self) -> list[Limits]:
        """Each limit by itself, if there is one."""
        found = [Limits(small_below=self.small_below)] if self.small_below else []
        return [*found, Limits(large_from=self.large_from)] if self.large_from else found

    def sizes(self, form: Form) -> tuple[int, int]:
        """The least and the most bytes of all arrays that a version is for."""
        if form is Form.SMALL:
            return 0, self.small_below - 1
        if form is Form.LARGE:
            return self.large_from, i64.max
        return self.small_below, self.large_from - 1 if self.large_from else i64.max
