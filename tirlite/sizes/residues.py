"""Finds the remainders of a dim for which a condition holds, if it depends on these alone.

Windows on windows ask for `2*((h + 31)//32) == (h + 15)//16`. Both sides rise by 2 where h rises by 32, so that it
holds for h where it holds for h + 32: where `h % 32 == 0 or 17 <= h % 32`.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd, lcm

from tirlite.record import record
from tirlite.sizes.dim import Dim
from tirlite.sizes.evaluate import dims_of, evaluate
from tirlite.sizes.poly import Quotient, Remainder, Size, terms_of

# Conditions of longer periods are not looked at: each remainder is tried.
_LONGEST = 1024
# More ranges of remainders than these say less than the sizes do.
_MOST_RANGES = 4


@record
class Residues:
    """The remainders of `dim` by `modulus`, of those that its facts allow, for which a condition holds, in order."""

    dim: Dim
    modulus: int
    holds: tuple[int, ...]

    @property
    def possible(self) -> range:
        """The remainders that the facts of the dim allow."""
        return range(0, self.modulus, gcd(self.dim.multiple_of, self.modulus))

    @property
    def step(self) -> int | None:
        """What the dim must be a multiple of, where that says the same."""
        step = self.modulus // max(len(self.holds), 1)
        return step if self.holds == tuple(range(0, self.modulus, step)) else None

    def implies(self, other: Residues) -> bool:
        """Whether the other one holds wherever this one does; they are of one dim, whose facts may differ."""
        period, mine, theirs = lcm(self.modulus, other.modulus), frozenset(self.holds), frozenset(other.holds)
        return all(each % other.modulus in theirs for each in range(period) if each % self.modulus in mine)

    def __str__(self) -> str:
        """The condition, as Python writes it; empty where that is long."""
        if self.step is not None:
            return f"{self.dim} % {self.step} == 0"
        rest, places = f"{self.dim} % {self.modulus}", {each: at for at, each in enumerate(self.possible)}
        ranges: list[list[int]] = []
        for each in self.holds:
            if ranges and places[each] == places[ranges[-1][-1]] + 1:
                ranges[-1].append(each)
            else:
                ranges.append([each])
        shown = [self._range(rest, each[0], each[-1]) for each in ranges]
        return " or ".join(shown) if len(shown) <= _MOST_RANGES else ""

    def _range(self, rest: str, low: int, high: int) -> str:
        if low == high:
            return f"{rest} == {low}"
        least = f"{low} <= " if low > self.possible[0] else ""
        return f"{least}{rest}" + (f" <= {high}" if high < self.possible[-1] else "")


def residues_where_0(size: Size) -> Residues | None:
    """The remainders at which a size is 0; None where that does not depend on remainders of one dim alone."""
    dims, found = dims_of(size), _period(size)
    if len(dims) != 1 or found is None or found[1] != 0 or found[0] > _LONGEST:
        return None
    possible = Residues(dims[0], found[0], ()).possible
    return Residues(dims[0], found[0], tuple(each for each in possible if evaluate(size, {dims[0]: each}) == 0))


def _period(size: Size) -> tuple[int, Fraction] | None:
    """The period of a size in its dim, and its mean rate of change; None where there is none."""
    period, rate = 1, Fraction(0)
    for product, factor in terms_of(size).items():
        if not product:
            continue
        if len(product) > 1:
            return None
        (atom,) = product
        if isinstance(atom, Dim):
            rate += factor
            continue
        by = atom.operands[1] if isinstance(atom, Quotient | Remainder) else None
        inner = _period(atom.operands[0]) if isinstance(by, int) and by > 0 else None
        if inner is None or not isinstance(by, int):
            return None
        period = lcm(period, inner[0] * by // gcd(int(inner[0] * inner[1]), by))
        rate += factor * inner[1] / by if isinstance(atom, Quotient) else 0
    return period, rate
