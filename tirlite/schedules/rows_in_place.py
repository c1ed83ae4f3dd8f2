"""Fuses two loops over the rows of a buffer that is read at and around (i, j), and vectorizes the result across rows.

The window that `y[i, j]` reads of rows of W elements moves by one element with j, and by W with i: by one with each
iteration of a loop over `i * W + j`. So vectors read it in place, without a copy. Iterations with j beyond the end of a
row of `y` compute a value from what lies there, and store nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.patterns import moved_by
from tirlite.ir.checked import has_check
from tirlite.ir.dtype import bool_, i32, i64
from tirlite.ir.equal import are_equal
from tirlite.ir.expr import (
    GE,
    LE,
    LT,
    Add,
    BitAnd,
    Broadcast,
    Buffer,
    Cast,
    Expr,
    FloorDiv,
    FloorMod,
    Load,
    Min,
    Mul,
    Not,
    Ramp,
    Sub,
    Var,
    const,
)
from tirlite.ir.func import PrimFunc
from tirlite.ir.rewrite import rewrite, substitute
from tirlite.ir.stmt import Allocate, Assert, For, IfThenElse, Let, SeqStmt, Stmt, Store, View
from tirlite.ir.walk import (
    allocated_in,
    conjuncts,
    defined_in,
    is_constant,
    is_steady,
    loads_in,
    mentions,
    statements,
    statements_of,
)
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.vectors.lanes import Lanes, NotVector
from tirlite.schedules.loop_facts import is_in_bounds
from tirlite.schedules.step import does_not_fit


def over_rows(
    step: object, facts: Facts, around: tuple[For, ...], buffer: Buffer, number: Var
) -> tuple[Expr, SeqStmt, View]:
    """The stop and the body of the loop over `number` that replaces the last two loops, and the view that it reads.

    Raises KernelError unless all but stores to memory may run for the elements between rows, too.
    """
    outer, inner = around[-2:]
    body, width, own = inner.body, buffer.shape[-1], allocated_in(inner.body)
    gap = facts.space.size(width) - facts.space.size(inner.stop)
    if not (isinstance(gap, int) and gap >= 0 and len(buffer.shape) > 1 and not (buffer.strides or buffer.volatile)):
        raise does_not_fit(
            step, f"rows of `{buffer.name}` are not seen to be as long as the loop over `{inner.var.name}`"
        )
    if not (is_constant(outer.start, 0) and is_constant(inner.start, 0) and is_least(facts.func, inner, inner.stop, 1)):
        raise does_not_fit(step, "both loops begin at 0, and rows are not empty")
    if not all(isinstance(each, Allocate | Store | For) for each in statements(body)) or has_check(body):
        raise does_not_fit(step, "there is more inside than loops, stores and accesses that are in bounds")
    stores = [each for each in statements_of(body, Store) if each.buffer not in own]
    guarded = {load for each in stores for load in loads_in(each)}
    read = [load for load in loads_in(body) if load not in guarded and mentions(load, (outer.var, inner.var))]
    inside = [*statements_of(body, For)]
    if any(mentions((loop.start, loop.stop), (outer.var, inner.var)) for loop in inside):
        raise does_not_fit(step, f"loops inside depend on `{outer.var.name}` or `{inner.var.name}`")
    if any(load.buffer is not buffer or not moves_by_rows(load, outer.var, inner.var) for load in read):
        raise does_not_fit(
            step, f"more is read at `{outer.var.name}` and `{inner.var.name}` than windows of `{buffer.name}`"
        )
    for load in read:
        if not is_in_bounds(facts.func, (*around, *(loop for loop in inside if mentions(loop.body, (load,)))), load):
            raise does_not_fit(step, f"an index of `{buffer.name}` is not proved to be in bounds")
    *shape, rows, _ = buffer.shape
    flat = Buffer(f"{buffer.name}.flat", buffer.dtype, (*shape, folded(Mul(rows, width))), buffer.scope)
    places = {outer.var: FloorDiv(number, width), inner.var: FloorMod(number, width)}
    is_in_row = LT(places[inner.var], inner.stop)
    none = {outer.var: const(0, i64), inner.var: const(0, i64)}

    def moved(load: Load) -> Load:
        if load not in read:
            return load
        *others, row, column = load.indices
        begin = Mul(substitute(row, none), width)
        return Load(flat, (*others, folded(Add(Add(number, begin), substitute(column, none)))))

    def kept(store: Store) -> Stmt:
        if store.buffer in own:
            return store
        return IfThenElse(is_in_row, SeqStmt((substitute(store, places),)), SeqStmt(), span=store.span)

    made = rewrite(body, {Load: moved, Store: kept})
    stop = folded(Add(Mul(Sub(outer.stop, const(1, i64)), width), inner.stop))
    return stop, made, View(flat, buffer, const(0, i64))


def moves_by_rows(load: Load, outer: Var, inner: Var) -> bool:
    """Whether the element read moves by a row with one variable, and by one element with the other one."""
    *others, row, column = load.indices
    return (
        (moved_by(row, outer), moved_by(column, inner)) == (1, 1)
        and not mentions((*others, column), outer)
        and not mentions((*others, row), inner)
        and is_steady(*load.indices)
    )


def is_least(func: PrimFunc, loop: For, value: Expr, least: int) -> bool:
    """Whether a value that is fixed before a nest is proved to be at least this, by the branches around a loop."""
    branches = [each for each in statements_of(func.body, IfThenElse) if mentions(each.then_body, (loop,))]
    inside = defined_in(func.body)
    told = [part for each in branches for part in conjuncts(each.condition) if not mentions(part, inside)]
    if mentions(value, inside):
        return False
    from tirlite.rewrite.simplify.simplify import Simplify

    body = SeqStmt((Assert(GE(value, const(least, i64)), ""),))
    for each in told:
        body = SeqStmt((IfThenElse(each, body, SeqStmt()),))
    return next(statements_of(Simplify()(func.replaced(body=body)).body, Assert), None) is None


@record(eq=False)
class Rows:
    """The guard `t % width < length`: of iterations of a loop over t, those in rows of `length` elements."""

    width: Expr
    length: Expr


def rows_of(stmt: Stmt, var: Var) -> Rows | None:
    """The rows in which the iterations lie that a branch selects; None for other statements."""
    condition = stmt.condition if isinstance(stmt, IfThenElse) and not stmt.else_body.stmts else None
    if not (isinstance(condition, LT) and isinstance(condition.a, FloorMod) and condition.a.a is var):
        return None
    return Rows(condition.a.b, condition.b)


# The rows that a vector may touch which is at most twice as long as they are.
_MOST_ROWS = 3


class RowLanes(Lanes):
    """The lanes of one block of a loop across rows that are at least half as long: it touches three of them at most.

    A partial block reads memory under a mask.
    """

    def __init__(self, loop: For, lanes: int, *, is_whole: bool) -> None:
        assert isinstance(loop.start, Var)
        super().__init__(lanes, {loop.var: Ramp.unit(loop.start, lanes)}, neighbours=True)
        self.loop, self.at, self.is_whole = loop, loop.start, is_whole
        self.left: Expr = const(lanes, i64) if is_whole else Min(folded(Sub(loop.stop, loop.start)), const(lanes, i64))

    def block(self, body: SeqStmt) -> SeqStmt:
        """The statements of the loop's body, after the mask that they need."""
        if body is not self.loop.body or self.is_whole:
            return super().block(body)
        on = Let(Var("on", bool_.with_lanes(self.lanes)), self._before(self.left), span=self.loop.span)
        self.some = on.var  # the first lane lies before the end
        return SeqStmt((on, *super().block(body).stmts))

    def statement(self, stmt: Stmt) -> Stmt:
        """A statement for all lanes; of an inner loop two versions, for whole and for partial blocks."""
        if self.is_whole or not self.is_certain or not isinstance(stmt, For):
            return super().statement(stmt)
        known, self.on = [*self.accessed], self.some
        part = super().statement(stmt)
        self.accessed, self.on = known, None
        is_whole = LE(Add(self.at, const(self.lanes, i64)), self.loop.stop)
        return IfThenElse(is_whole, SeqStmt((super().statement(stmt),)), SeqStmt((part,)), span=stmt.span)

    def _branch(self, stmt: IfThenElse) -> Stmt:
        rows = rows_of(stmt, self.loop.var)
        if rows is None:
            return super()._branch(stmt)
        if self.on is not None or not all(isinstance(each, Store) for each in stmt.then_body.stmts):
            raise NotVector
        row, column = Var("row", i64), Var("column", i64)
        made: list[Stmt] = [Let(row, FloorDiv(self.at, rows.width), span=stmt.span)]
        made.append(Let(column, Sub(self.at, Mul(row, rows.width)), span=stmt.span))
        for number in range(_MOST_ROWS):
            behind = folded(Mul(const(number, i64), rows.width))
            begin = Sub(behind, column)  # the lane at which the row begins
            mask = self._before(Min(Sub(folded(Add(behind, rows.length)), column), self.left))
            if number:
                mask = BitAnd(mask, Not(self._before(Min(begin, self.left))))
            on = Let(Var("on", mask.dtype), mask, span=stmt.span)
            first = folded(Sub(column, behind))
            stored = self._stored(stmt, rows, folded(Add(row, const(number, i64))), first, on.var)
            if number:
                some = IfThenElse(LT(begin, self.left), SeqStmt((on, *stored)), SeqStmt(), span=stmt.span)
                made.append(some)
            else:
                made += (on, *stored)
        return SeqStmt(tuple(made))

    def _before(self, count: Expr) -> Expr:
        """The mask of the first `count` lanes, at most as many as there are."""
        return LT(Ramp.unit(const(0, i32), self.lanes), Broadcast(folded(Cast(i32, count)), self.lanes))

    def _stored(self, stmt: IfThenElse, rows: Rows, row: Expr, column: Expr, on: Expr) -> Iterator[Stmt]:
        """The stores by the lanes that are on, in one row; the first lane would lie in this column."""
        lane = Var("column", i64)

        def moved(node: FloorDiv | FloorMod) -> Expr:
            if node.a is not self.loop.var or not are_equal((node.b,), (rows.width,)):
                return node
            return row if isinstance(node, FloorDiv) else lane

        known, around = [*self.accessed], self.some
        # What is the same in all iterations was in bounds in the loop over rows, which is not empty.
        self.values[lane], self.on, self.some = Ramp.unit(column, self.lanes), on, on
        for each in stmt.then_body.stmts:
            store = rewrite(each, {FloorDiv: moved, FloorMod: moved})
            if mentions(store, self.loop.var):
                raise NotVector
            yield super().statement(store)
        self.accessed, self.on, self.some = known, None, around
