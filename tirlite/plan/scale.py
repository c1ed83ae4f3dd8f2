"""Finds the size that all sizes are constant multiples of, and how many times each is that: a problem in numbers."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from tirlite.record import record
from tirlite.sizes import Proof, Size, prove_divides


def unit_of(sizes: Iterable[Size]) -> Size | None:
    """The symbolic size that all sizes are constant multiples of, None if there is none."""
    unit: Size | None = None
    for size in dict.fromkeys(sizes):
        if isinstance(size, int):
            if size:
                return None
            continue
        one = size // gcd(*size.terms.values())
        if unit is None:
            unit = one
        elif one != unit:
            return None
    return unit


@record
class Scale:
    """Sizes counted in units of `unit` bytes; `power` is a power of two that is proved to divide it."""

    unit: Size
    power: int

    @classmethod
    def of(cls, sizes: Iterable[Size], align: int) -> Scale | None:
        """That of all sizes; bytes where they are constant. Alignments up to `align` matter. None where there is none.

        At every value of the dims a problem of such sizes is the same problem, only larger: offsets may all be sums of
        sizes, as a buffer that rests on nothing can be lowered.
        """
        known = list(dict.fromkeys(sizes))
        if all(isinstance(size, int) for size in known):
            return cls(1, 1)
        unit = unit_of(known)
        if unit is None:
            return None
        power = 1
        while power < align and prove_divides(2 * power, unit) is Proof.YES:
            power *= 2
        return cls(unit, power)

    def count(self, size: Size) -> int | None:
        """How many units a size is; None where that depends on the dims."""
        if isinstance(size, int):
            return size if self.unit == 1 else None if size else 0
        factor = gcd(*size.terms.values())
        return factor if size == factor * self.unit else None

    def align(self, align: int) -> int:
        """An alignment in units: offsets that are multiples of it are aligned, and others may be too."""
        return max(1, align // self.power)
