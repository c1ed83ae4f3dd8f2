"""Rewrites the sizes of an operator's tensors over dims that are bound: each is an extent by itself somewhere.

A function binds its dims by the extents of its arguments, and only an extent that is a dim by itself binds it. Where
`x` is `f32[n + 1]` and no other tensor has the extent n, the operator's function gets a dim for n + 1, and n is that
dim less 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from tirlite.graph.extents import is_equal
from tirlite.sizes import Dim, Size, dims_of, lower_bound, substitute
from tirlite.sizes.poly import terms_of

# A size is found as a sum or difference of at most this many extents.
_MOST_EXTENTS = 3


class PlainDims:
    """The rewriting for one operator. `extents` are all that its operands and results have."""

    def __init__(self, extents: Iterable[Size]) -> None:
        self._solved: dict[Dim, Size] = {}
        self._whole: list[tuple[Size, Dim]] = []
        given = list(dict.fromkeys(extents))
        bound = {dims_of(each)[0] for each in given if _is_plain(each)}
        taken = {dim.name for each in given for dim in dims_of(each)}
        names = (name for name in map("extent{}".format, count(len(bound))) if name not in taken)
        for extent in given:
            size = self(extent)
            free = [dim for dim in dims_of(size) if dim not in bound]
            if not free:
                continue
            fresh = Dim(next(names), min=_least(extent))
            bound.add(fresh)
            if (found := _linear(size, free)) is None:
                self._whole.append((size, fresh))
                continue
            dim, factor = found
            if factor > 1:
                self._whole.append((size, fresh))
            value = (fresh - (size - factor * dim)) // factor
            self._solved = {each: substitute(of, {dim: value}) for each, of in self._solved.items()}
            self._solved[dim] = value
        self._bound = bound

    def __call__(self, size: Size) -> Size:
        """The size over bound dims."""
        for whole, fresh in self._whole:
            size = _divided(size, whole, fresh)
        return substitute(size, self._solved) if self._solved else size

    def told(self, size: Size) -> Size | None:
        """A size that is no extent over bound dims; None if the arguments do not determine it.

        Differences of extents are determined: the padding of `(n + 3)//4` to `(n + 7)//8 * 2`.
        """
        made = self(size)
        # The remaining size, with the part of the size that is determined.
        open_sizes: dict[Size, Size] = {made: 0}
        for _ in range(_MOST_EXTENTS + 1):
            for rest, found in open_sizes.items():
                if self._is_bound(rest):
                    return found + rest
            open_sizes = {
                self(rest - sign * whole): found + sign * fresh
                for rest, found in open_sizes.items()
                for whole, fresh in self._whole
                for sign in (1, -1)
            }
        return None

    def _is_bound(self, size: Size) -> bool:
        return all(dim in self._bound for dim in dims_of(size))


def _least(extent: Size) -> int:
    """The lower bound of an extent, even if dims with a minimum of 1 are 0: arrays may be empty."""
    empty = {dim: Dim(dim.name, 0, dim.max, dim.multiple_of) + 0 for dim in dims_of(extent) if dim.min == 1}
    least, usual = (lower_bound(each) or 0 for each in (substitute(extent, empty), extent))
    return max(least, min(usual, 1), 0)


def _is_plain(size: Size) -> bool:
    dims = dims_of(size)
    return len(dims) == 1 and size == dims[0] + 0


def _linear(size: Size, free: Iterable[Dim]) -> tuple[Dim, int] | None:
    """The only free dim, and its constant factor in the size."""
    dims = tuple(free)
    if len(dims) != 1:
        return None
    growth = terms_of(size).get((dims[0],), 0)
    return (dims[0], growth) if growth > 0 and dims[0] not in dims_of(size - growth * dims[0]) else None


def _divided(size: Size, whole: Size, fresh: Dim) -> Size:
    """The size with a multiple of `whole` replaced by one of `fresh`."""
    if isinstance(size, int):
        return size
    if is_equal(size, whole):
        return fresh + 0
    quotient = size // whole
    return quotient * fresh if size == quotient * whole else size
