"""Symbolic sizes in, vectors of numbers out: how many of each product a size has in it, and back.

Each dim, and whatever else a size is made of, counts from its least value, so all products are at least 0. A vector
that is nowhere above another one is then a size that is proved to be at most the other, for all values of the dims.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tirlite.diag import KernelError
from tirlite.plan.samples import Binding
from tirlite.record import record
from tirlite.sizes import Size, evaluate
from tirlite.sizes.poly import Atom, Product, Terms, of_terms, terms_of
from tirlite.sizes.terms import add, join, replace, scaled, without

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.int64]
    Values = npt.NDArray[np.float64]

# Beyond so many products vectors are no help.
_MANY = 48
# Sums of so many vectors at most fit into 63 bits where no entry is above this.
_LARGEST = 1 << 40


@record
class Products:
    """The products that some sizes are sums of, each of distances from low ends; the first one is the constant."""

    products: tuple[Product, ...]
    lows: Mapping[Atom, int]
    vectors: Mapping[Size, tuple[int, ...]]

    @classmethod
    def of(cls, sizes: Iterable[Size]) -> Products | None:
        """Those of the sizes; None where there are too many, or something has no least value."""
        known = list(dict.fromkeys(sizes))
        atoms = dict.fromkeys(atom for size in known for product in terms_of(size) for atom in product)
        lows: dict[Atom, int] = {}
        for atom in atoms:
            if atom.bounds.low is None:
                return None
            lows[atom] = atom.bounds.low
        images = _images(lows, 1)
        try:
            moved = {size: replace(terms_of(size), images) for size in known}
        except KernelError:  # far too many
            return None
        products = tuple(dict.fromkeys([(), *(product for terms in moved.values() for product in terms)]))
        if len(products) > _MANY or any(abs(c) > _LARGEST for terms in moved.values() for c in terms.values()):
            return None
        vectors = {size: tuple(terms.get(product, 0) for product in products) for size, terms in moved.items()}
        return cls(products, lows, vectors)

    def size(self, vector: Sequence[int]) -> Size:
        """The size that a vector stands for."""
        terms = {product: int(count) for product, count in zip(self.products, vector, strict=True) if count}
        return of_terms(replace(terms, _images(self.lows, -1)))

    def values(self, bindings: Sequence[Binding]) -> Values:
        """The value of each product (rows) at each binding (columns)."""
        import numpy as np

        distances = {
            atom: [float(evaluate(atom, binding) - low) for binding in bindings] for atom, low in self.lows.items()
        }
        table = np.ones((len(self.products), len(bindings)))
        for row, product in zip(table, self.products, strict=True):
            for atom in product:
                row *= distances[atom]
        return table

    def facts(self) -> list[tuple[int, ...]]:
        """Vectors that are never negative, beside the products: what ties one to another, times what is there."""
        known: list[Terms] = []
        for atom in self.lows:
            for side, sign in ((atom.below(), -1), (atom.above(), 1)):
                known += [
                    add(scaled(terms_of(each.size), sign), {(atom,): each.scale}, -sign) for each in side if not each.by
                ]
            if atom.bounds.high is not None:
                known.append({(): atom.bounds.high, (atom,): -1})
        found: dict[tuple[int, ...], None] = {}
        for terms in known:
            if all(atom in self.lows for product in terms for atom in product):
                moved = replace(terms, _images(self.lows, 1))
                for product in self.products:
                    self._take(found, {join(each, product): count for each, count in moved.items()})
        for product in self.products:
            for atom in dict.fromkeys(product):
                if product.count(atom) > 1 and self.lows[atom] % atom.divisor == 0:
                    rest = without(product, (atom,))
                    assert rest is not None
                    self._take(found, {product: 1, rest: -atom.divisor})
        return list(found)

    def _take(self, found: dict[tuple[int, ...], None], terms: Terms) -> None:
        if all(product in self.products for product in terms):
            found[tuple(terms.get(product, 0) for product in self.products)] = None


def _images(lows: Mapping[Atom, int], sign: int) -> dict[Atom, Terms]:
    return {atom: {(atom,): 1, (): sign * low} if low else {(atom,): 1} for atom, low in lows.items()}
