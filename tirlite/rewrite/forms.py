"""The versions of a function, and the calls that each serves, by the bytes of their arrays."""

from __future__ import annotations

from enum import Enum

from tirlite.ir import i64
from tirlite.record import record

# More elements than any array has.
NEVER = 1 << 48


class Form(Enum):
    """The versions of a function.

    USUAL serves most calls. It leaves calls that fail its conditions on accesses to IN_ORDER, which runs as written,
    and may leave large arrays to LARGE, which is transformed more, and small ones to SMALL, which is transformed less.
    ALONE, in a C program, serves arrays of all sizes and checks in place what is not proved.
    """

    USUAL = "usual"
    ALONE = "alone"
    IN_ORDER = "in order"
    LARGE = "large arrays"
    SMALL = "small arrays"


@record
class FormLimits:
    """The total bytes of arrays below which a call is for the version SMALL, and from which on for LARGE; 0: none."""

    small_below: int = 0
    large_from: int = 0

    def form(self, size: int) -> Form:
        """The version for a call whose arrays take this many bytes in all."""
        if size < self.small_below:
            return Form.SMALL
        return Form.LARGE if 0 < self.large_from <= size else Form.USUAL

    def beside(self, other: FormLimits) -> FormLimits:
        """The limits of both together: the lower one of each kind."""
        least = min(filter(None, (self.large_from, other.large_from)), default=0)
        return FormLimits(min(filter(None, (self.small_below, other.small_below)), default=0), least)

    def each(self) -> list[FormLimits]:
        """Each limit by itself, if there is one."""
        found = [FormLimits(small_below=self.small_below)] if self.small_below else []
        return [*found, FormLimits(large_from=self.large_from)] if self.large_from else found

    def sizes(self, form: Form) -> tuple[int, int]:
        """The least and the most total bytes that a version is for."""
        if form is Form.SMALL:
            return 0, self.small_below - 1
        if form is Form.LARGE:
            return self.large_from, i64.max
        return self.small_below, self.large_from - 1 if self.large_from else i64.max
