"""Sample values: dims in, bindings out that obey the facts. They order sizes where no proof does, and prove nothing."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from tirlite.sizes import Dim

Binding = dict[Dim, int]

_NOMINAL = 256


def samples(dims: Iterable[Dim], count: int) -> tuple[Binding, ...]:
    """`count` bindings: middling values first, then small ones, then others; the same ones in every process."""
    known = tuple(dims)
    if not known:
        return ({},)
    random = Random(count)
    bindings = [{dim: _allowed(dim, _NOMINAL) for dim in known}, {dim: _allowed(dim, 1) for dim in known}]
    while len(bindings) < count:
        bindings.append({dim: _allowed(dim, 1 << random.randrange(13)) for dim in known})
    return tuple(bindings[:count])


def _allowed(dim: Dim, wish: int) -> int:
    """The value near `wish` that the facts allow."""
    step = dim.multiple_of
    value = max(wish if dim.max is None else min(wish, dim.max), dim.min)
    down = value // step * step
    return down if down >= dim.min else down + step
