"""Finds a lower bound of a sum in which one size is divided by several numbers, some of which divide others.

`h//4` is `2*(h//8)` and a digit, which is 0 or 1. So `h//4 - 2*(h//8)` is that digit, and not below 0, which bounds of
each quotient alone do not tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tirlite.diag import KernelError
from tirlite.record import record
from tirlite.sizes.bounds import Bounds
from tirlite.sizes.box import minimum_in_box
from tirlite.sizes.poly import Atom, Product, Quotient, Terms, terms_of
from tirlite.sizes.terms import Factor, replace


@record
class _Digit(Factor):
    """What a quotient by a number is above that by a multiple of it, times that multiple."""

    ident: int
    bounds: Bounds
    divisor: int = 1


@record
class _Part:
    """An atom as `(size + constant) // by`; `size` are the terms of what several of them divide."""

    atom: Atom
    size: frozenset[tuple[Product, int]]
    constant: int
    by: int


def minimum_by_digits(terms: Terms) -> int | None:
    """A number that the sum never falls below, or None; None as well where no two atoms divide one size."""
    parts = list(dict.fromkeys(_part(atom) for product in terms for atom in product))
    digits = list(_digits(parts))
    if not digits:
        return None
    # Atoms and digits are factors alike to the box.
    sum_of: Mapping[tuple[Factor, ...], int] = {(*product,): coefficient for product, coefficient in terms.items()}
    try:
        for atom, written in digits:
            sum_of = replace(sum_of, {atom: written})
    except KernelError:  # of too many terms
        return None
    return minimum_in_box(sum_of)


def _part(atom: Atom) -> _Part:
    if not isinstance(atom, Quotient) or not isinstance(atom.by, int):
        return _Part(atom, frozenset({((atom,), 1)}), 0, 1)
    size = {**terms_of(atom.dividend)}
    constant = size.pop((), 0)
    return _Part(atom, frozenset(size.items()), constant, atom.by)


def _digits(parts: list[_Part]) -> Iterator[tuple[Factor, Mapping[tuple[Factor, ...], int]]]:
    """What each atom is in terms of one that is divided by a multiple, those of the smallest divisors first."""
    ordered = sorted(parts, key=lambda part: (part.by, part.constant))
    for place, fine in enumerate(ordered):
        coarse = next(
            (each for each in ordered[place + 1 :] if each.size == fine.size and each.by % fine.by == 0), None
        )
        if coarse is not None:
            times = coarse.by // fine.by
            # With other constants, the sizes that are divided are `whole` or one more of the smaller divisors apart.
            whole, rest = divmod(coarse.constant - fine.constant, fine.by)
            digit = _Digit(-1 - place, Bounds(0, times - 1 + (rest > 0)))
            written = {(coarse.atom,): times, (digit,): 1, (): -whole - (rest > 0)}
            yield fine.atom, {product: c for product, c in written.items() if c}
