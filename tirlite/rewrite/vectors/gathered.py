"""Vectorizes reductions that gather, by indices in memory, as one loop over masked vectors.

Rows of sparse matrices are short and differ in length: with a single loop the processor predicts one branch for each
row. The time of a gather grows with its lanes, masked or not. In long rows gathers take longer than the sum, so one
partial sum does as well as four.

With checked indices, lanes out of bounds are masked, and the greatest index is kept. If that is out of bounds, the
original loop runs, with its stores and its fault: the vectors have stored nothing yet.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import reduce

from tirlite.analysis.loops.reductions import AnyUpdate, Update
from tirlite.ir.checked import bare, has_check, is_checked, masked
from tirlite.ir.dtype import bool_, i32, i64, u32, u64
from tirlite.ir.expr import (
    GE,
    LT,
    BitAnd,
    BitOr,
    Buffer,
    Call,
    Cast,
    Expr,
    Load,
    Max,
    Min,
    Ramp,
    Select,
    Sub,
    Var,
    const,
)
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.stmt import Allocate, For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store
from tirlite.ir.trampoline import Steps
from tirlite.ir.walk import loads_in, mentions, statements
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.vectors.lane_partials import LanePartials, Rest
from tirlite.rewrite.vectors.lanes import NotVector, first_lanes

_LANES = 8
# Element sizes with gather instructions.
_GATHERED = (4, 8)
# The unsigned type for each type of an index: a negative index is above all extents there.
_UNSIGNED = {i32: u32, i64: u64}


def gathers(loop: For, updates: Sequence[AnyUpdate]) -> bool:
    """Whether iterations load only words, some of them by indices that were loaded."""
    stmts = [*statements(loop.body)]
    are_plain = all(isinstance(stmt, Let | Store) for stmt in stmts)
    if not are_plain or not all(isinstance(each, Update) for each in updates):
        return False
    moving: set[Node] = {loop.var}  # what differs between iterations
    loaded: set[Node] = set()  # the part of it that depends on loads
    is_any = False
    for stmt in stmts:
        assert isinstance(stmt, Let | Store)
        loads = [node for node in loads_in(stmt.value) if mentions(node, moving)]
        if any(load.buffer.dtype.scalar.bytes not in _GATHERED for load in loads):
            return False
        loaded.update(loads)
        is_any = is_any or any(mentions(index, loaded) for load in loads for index in load.indices)
        if isinstance(stmt, Let):
            moving |= {stmt.var} if mentions(stmt.value, moving) else set()
            loaded |= {stmt.var} if mentions(stmt.value, loaded) else set()
    return is_any


def gathered(
    loop: For, updates: Sequence[AnyUpdate], is_inside: Callable[[Load], bool], steady: Collection[Buffer]
) -> Iterator[Stmt]:
    """The statements that replace such a loop. Checked indices come from `steady` buffers alone. Raises NotVector."""
    if has_check(loop.start) or has_check(loop.stop):
        raise NotVector
    partials = [LanePartials(update, _LANES) for update in updates]
    at = Var(loop.var.name)
    vectors = _Gathered(loop.var, at, partials, is_inside, steady)
    on = first_lanes(folded(Min(Sub(loop.stop, at), const(_LANES, i64))), _LANES, _width(updates))
    vectors.on = Var("left", on.dtype)
    body: list[Stmt] = [Let(vectors.on, on, span=loop.span)]
    for stmt in loop.body.stmts:
        body += vectors.places(stmt)
        body.append(vectors.statement(stmt))
    stmts: list[Stmt] = [*vectors.before]
    for each in partials:
        stmts += each.start()
    stmts.append(For(at, loop.start, loop.stop, SeqStmt((*body,)), step=_LANES))
    if vectors.outside:
        are_outside = Call(bool_, Op.ANY, (reduce(BitOr, vectors.outside),))
        stmts.append(IfThenElse(are_outside, SeqStmt((loop.replaced(kind=ForKind.SERIAL),)), span=loop.span))
    for each in partials:
        stmts += (*each.halved(1), *each.ended(const(0, i64)))
    if all(update.store.buffer.scope == "local" for update in updates if isinstance(update, Update)):
        # Without iterations the combination changes nothing: no branch is needed.
        yield from stmts
    else:
        yield IfThenElse(LT(loop.start, loop.stop), SeqStmt((*stmts,)), span=loop.span)


def _width(updates: Sequence[AnyUpdate]) -> int:
    return max(store.buffer.dtype.bytes for update in updates for store in update.stores)


class _Gathered(Rest):
    """Lanes that load at checked indices if these are in bounds."""

    def __init__(
        self,
        var: Var,
        first: Expr,
        partials: Sequence[LanePartials],
        is_inside: Callable[[Load], bool],
        steady: Collection[Buffer],
    ) -> None:
        super().__init__(var, first, partials, is_inside, _LANES)
        self.steady = steady
        self.before: list[Stmt] = []  # statements to put before the loop
        self.outside: list[Expr] = []  # after the loop: whether an index was out of bounds
        self._places: dict[Expr, tuple[Var, Expr]] = {}  # for a checked index, its vector and the mask of valid lanes

    def places(self, stmt: Stmt) -> Iterator[Stmt]:
        """Names the checked indices of a statement, and keeps the greatest of each."""
        checked = [node for node in loads_in(stmt) if any(map(is_checked, node.indices))]
        for load in checked:
            *row, index = load.indices
            inner = bare(index)
            if isinstance(inner, Cast) and inner.value.dtype in _UNSIGNED:
                inner = inner.value
            are_steady = all(node.buffer in self.steady for node in loads_in(inner))
            if inner.dtype not in _UNSIGNED or not are_steady or any(map(has_check, (*row, inner))):
                raise NotVector
            kind = _UNSIGNED[inner.dtype]
            vector, value = kind.with_lanes(self.lanes), self.spread(self.of(inner))
            place, on = Var("place", value.dtype), Var("inside", bool_.with_lanes(self.lanes))
            # A nonnegative 32-bit index is below 2**31.
            extent = load.buffer.shape[-1]
            least = extent if kind == u64 else folded(Min(extent, const(i32.max + 1, i64)))
            end = self.spread(folded(Cast(kind, least)))
            most = Buffer("most", kind, (const(self.lanes, i64),), "local")
            all_of = most[Ramp.unit(0, self.lanes)]
            assert self.on is not None
            self._places[index] = place, on
            self.before += (Allocate(most), Store(most, all_of.indices, self.spread(const(0, kind))))
            self.outside.append(GE(all_of, end))
            yield Let(place, value, span=stmt.span)
            yield Let(on, BitAnd(self.on, LT(Cast(vector, place), end)), span=stmt.span)
            yield Store(most, all_of.indices, Select(self.on, Max(all_of, Cast(vector, place)), all_of))

    def _of(self, expr: Expr) -> Steps[Expr]:
        if not isinstance(expr, Load) or not expr.indices or expr.indices[-1] not in self._places:
            found: Expr = yield super()._of(expr)
            return found
        place, on = self._places[expr.indices[-1]]
        row: list[Expr] = []
        for index in expr.indices[:-1]:
            value: Expr = yield self._of(index)
            row.append(value)
        if expr.buffer.volatile or expr.buffer.dtype.lanes > 1 or any(index.dtype.lanes > 1 for index in row):
            raise NotVector
        return Load(expr.buffer, (*row, masked(place, on)))
