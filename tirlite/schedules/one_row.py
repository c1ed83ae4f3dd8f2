"""Where the lanes of a vector lie in one row of an image, and all inside of it: they are loaded as they lie, unmasked.

Places count row by row, so those of a vector may be the end of one row and the begin of the next. What is read under
them then lies anywhere, and each lane has a condition of its own. In one row they are so many elements apart, and where
the first and the last lie between two bounds, all do.
"""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.ir import (
    GE,
    GT,
    LE,
    LT,
    Add,
    And,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Ramp,
    Var,
    const,
    i64,
    rewrite,
    structural_equal,
    substitute,
    walk,
)
from tirlite.record import record
from tirlite.rewrite.lanes import Lanes, NotVector
from tirlite.schedules.step import mentions


@record(eq=False)
class OneRow:
    """What must stand before, when lanes lie in one row and inside, and the indices of what they read there."""

    lets: tuple[Let, ...]
    holds: Expr
    indices: tuple[Expr, ...]


def one_row(place: Var, start: Expr, stop: Expr, width: int, inside: Expr, indices: tuple[Expr, ...]) -> OneRow | None:
    """What holds for the places from `start` on, of those before `stop`; None where no rows, or no bounds, are seen.

    `inside` and `indices` are of one `place`, by its row and its column alone.
    """
    found = [node for expr in (inside, *indices) for node in _parts(expr, place)]
    columns = [node.b for node in found if isinstance(node, FloorMod)]
    if not columns or not isinstance(length := columns[0], IntImm) or length.value < width:
        return None
    divisors = [node.b for node in found if isinstance(node.b, IntImm)]
    if len(divisors) < len(found) or any(each.value <= 0 or each.value % length.value for each in divisors):
        return None
    if any(not structural_equal(each, length) for each in columns):
        return None
    column, lane = Var("column", i64), Var("column", i64)

    def of_lane(node: FloorDiv | FloorMod) -> Expr:
        if node.a is not place:
            return node
        return lane if isinstance(node, FloorMod) else FloorDiv(start, node.b)

    exprs = [rewrite(each, {FloorDiv: of_lane, FloorMod: of_lane}) for each in (inside, *indices)]
    lanes = Lanes(width, {lane: Ramp(column, const(1, i64), width)})
    condition, *read = [each for each in exprs if isinstance(each, Expr)]
    if any(mentions(each, (place,)) for each in (condition, *read)):
        return None
    try:
        bounds = [*_bounds(condition, lanes)]
        at = [lanes.of(each) for each in read]
    except NotVector:
        return None
    if not isinstance(at[-1], Ramp) or any(each.dtype.lanes > 1 for each in at[:-1]):
        return None
    last = Add(column, const(width - 1, i64))
    holds = And(LE(Add(column, const(width, i64)), length), LE(Add(start, const(width, i64)), stop))
    for bound in bounds:
        for at_column in (column, last) if mentions(bound, (lane,)) else (column,):
            holds = And(holds, substitute(bound, {lane: at_column}))
    return OneRow((Let(column, FloorMod(start, length)),), holds, tuple(at))


def _parts(expr: Expr, place: Var) -> Iterator[FloorDiv | FloorMod]:
    """The quotients and remainders of a place."""
    for node in walk(expr):
        if isinstance(node, FloorDiv | FloorMod) and node.a is place:
            yield node


def _bounds(condition: Expr, lanes: Lanes) -> Iterator[Expr]:
    """The comparisons that all hold where a condition does, of values that rise or fall from lane to lane."""
    if isinstance(condition, And):
        yield from _bounds(condition.a, lanes)
        yield from _bounds(condition.b, lanes)
        return
    if not isinstance(condition, LT | LE | GT | GE):
        raise NotVector
    if any(each.dtype.lanes > 1 and not isinstance(each, Ramp) for each in map(lanes.of, (condition.a, condition.b))):
        raise NotVector
    yield condition
