"""Bounds how large extents and products of extents can be, by the bytes of arrays that exist.

An array that exists is addressable, which no machine can do beyond 2**47 bytes today. So a dim of a shape stays below
that, as does a product of extents where one array has them all, and surely has elements along its other axes; any other
product may be larger. A single dim is taken to stay below it even where the array is empty along another axis. What an
array holds several times is as many times less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field
from math import prod

from tirlite.record import record
from tirlite.sizes import Dim, Size
from tirlite.sizes.extrema import Maximum
from tirlite.sizes.poly import Atom, Product, terms_of

ADDRESSABLE = 1 << 47
# Only a program writes a program with more; what is left out is taken as unbounded.
_MOST_PRODUCTS = 10_000


@record
class ArrayBounds:
    """For each atom that occurs in the size of some array the products that are addressable, and that it is part of.

    `times` says how often some array holds a product.
    """

    products: Mapping[Atom, tuple[Product, ...]] = field(default_factory=dict)
    times: Mapping[Product, int] = field(default_factory=dict)

    def is_bounded(self, atom: Atom) -> bool:
        """Whether `most` holds of an atom: it is a dim, or else an extent of an array that has all others."""
        arrays = self.products.get(atom, ())
        return isinstance(atom, Dim) or any(_is_positive(other for other in each if other != atom) for each in arrays)

    def most(self, product: Product) -> int:
        """A number that a product of bounded atoms does not exceed, whatever their signs."""
        most = prod(map(self._most_of, product))
        if len(product) > 1:
            # With a factor that has no bound, and is in no array with the others, it may be anything.
            unbounded = (atom for atom in product if atom.bounds.high is None)
            for array in min((self.products.get(atom, ()) for atom in unbounded), key=len, default=()):
                beyond = Counter(product) - Counter(array)
                # An array may be empty along one axis, and of any length along the others.
                if _is_positive(Counter(array) - Counter(product)):
                    own = ADDRESSABLE // self.times.get(array, 1)
                    most = min(most, own * prod(map(self._most_of, beyond.elements())))
        return most

    def _most_of(self, atom: Atom) -> int:
        times = self.times.get((atom,))
        return _most(atom) if times is None else min(_most(atom), ADDRESSABLE // times)


NO_ARRAYS = ArrayBounds()


def array_bounds(sizes: Iterable[Size]) -> ArrayBounds:
    """What holds where arrays of so many bytes exist. A sum in which something is subtracted tells nothing."""
    todo = [*sizes]
    seen, found, times = set(todo), dict[Product, None](), dict[Product, int]()
    while todo:
        terms = terms_of(todo.pop())
        if not all(n > 0 and all(atom.bounds.nonnegative for atom in product) for product, n in terms.items()):
            continue
        for product, count in terms.items():
            times[product] = max(times.get(product, 1), count)
            if len(product) > 1:
                found[product] = None
            maximum = next((atom for atom in product if isinstance(atom, Maximum)), None)
            if maximum is not None and len(found) < _MOST_PRODUCTS:
                # What holds the largest of several holds each of them.
                rest = prod(atom for atom in product if atom != maximum)
                parts = dict.fromkeys(rest * operand for operand in maximum.operands)
                todo += [part for part in parts if part not in seen]
                seen.update(parts)
    products: dict[Atom, list[Product]] = {}
    for product in found:
        for atom in dict.fromkeys(product):
            products.setdefault(atom, []).append(product)
    return ArrayBounds({atom: tuple(each) for atom, each in products.items()}, times)


def _is_positive(atoms: Iterable[Atom]) -> bool:
    return all(atom.bounds.positive for atom in atoms)


def _most(atom: Atom) -> int:
    low, high = atom.bounds.low, atom.bounds.high
    if low is not None and high is not None:
        return max(abs(low), abs(high))
    return max(ADDRESSABLE, abs(low or 0), abs(high or 0))
