"""Narrows the bounds of dims and unknowns by what is known of sums."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tirlite.diag import KernelError
from tirlite.sizes import Dim, Size, ceildiv, maximum, minimum, substitute
from tirlite.sizes.poly import Atom, Terms
from tirlite.sizes.unknown import Unknown, linear


def narrowed(facts: Iterable[Size]) -> tuple[dict[Atom, Size], list[Size]]:
    """What takes the place of some atoms where sums are 0 or more, and the sums over these.

    A sum over one dim or unknown alone gives it a bound.
    """
    changes: dict[Atom, Size] = {}
    known: list[Size] = []
    for given in facts:
        fact = substitute(given, changes) if changes else given
        found = narrower(fact)
        if found is not None:
            atom, new = found
            change: dict[Atom, Size] = {atom: new + 0}
            changes = {old: substitute(size, change) for old, size in changes.items()} | change
            known = [substitute(each, change) for each in known]
            fact = substitute(fact, change)
        known.append(fact)
    return changes, known


def narrower(fact: Size) -> tuple[Atom, Atom] | None:
    """The one dim or unknown that a fact is about, and another one in the bounds that it then has."""
    parts = linear(fact)
    if parts is None or isinstance(fact, int):
        return None
    if not parts.terms:
        return _narrower_dim(fact.terms)
    ((atom, factor), *more) = parts.terms.items()
    if more or not isinstance(factor, int) or not isinstance(atom, Unknown):
        return None
    if factor > 0:
        low = ceildiv(-parts.constant, factor)
        return atom, replace(atom, low=low if atom.low is None else maximum(atom.low, low))
    high = parts.constant // -factor
    return atom, replace(atom, high=high if atom.high is None else minimum(atom.high, high))


def _narrower_dim(terms: Terms) -> tuple[Atom, Atom] | None:
    products = [product for product in terms if product]
    if len(products) != 1 or len(products[0]) != 1 or not isinstance(dim := products[0][0], Dim):
        return None
    factor, constant = terms[products[0]], terms.get((), 0)
    try:
        if factor > 0:
            return dim, replace(dim, min=max(dim.low, -(constant // factor)))
        high = constant // -factor
        return dim, replace(dim, max=high if dim.high is None else min(dim.high, high))
    except KernelError:  # no value is left: what stands here is never reached
        return None
