"""Gives each lane a row of its own if rows are short: blocks of rows are transposed once, before they are used.

A reduction along a row ends in a horizontal sum over the lanes, which is slower than the elements of a short row. With
a row in each lane there is no such sum, and rows that several loops read are transposed once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from functools import reduce
from typing import TypeAlias

from tirlite.ir.checked import masked
from tirlite.ir.dtype import i64
from tirlite.ir.equal import are_equal
from tirlite.ir.expr import (
    GE,
    LE,
    LT,
    Add,
    And,
    Broadcast,
    Buffer,
    Expr,
    FloorDiv,
    IntImm,
    Load,
    Min,
    Mul,
    Ramp,
    Sub,
    Var,
    const,
)
from tirlite.ir.rewrite import substitute
from tirlite.ir.stmt import Allocate, For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store, While
from tirlite.ir.walk import defined_in, loads_in, statements, statements_of, walk
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.vectors.columns import TURNED, Columns, Memory, transposed
from tirlite.rewrite.vectors.lanes import NotVector, is_at
from tirlite.rewrite.vectors.partials import is_short
from tirlite.rewrite.vectors.vector_loops import VectorLoops
from tirlite.target import Processor

# A horizontal sum takes as long as transposing this many columns for each lane.
_PER_SUM = 1.5
# Rows are processed by this many registers at once, whose latencies overlap.
_REGISTERS = 2
# Tiles of this many rows and columns take no more instructions to transpose than larger ones, and less code.
_TILE = 8
# Fewer sums, as in a product of a matrix and a vector, are not worth LLVM's time.
_FEWEST_SUMS = 2
# The assumed number of runs of a reduction inside another loop.
_REPEATED = 4
# The bytes of the transposed rows of one array: an eighth of the first-level cache of most processors.
_MOST_BYTES = 4096


@record(eq=False)
class _LaneRow:
    """The rows that lanes access: the first element, the number of elements, and the buffer with the columns."""

    first: Load
    count: Expr
    buffer: Buffer


_Places: TypeAlias = "Sequence[tuple[Expr, ...]]"
_Turned: TypeAlias = Callable[[_LaneRow, _Places, _Places], Iterator[Stmt]]


class ShortRows(Columns):
    """Lanes of a loop, each with a row of at most `most` elements, transposed before the iterations."""

    def __init__(
        self,
        loop: For,
        most: int,
        first: Expr,
        lanes: int,
        is_inside: Callable[[Load], bool],
        memory: Memory,
        processor: Processor,
    ) -> None:
        steady = memory.is_steady
        super().__init__(loop.var, first, lanes, is_inside, steady, TURNED, processor, stores_rows=True)
        self.memory = memory
        self.loop = loop
        self.most = most
        self.own = defined_in(loop)
        self.open: list[For | IfThenElse | While] = []
        self.rows: list[_LaneRow] = []
        self.stored: list[_LaneRow] = []
        # Arrays that are written and also accessed other than by rows, and arrays loaded before they are stored.
        self.loose: set[Buffer] = set()
        self.begun: set[Buffer] = set()

    def block(self, body: SeqStmt) -> SeqStmt:
        """The statements of a body, and after a whole iteration the stores of its rows. Raises NotVector."""
        if self.open:
            return super().block(body)
        if self.on is not None:
            raise NotVector
        made = super().block(body)
        rows = {self.memory.root(row.first.buffer) for row in self.rows}
        if not rows or not rows.isdisjoint(self.loose):
            raise NotVector
        return SeqStmt((*made.stmts, *(stmt for row in self.stored for stmt in self._put_back(row))))

    @property
    def set_anew(self) -> set[Buffer]:
        """The buffers with rows that are stored as a whole before any of them is loaded."""
        return {self.memory.root(row.first.buffer) for row in self.stored} - self.begun

    def _composite(self, stmt: For | IfThenElse | While) -> Stmt:
        if isinstance(stmt, For) and stmt.kind is ForKind.REDUCE:
            stmt = stmt.replaced(kind=ForKind.SERIAL)
        self.open.append(stmt)
        made = super(Columns, self).statement(stmt)
        self.open.pop()
        return made

    def _statement(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, Store) and stmt.buffer not in self.wide:
            place = self._in_row(Load(stmt.buffer, stmt.indices), is_stored=True)
            if place is not None and (self.on is not None or len(self.open) > 1):
                raise NotVector
            if place is not None:
                return Store(place.buffer, place.indices, self.spread(self.of(stmt.value)), span=stmt.span)
            self.loose.add(self.memory.root(stmt.buffer))
        return super()._statement(stmt)

    def moved(self, load: Load) -> Expr | None:
        if load.buffer in self.wide:
            return None
        place = self._in_row(load, is_stored=False)
        if place is None and not self.is_steady(load.buffer):
            self.loose.add(self.memory.root(load.buffer))
        return self._from_stage(load) if place is None else place

    def _in_row(self, element: Load, *, is_stored: bool) -> Load | None:
        """The element in the transposed rows; None for an element of no row."""
        loop = next((each for each in self.open if self._follows(element, each)), None)
        if loop is None or not isinstance(loop, For):
            return None
        first = folded(substitute(element, {loop.var: loop.start}))
        assert isinstance(first, Load)
        row = self._row(first, folded(loop.count), element, is_stored=is_stored)
        at = folded(Sub(loop.var, loop.start))
        return Load(row.buffer, (at, self._lane_numbers(const(0, i64))))

    def _follows(self, element: Load, loop: For | IfThenElse | While) -> bool:
        """Whether an inner loop, with bounds known before the iteration, goes along the row of an element."""
        if not isinstance(loop, For) or loop.step != 1 or not self.is_known(loop):
            return False
        return self._goes_along(element, loop, self.inside)

    def is_known(self, loop: For) -> bool:
        """Whether the bounds of an inner loop are known before the iteration."""
        return not any(isinstance(node, Load) or node in self.own for node in walk(loop.start, loop.stop))

    def _row(self, first: Load, count: Expr, element: Load, *, is_stored: bool) -> _LaneRow:
        """The row with this first element, transposed in front if it is new. Raises NotVector."""
        steady = self.is_steady(first.buffer)
        row = next((r for r in self.rows if is_at(first, r.first) and are_equal((count,), (r.count,))), None)
        if (
            row is None
            and not steady
            and any(self.memory.root(r.first.buffer) is self.memory.root(first.buffer) for r in self.rows)
        ):
            raise NotVector  # rows of one array that is written may overlap
        if row is None:
            if isinstance(count, IntImm) and count.value > self.most:
                raise NotVector
            shape = (const(-(-self.most // _TILE) * _TILE, i64), const(self.lanes, i64))
            row = _LaneRow(first, count, Buffer(f"{first.buffer.name}.columns", first.dtype, shape, "local"))
            self.before.append(Allocate(row.buffer))
            if not is_stored:
                if not self.is_inside(element):
                    raise NotVector
                self.before += self._tiles(row, self._taken, row.count, min(_TILE, self.lanes))
                self.begun.add(self.memory.root(first.buffer))
            self.rows.append(row)
        if is_stored and row not in self.stored:
            self.stored.append(row)
        return row

    def _tiles(self, row: _LaneRow, turned: _Turned, stop: Expr, tile: int, *, is_part: bool = True) -> Iterator[Stmt]:
        """Loops over square tiles of rows; the last tiles may be masked."""
        at, group = Var("tile"), Var("group")
        column = Ramp.unit(at, tile)
        left = LT(column, Broadcast(stop, tile))
        on = Var("left", left.dtype)
        parts: list[tuple[Expr, ...]] = []
        for lane in range(tile):
            *before, last = self._index(row, folded(Add(group, const(lane, i64))))
            part = Ramp.unit(folded(Add(last, at)), tile)
            parts.append((*before, masked(part, on) if is_part else part))
        columns = [(folded(Add(at, const(each, i64))), Ramp.unit(group, tile)) for each in range(tile)]
        rows = SeqStmt((*turned(row, parts, columns),))
        groups = For(group, const(0, i64), const(self.lanes, i64), rows, step=tile)
        yield For(at, const(0, i64), stop, SeqStmt((Let(on, left), groups) if is_part else (groups,)), step=tile)

    def _index(self, row: _LaneRow, lane: Expr) -> Iterator[Expr]:
        """The indices of the first element of a lane's row."""
        place = {self.var: folded(Add(self.first, lane))}
        return (folded(substitute(index, place)) for index in row.first.indices)

    def _taken(self, row: _LaneRow, parts: _Places, columns: _Places) -> Iterator[Stmt]:
        vectors = yield from transposed([Load(row.first.buffer, part) for part in parts])
        yield from (Store(row.buffer, column, vector) for column, vector in zip(columns, vectors, strict=True))

    def _put_back(self, row: _LaneRow) -> Iterator[Stmt]:
        """Stores rows as a whole; where masked stores are slow, the rest that fills no tile element by element."""
        tile = min(_TILE, self.side_of(row.first))
        if not self.processor.masks_stores_slowly:
            yield from self._tiles(row, self._stored_rows, row.count, tile)
            return
        whole = folded(Mul(FloorDiv(row.count, const(tile, i64)), const(tile, i64)))
        yield from self._tiles(row, self._stored_rows, whole, tile, is_part=False)
        at, lane = Var("at"), Var("lane")
        *before, last = self._index(row, lane)
        store = Store(row.first.buffer, (*before, folded(Add(last, at))), Load(row.buffer, (at, lane)))
        # The bound shows code generation that the loop is short: LLVM need not vectorize it.
        number = Min(const(self.lanes, i64), self.loop.count)
        lanes = For(lane, const(0, i64), number, SeqStmt((store,)))
        yield For(at, whole, row.count, SeqStmt((lanes,)))

    def _stored_rows(self, row: _LaneRow, parts: _Places, columns: _Places) -> Iterator[Stmt]:
        vectors = yield from transposed([Load(row.buffer, column) for column in columns])
        yield from (Store(row.first.buffer, part, vector) for part, vector in zip(parts, vectors, strict=True))


