"""Finds the part of a buffer that one iteration of a loop uses, as ranges that move with the loop, and copies it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tirlite.analysis.facts import Facts
from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.ir import Buffer, Expr, For, Load, Max, Min, Mul, SeqStmt, Store, Sub, Var, const, i64
from tirlite.ir.stmt import nested
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded, shifted
from tirlite.sizes import Size, lower_bound, upper_bound
from tirlite.sizes.extrema import Maximum, Minimum
from tirlite.sizes.unknown import ends, terms_in, unknowns_in

# Nested `min` and `max`, as of clamped indices, are analysed up to this depth.
_DEEPEST = 4
# The largest factor between an index and a loop's variable that still counts as a window.
_MOST_AHEAD = 8
# A window this wide is none: it comes from an unknown 32-bit index.
_ANYWHERE = 1 << 31


@record
class IndexRange:
    """The indices used along an axis: `factor * base + low` to `factor * base + high`; `base` is a loop's variable."""

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
        """The index after the last."""
        return shifted(self._base, self.high + 1)

    @property
    def _base(self) -> Expr:
        return self.base if self.factor == 1 else Mul(self.base, const(self.factor, i64))

    @property
    def extent(self) -> int:
        return self.high - self.low + 1

    def place(self, index: Expr) -> Expr:
        """The position of an index, which may have a narrower type, in the window."""
        return folded(Sub(index.astype(i64), self.begin))


@record(eq=False)
class CachedRegion:
    """A part of a buffer and the copy of it: along each axis a window, or the whole axis if None."""

    buffer: Buffer
    ranges: tuple[IndexRange | None, ...]
    cached: Buffer

    def ends(self, axis: int) -> tuple[Expr, Expr]:
        """The first index of the part along an axis and the one after the last, clipped to the buffer."""
        found, extent, none = self.ranges[axis], self.buffer.shape[axis], const(0, i64)
        return (none, extent) if found is None else (Max(found.begin, none), Min(found.end, extent))

    def moved(self, node: Load | Store) -> Load | Store:
        """An access to the buffer redirected to the copy; an access to another buffer unchanged."""
        if node.buffer is not self.buffer:
            return node
        return node.replaced(buffer=self.cached, indices=self._within(node.indices))

    def loaded(self) -> SeqStmt:
        """The loops that load the copy's elements that exist in the buffer."""
        places = self._places("")
        return self._over(places, Store(self.cached, self._within(places), Load(self.buffer, places)))

    def stored(self) -> SeqStmt:
        """The loops that store these elements back."""
        places = self._places(".stored")
        return self._over(places, Store(self.buffer, places, Load(self.cached, self._within(places))))

    def _within(self, indices: Iterable[Expr]) -> tuple[Expr, ...]:
        """The indices of an element in the copy."""
        pairs = zip(indices, self.ranges, strict=True)
        return tuple(index if found is None else found.place(index) for index, found in pairs)

    def _places(self, suffix: str) -> tuple[Var, ...]:
        return tuple(Var(f"{self.buffer.name}.axis{axis}{suffix}") for axis in range(len(self.ranges)))

    def _over(self, places: Sequence[Var], store: Store) -> SeqStmt:
        return nested([For(place, *self.ends(axis), SeqStmt()) for axis, place in enumerate(places)], store)


def cached_region(
    facts: Facts, buffer: Buffer, accesses: Iterable[Load | Store], around: Sequence[For]
) -> CachedRegion:
    """The part of a buffer that contains all of these accesses in any one iteration of the loops around."""
    indices = [facts.addresses.of(node).indices for node in accesses]
    ranges = [index_range([each[axis] for each in indices], around, facts.space) for axis in range(len(buffer.shape))]
    extents = (
        extent if found is None else const(found.extent, i64)
        for extent, found in zip(buffer.shape, ranges, strict=True)
    )
    return CachedRegion(buffer, (*ranges,), Buffer(f"{buffer.name}.cached", buffer.dtype, tuple(extents)))


def index_range(indices: Iterable[Size], around: Sequence[For], space: IndexSpace) -> IndexRange | None:
    """The window of indices relative to the innermost loop around for which there is one; None if there is none.

    A loop is skipped unless all indices depend on its variable: an index read from memory may be anywhere.
    """
    found = [*indices]
    for loop in reversed(around):
        base = space.size(loop.var)
        counters = {*unknowns_in(base)}
        if not all(counters & {*unknowns_in(index)} for index in found):
            continue
        factor = _factor(found, base)
        spans = [_span(index - factor * base, _DEEPEST) for index in found]
        lows = [low for low, _ in spans if low is not None]
        highs = [high for _, high in spans if high is not None]
        if found and len(lows) == len(highs) == len(found) and max(highs) - min(lows) < _ANYWHERE:
            return IndexRange(loop.var, min(lows), max(highs), factor)
    return None


def _factor(indices: list[Size], base: Size) -> int:
    """How much the indices grow when the loop's variable grows by one."""
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
    """Constant lower and upper bounds of a size, if known."""
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
