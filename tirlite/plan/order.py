"""Compares sizes by proofs, and by values at sample bindings of the dims, which prove nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from tirlite.sizes import Dim, Size
from tirlite.sizes.evaluate import Evaluated
from tirlite.sizes.prove import is_at_most


class SizeOrder:
    """Compares sizes by their values at sample bindings, a guess for symbolic ones, and by proofs.

    With a `budget`, a search for a proof ends sooner.
    """

    def __init__(self, bindings: Sequence[Binding], budget: int | None = None) -> None:
        self._bindings = bindings
        self._budget = budget
        self._values: dict[Size, tuple[int, ...]] = {}
        self._evaluated = Evaluated(bindings)
        self._proofs: dict[tuple[Size, Size], bool] = {}

    def value(self, size: Size) -> int:
        """Bytes at the first binding, where the dims have middling values."""
        return size if isinstance(size, int) else self.values(size)[0]

    def values(self, size: Size) -> tuple[int, ...]:
        """Bytes at each binding."""
        if isinstance(size, int):
            return (size,) * len(self._bindings)
        if size not in self._values:
            self._values[size] = self._evaluated.values(size)
        return self._values[size]

    def fits(self, small: Size, large: Size) -> bool:
        """Whether `small` is at most `large`, proved for all values of the dims."""
        if isinstance(small, int) and isinstance(large, int):
            return small <= large
        pair = (small, large)
        if pair not in self._proofs:
            # A proof for all values cannot exist where a sample speaks against it.
            possible = all(a <= b for a, b in zip(self.values(small), self.values(large), strict=True))
            self._proofs[pair] = possible and is_at_most(small, large, self._budget)
        return self._proofs[pair]


Binding = dict[Dim, int]

_NOMINAL = 256


def samples(dims: Iterable[Dim], count: int, more: int = 0) -> tuple[Binding, ...]:
    """`count` bindings: middling values, the smallest ones, then others; the same in every process.

    Values are powers of two plus `more`, as far as the facts allow.
    """
    known = tuple(dims)
    if not known:
        return ({},)
    return tuple(
        {dim: _allowed(dim, _wish(number, place) + more) for place, dim in enumerate(known)} for number in range(count)
    )


def drawn(dims: Iterable[Dim], count: int, most: int = 4096) -> tuple[Binding, ...]:
    """`count` bindings drawn log-uniformly up to `most`, as far as the facts allow; always the same ones."""
    random = Random(count)
    known = tuple(dims)
    return tuple({dim: _allowed(dim, int(most ** random.random())) for dim in known} for _ in range(count))


def _wish(number: int, place: int) -> int:
    """The value of the dim at `place` in sample `number`, whatever its facts."""
    if number < 2:
        return (_NOMINAL, 1)[number]
    # Powers of two up to 4096, scattered so that each pair of dims comes in either order.
    return 1 << (4 * number + 3 + 5 * place * number + 3 * place * place) % 13


def _allowed(dim: Dim, wish: int) -> int:
    """A value near `wish` that the facts allow."""
    step = dim.multiple_of
    value = max(wish if dim.max is None else min(wish, dim.max), dim.min)
    down = value // step * step
    return down if down >= dim.min else down + step
