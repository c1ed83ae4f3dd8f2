"""Finds loops over rows that sum dot products of bytes, which processors with tile registers compute by tiles.

As in `for i: for p: y[i, ramp] = tl.dot(y[i, ramp], a[i, 4 * p...], b[p, ramp])`, possibly with more loops over terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tirlite.analysis.loops.patterns import moved_by
from tirlite.ir.dot import dot_name
from tirlite.ir.equal import are_equal, structural_equal
from tirlite.ir.expr import Call, Expr, IntImm, Load, Ramp, Var, const
from tirlite.ir.op import Op
from tirlite.ir.rewrite import substitute
from tirlite.ir.stmt import For, ForKind, IfThenElse, Let, Stmt, Store
from tirlite.ir.walk import chain_from, mentions
from tirlite.record import record

# Rows and columns that are taken at once, as two tiles by two.
TILE_ROWS = TILE_COLUMNS = 32
_GROUP = 4
_LANES = 16
# Pairs of operands whose addresses are told at once: as many as places of a window.
_MOST_PARTS = 128


@record(eq=False)
class Products:
    """Loops over `rows`, over parts of the terms and over the `groups` of a part, around one dot product of `types`.

    The sums are 0 before, where they are `is_new`.
    """

    rows: For
    parts: tuple[For, ...]
    groups: For
    sums: Load
    a: Load
    b: Load
    types: str
    is_new: bool

    @property
    def counts(self) -> list[int]:
        """How many iterations the loops over parts have."""
        return [len(each.values or ()) for each in self.parts]


@record(eq=False)
class Copied:
    """A loop that copies sums to `result`, row by row: whole rows where `condition` holds, which is None if it must."""

    loop: For
    result: Load
    condition: Expr | None


def copied_from(found: Products, rest: Sequence[Stmt]) -> Copied | None:
    """What `rest`, which follows the loops over products, copies the sums to, if it does nothing else."""
    *lets, loop = rest or (None,)
    if not isinstance(loop, For) or not all(isinstance(each, Let) for each in lets) or not found.is_new:
        return None
    is_alike = are_equal((loop.start, loop.stop), (found.rows.start, found.rows.stop))
    if not is_alike or loop.step != 1 or loop.kind is not ForKind.SERIAL or len(loop.body.stmts) != 1:
        return None
    (stmt,) = loop.body.stmts
    condition = stmt.condition if isinstance(stmt, IfThenElse) else None
    (store,) = stmt.then_body.stmts if isinstance(stmt, IfThenElse) and len(stmt.then_body.stmts) == 1 else (stmt,)
    if not isinstance(store, Store) or not isinstance(store.value, Load):
        return None
    result, own = Load(store.buffer, store.indices), [loop.var, *(each.var for each in lets if isinstance(each, Let))]
    is_sum = are_equal((substitute(store.value, {loop.var: found.rows.var}),), (found.sums,))
    if not is_sum or not _is_plain(result) or store.buffer.dtype != found.sums.buffer.dtype:
        return None
    if mentions(store.indices, own[1:]) or (condition is not None and mentions(condition, own)):
        return None
    *outer, last = slopes(result, loop.var)
    return (
        Copied(loop, result, condition)
        if last == 0 and sorted(outer, key=str) == [*[0] * (len(outer) - 1), 1]
        else None
    )


def products_of(loop: For) -> Products | None:
    """The products that a loop over rows computes, if tile registers can compute them."""
    *before, last = loop.body.stmts or (None,)
    nest = [loop, *(chain_from(last) if isinstance(last, For) else ())]
    (store,) = nest[-1].body.stmts if len(nest) > 1 and len(nest[-1].body.stmts) == 1 else (None,)
    if not isinstance(store, Store) or not isinstance(store.value, Call) or store.value.op is not Op.DOT:
        return None
    total, a, b = store.value.args
    if not (isinstance(total, Load) and isinstance(a, Load) and isinstance(b, Load)):
        return None
    zero = store.replaced(value=const(0, total.dtype))
    is_new = len(before) == 1 and bool(structural_equal(before[0], zero))
    if (before and not is_new) or not structural_equal(total, Load(store.buffer, store.indices)):
        return None
    terms = sorted(nest[1:], key=lambda each: 0 if each.values is None else -len(each.values))
    groups = next((each for each in terms if slopes(a, each.var)[-1:] == [_GROUP]), None)
    if groups is None:
        return None
    count = _LANES if groups.values is None else len(groups.values)
    if 2 * count < -(-count // _LANES) * _LANES:
        return None  # more than half of a tile would be empty
    parts = tuple(each for each in nest[1:] if each is not groups)
    found = Products(loop, parts, groups, total, a, b, dot_name(a.dtype, b.dtype), is_new)
    return found if _fits(found) else None


def _fits(found: Products) -> bool:
    rows, groups, sums, a, b = found.rows.var, found.groups.var, found.sums, found.a, found.b
    inside = [rows, groups, *(each.var for each in found.parts)]
    loops = (found.rows, *found.parts, found.groups)
    return (
        all(each.step == 1 and each.kind in (ForKind.SERIAL, ForKind.REDUCE) for each in loops)
        and not any(mentions((each.start, each.stop), inside) for each in loops)
        and all(each.values is not None for each in found.parts)
        and 0 < prod(found.counts) <= _MOST_PARTS
        and all(map(_is_plain, (sums, a, b)))
        and sums.buffer.dtype.bits == 8 * _GROUP
        and a.buffer.dtype.bits == 8
        and (sums.dtype.lanes % _LANES, a.dtype.lanes) == (0, _GROUP)
        and not mentions(sums.indices, inside[1:])
        and not mentions(b.indices, rows)
        and None not in (*slopes(sums, rows), *slopes(a, rows), *slopes(a, groups), *slopes(b, groups))
        and sorted(map(abs, filter(None, slopes(sums, rows)[:-1]))) == [1]
        and (slopes(sums, rows)[-1], *filter(None, slopes(a, groups)[:-1])) == (0,)
    )


def _is_plain(load: Load) -> bool:
    """Whether neighbours are read, one element after the other, without checks or masks."""
    *outer, last = load.indices or (None,)
    is_row = isinstance(last, Ramp) and isinstance(last.stride, IntImm) and last.stride.value == 1
    buffer, are_scalars = load.buffer, all(index is not None and index.dtype.lanes == 1 for index in outer)
    return is_row and are_scalars and not (buffer.strides or buffer.volatile) and buffer.dtype.lanes == 1


def slopes(load: Load, var: Var) -> list[int | None]:
    """By how much each index grows where the variable grows by one; None where that is not the same everywhere."""
    *outer, last = load.indices
    return [moved_by(index, var) for index in (*outer, last.base if isinstance(last, Ramp) else last)]
