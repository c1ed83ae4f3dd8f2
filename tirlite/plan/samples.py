"""Sample values: dims in, bindings out that obey the facts. They order sizes where no proof does, and prove nothing."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from tirlite.sizes import Dim

Binding = dict[Dim, int]

_NOMINAL = 256


def samples(dims: Iterable[Dim], count: int, more: int = 0) -> tuple[Binding, ...]:
    """`count` bindings: middling values first, then small ones, then others; the same ones in every process.

    Values are powers of two, with `more` on top, as far as the facts allow.
    """
    known = tuple(dims)
    if not known:
        return ({},)
    return tuple(
        {dim: _allowed(dim, _wish(number, place) + more) for place, dim in enumerate(known)} for number in range(count)
    )


def drawn(dims: Iterable[Dim], count: int) -> tuple[Binding, ...]:
    """`count` bindings drawn evenly from magnitudes up to 4096, as far as the facts allow; always the same ones."""
    random = Random(count)
    known = tuple(dims)
    return tuple({dim: _allowed(dim, int(2 ** (12 * random.random()))) for dim in known} for _ in range(count))


def _wish(number: int, place: int) -> int:
    """The value of the dim at `place` in sample `number`, before its facts are looked at."""
    if number < 2:
        return (_NOMINAL, 1)[number]
    # Powers of two up to 4096, scattered so that each pair of dims comes in either order.
    return 1 << (4 * number + 3 + 5 * place * number + 3 * place * place) % 13


def _allowed(dim: Dim, wish: int) -> int:
    """The value near `wish` that the facts allow."""
    step = dim.multiple_of
    value = max(wish if dim.max is None else min(wish, dim.max), dim.min)
    down = value // step * step
    return down if down >= dim.min else down + step
