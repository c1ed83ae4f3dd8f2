"""Solves for the dims that follow from extents and the numbers that they are: `h + 2` is 9, so `h` is 7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tirlite.ir import Expr, Var
from tirlite.ir.size import size_of_expr
from tirlite.record import record
from tirlite.sizes import Scalar, Size
from tirlite.sizes.poly import Atom, terms_of
from tirlite.sizes.terms import Origin


@record
class NoSolution:
    """The first extent that no integer from 0 on makes what it is, by its place."""

    place: int


def solved(
    extents: Sequence[tuple[Expr, int]], known: Mapping[Var, int], dims: Sequence[Var]
) -> dict[Var, int] | NoSolution:
    """Values for those of `dims` that stand in an extent with nothing else unknown, times a number and plus another."""
    origin = Origin()
    unknown: dict[Atom, Var] = {Scalar(var.name, origin=origin): var for var in dims}
    sizes: dict[Var, Size] = {**{var: each + 0 for each, var in unknown.items()}, **known}
    values: dict[Var, int] = {}
    waiting = list(range(len(extents)))
    while waiting:
        left = []
        for place in waiting:
            extent, value = extents[place]
            size = size_of_expr(extent, sizes, {})
            if size is None or isinstance(size, int):
                continue
            products = [product for product in size.terms if product]
            if len(products) > 1 or len(products[0]) > 1 or products[0][0] not in unknown:
                left.append(place)
                continue
            number, rest = divmod(value - terms_of(size).get((), 0), size.terms[products[0]])
            if rest or number < 0:
                return NoSolution(place)
            var = unknown[products[0][0]]
            sizes[var] = values[var] = number
        if len(left) == len(waiting):
            break
        waiting = left
    return values
