"""Finds which part of a buffer one iteration of a loop reads: so many elements from a loop's variable on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.ir import Expr, For, Mul, Var, const, i64
from tirlite.record import record
from tirlite.rewrite.affine_exprs import shifted
from tirlite.sizes import Size, lower_bound, upper_bound
from tirlite.sizes.extrema import Maximum, Minimum
from tirlite.sizes.unknown import ends, terms_in

# So many extrema are looked into, one inside of another, as those of indices that are clamped.
_DEEPEST = 4
# What is read so far ahead is read here and there.
_MOST_AHEAD = 8
# Elements along an axis: as many as an array can have.
MOST_ELEMENTS = 1 << 47


@record
class Window:
    """All indices along an axis: from `factor * base + low` to `high` behind that, of the variable of a loop around."""

    base: Var
    low: int
    high: int
    factor: int = 1

    @property
    def begin(self) -> Expr:
        """The first index."""
        return shifted(self._base, self.low)

    @property
    def end(self) -> Expr:
        """What comes behind the last index."""
        return shifted(self._base, self.high + 1)

    @property
    def _base(self) -> Expr:
        return self.base if self.factor == 1 else Mul(self.base, const(self.factor, i64))

    @property
    def extent(self) -> int:
        return self.high - self.low + 1


def window(indices: Iterable[Size], around: Sequence[For], space: IndexSpace) -> Window | None:
    """Where indices lie, by the innermost of the loops around that tells it; None where none does."""
    found = [*indices]
    for loop in reversed(around):
        base = space.size(loop.var)
        factor = _factor(found, base)
        spans = [_span(index - factor * base, _DEEPEST) for index in found]
        lows = [low for low, _ in spans if low is not None]
        highs = [high for _, high in spans if high is not None]
        if found and len(lows) == len(highs) == len(found):
            return Window(loop.var, min(lows), max(highs), factor)
    return None


def _factor(indices: list[Size], base: Size) -> int:
    """How far indices go on where the loop's variable goes on by one."""
    counters = terms_in(base)
    for index in indices:
        terms = terms_in(index)
        for counter, step in counters.items():
            ahead = terms.get(counter)
            if (
                isinstance(ahead, int)
                and isinstance(step, int)
                and 0 < ahead <= _MOST_AHEAD * step
                and ahead % step == 0
            ):
                return ahead // step
    return 1


def _span(size: Size, levels: int) -> tuple[int | None, int | None]:
    """Numbers that a size never falls below, and never exceeds."""
    extremum = next((atom for atom in terms_in(size) if isinstance(atom, Maximum | Minimum)), None)
    factor = None if extremum is None else terms_in(size)[extremum]
    if extremum is None or factor not in (1, -1) or not levels:
        low, high = ends(size)
        return None if low is None else lower_bound(low), None if high is None else upper_bound(high)
    spans = [_span(size + factor * (each - extremum), levels - 1) for each in extremum.sizes]
    lows, highs = zip(*spans, strict=True)
    if isinstance(extremum, Maximum) is (factor == 1):
        return max(_known(lows), default=None), None if None in highs else max(_known(highs))
    return None if None in lows else min(_known(lows)), min(_known(highs), default=None)


def _known(numbers: Iterable[int | None]) -> list[int]:
    return [each for each in numbers if each is not None]
