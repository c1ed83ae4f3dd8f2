"""Solves extents for dims (`h + 2` is 9, so `h` is 7), and refuses extents that are not arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tirlite.diag import Message, Span
from tirlite.ir import Expr, IntImm, Var, walk
from tirlite.ir.size import ARITHMETIC, size_of_expr, value_of
from tirlite.record import record
from tirlite.sizes import Scalar, Size
from tirlite.sizes.poly import Atom, terms_of
from tirlite.sizes.terms import Origin


class ExtentForm(Message):
    """An extent is not arithmetic on dims, so that the shape of an array cannot be checked against it.

    Example: A parameter whose extent is `tl.i64(gain)`.
    """

    title = "an extent of `{buffer}` contains {kind}"
    label = "declared here"
    help = "an extent is made of integers, dims and scalar parameters by `+ - * // %`, `min` and `max`"


def extent_at(extent: Expr, values: Mapping[Var, int]) -> int:
    """The value of an extent that `check_extent` has accepted, for these values of dims and scalars."""
    value = value_of(extent, values)
    assert value is not None
    return value


def check_extent(extent: Expr, buffer: str, span: Span | None) -> None:
    """Raises KernelError for an extent that `extent_at` cannot evaluate."""
    for node in walk(extent):
        is_known = type(node) in ARITHMETIC or isinstance(node, Var | IntImm)
        if not (is_known and isinstance(node, Expr) and node.dtype.is_integer):
            raise ExtentForm(buffer, type(node).__name__, span=span).error()


@record
class NoSolution:
    """The place of the first extent that has no solution."""

    place: int


def solved(
    extents: Sequence[tuple[Expr, int]], known: Mapping[Var, int], dims: Sequence[Var]
) -> dict[Var, int] | NoSolution:
    """Solves for those of `dims` that occur in an extent `number * dim + number`, other dims being known."""
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
