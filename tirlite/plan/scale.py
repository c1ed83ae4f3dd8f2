"""Counts symbolic sizes in a unit of which all are constant multiples: that makes a problem one of numbers."""

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
    """A unit of `unit` bytes in which sizes are counted; `power` is a power of two that is proved to divide it."""

    unit: Size
    power: int

    @classmethod
    def of(cls, sizes: Iterable[Size], align: int) -> Scale | None:
        """The unit of all sizes; bytes where they are constant, None where there is none. Alignments go up to `align`.

        A problem of such sizes is the same at all values of the dims, but for its scale: in a tight plan each offset is
        a sum of sizes.
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
        """A size in units; None where that depends on the dims."""
        if isinstance(size, int):
            return size if self.unit == 1 else None if size else 0
        factor = gcd(*size.terms.values())
        return factor if size == factor * self.unit else None

    def align(self, align: int) -> int:
        """An alignment in units: all multiples of it are aligned, though others may be as well."""
        return max(1, align // self.power)
