"""Sizes of axes and ranges of loops, with what is needed to see that an index is in bounds."""

from __future__ import annotations

from dataclasses import dataclass

from tirlite.ir import Expr, Var, const, i64

# What stands in for a size that is not known.
USUAL_SIZE = 3


@dataclass(frozen=True)
class Extent:
    """`scale * base + plus`, or just `plus`. The base is a dim, or the variable of a loop around."""

    base: Var | None
    scale: int
    plus: int

    @property
    def expr(self) -> Expr:
        if self.base is None:
            return const(self.plus, i64)
        scaled: Expr = self.base if self.scale == 1 else self.base * self.scale
        return scaled if self.plus == 0 else scaled + self.plus

    @property
    def least(self) -> int:
        """The least value that it has for any binding."""
        if self.base is None:
            return self.plus
        low = 0 if self.base.dim is None else self.base.dim.low
        return self.scale * low + self.plus

    def value(self, sizes: dict[Var, int]) -> int:
        """The value for one binding; the variables of loops count as `USUAL_SIZE`."""
        return self.plus if self.base is None else self.scale * sizes.get(self.base, USUAL_SIZE) + self.plus

    def fits(self, other: Extent, spare: int = 0) -> bool:
        """Whether `self + spare <= other` for all bindings."""
        if self.base is None:
            return self.plus + spare <= other.least
        return self.base is other.base and self.scale == other.scale and self.plus + spare <= other.plus


def constant(value: int) -> Extent:
    return Extent(None, 0, value)


@dataclass(frozen=True)
class Counter:
    """A loop variable that runs from `low` to below `extent - high`."""

    var: Var
    extent: Extent
    low: int = 0
    high: int = 0

    def reaches(self, shift: int, axis: Extent) -> bool:
        """Whether `var + shift` is an index of `axis` for all iterations and bindings."""
        return shift + self.low >= 0 and self.extent.fits(axis, shift - self.high)

    def shows_nonempty(self, axis: Extent) -> bool:
        """Whether an axis has an element, as this loop has an iteration."""
        return self.extent.fits(axis, -self.high - self.low)