def with_short_rows(
    loop: For,
    body: SeqStmt,
    is_inside: Callable[[Load], bool],
    memory: Memory,
    processor: Processor,
    is_repeatable: Callable[[Container[Buffer]], bool],
) -> tuple[Expr | None, tuple[Stmt, ...]] | None:
    """The condition that rows are many and short, and the loop with a row in each lane; None if there is no such form.

    `is_repeatable` says whether iterations that run twice write the same values in all but some buffers.
    """
    reductions = [each for each in statements_of(loop.body, For) if each.kind is ForKind.REDUCE]
    repeated = any(each not in loop.body.stmts for each in reductions)
    sums = len(reductions) * (_REPEATED if repeated else 1)
    around = [each for each in loop.body.stmts if isinstance(each, For) and each not in reductions]
    if sums < _FEWEST_SUMS or not processor.has_masks(4) or all(map(is_short, reductions)):
        return None
    loads = (node for node in loads_in(*statements(body)) if node.indices)
    vector = processor.vector_bytes // max([4, *(load.dtype.bytes for load in loads if load.dtype in TURNED)])
    most, lanes = min(_MOST_BYTES // processor.vector_bytes, int(_PER_SUM * vector * sums)), _REGISTERS * vector

    def rows_from(first: Expr, lanes: int) -> ShortRows:
        return ShortRows(loop, most, first, lanes, is_inside, memory, processor)

    trial, rows = rows_from(loop.var, lanes), loop.count
    if isinstance(rows, IntImm) and rows.value < lanes:
        return None
    try:
        trial.block(body)
        if not is_repeatable(trial.set_anew):
            return None
        made = VectorLoops(loop, body, rows_from, (lanes, lanes), is_repeatable=True)
        stmts = (*made.vectors(rows, folded(Add(loop.start, rows))),)
    except NotVector:
        return None
    bounds: list[Expr] = [] if isinstance(rows, IntImm) else [GE(rows, const(lanes, i64))]
    found = [LE(row.count, const(most, i64)) for row in trial.rows if not isinstance(row.count, IntImm)]
    if repeated and len(around) == 1 and trial.is_known(around[0]) and not isinstance(around[0].count, IntImm):
        # The last block may be mostly rows of the one before, so each run of the loop must be worth more.
        worth = folded(Mul(around[0].count, const(vector * len(reductions), i64)))
        found += [LE(row.count, worth) for row in trial.rows if row not in trial.stored]
    for bound in found:
        bounds += () if any(are_equal((bound,), (each,)) for each in bounds) else (bound,)
    return (reduce(And, bounds) if bounds else None), stmts
