"""Finds the dim of a model that must be something else, by the extents that an operator demands to be equal.

Exporters name an extent at each input anew, or not at all: `x` of `[batch, 8]` and `state` of `[state_0, 8]`. What
operators demand of them says more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import gcd

from tirlite.diag import TirliteError
from tirlite.graph.op import ShapeMismatch, ShapeUndecided
from tirlite.sizes import Dim, Proof, Size, dims_of, prove_lt
from tirlite.sizes.poly import of_terms, terms_of


def demanded(error: TirliteError, dims: Collection[Dim]) -> tuple[Dim, Size] | None:
    """One of `dims` and what it must be, so that the operands of the call that `error` tells of go together."""
    message = error.messages[0]
    if isinstance(message, ShapeMismatch | ShapeUndecided):
        for a, b in message.unequal:
            if (found := _solved(a, b, dims)) is not None:
                return found
    return None


def _solved(a: Size, b: Size, dims: Collection[Dim]) -> tuple[Dim, Size] | None:
    """What makes the two equal; of several dims that can, the last one gives way."""
    difference = a - b
    terms = terms_of(difference)
    common = gcd(*terms.values())
    for dim in reversed(_known(dims, dims_of(difference))):
        coefficient = terms.get((dim,), 0)
        rest = {product: value for product, value in terms.items() if product != (dim,)}
        if abs(coefficient) != common or dim in dims_of(of_terms(rest)):
            continue
        solution = of_terms({product: -value // coefficient for product, value in rest.items()})
        if prove_lt(solution, 0) is not Proof.YES:
            return dim, solution
    return None


def _known(dims: Collection[Dim], among: Iterable[Dim]) -> list[Dim]:
    found = frozenset(among)
    return [dim for dim in dims if dim in found]
