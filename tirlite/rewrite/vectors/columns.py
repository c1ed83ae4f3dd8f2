"""Vectorizes loops whose lanes each go along a row of their own: tiles of rows are transposed in registers.

If an inner loop loads the next element of its row in each iteration, the lanes of one vector lie far apart in memory.
So a square tile is loaded row by row and transposed: rows are interleaved with those half the tile further on, log2 of
the number of rows times.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Iterator

from tirlite.analysis.loops.patterns import has_much_to_do, moved_by
from tirlite.ir.checked import masked
from tirlite.ir.dtype import DType, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
from tirlite.ir.expr import (
    GE,
    LE,
    LT,
    Add,
    And,
    Binary,
    Broadcast,
    Buffer,
    Call,
    Expr,
    IntImm,
    Load,
    Min,
    Or,
    Ramp,
    Sub,
    Var,
    const,
)
from tirlite.ir.op import Op
from tirlite.ir.rewrite import substitute
from tirlite.ir.stmt import Allocate, For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store, While
from tirlite.ir.walk import defined_in, loads_in, mentions, statements_of, walk
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.vectors.lanes import MOST_APART, Lanes, NotVector, held, is_at
from tirlite.rewrite.vectors.partials import is_short
from tirlite.target import Processor

# The types of tiles. For loops in order, floats alone: LLVM vectorizes sums of integers by itself.
IN_ORDER = (f32, f64)
# With fewer columns than this, a processor overlaps several rows, so their latencies are hidden anyway. Rows of results
# are transposed twice.
_FEWEST_COLUMNS = 8
_FEWEST_STORED = 32
# Transposing a tile of a single column is slower than loading its elements one by one.
_FEWEST_TURNED = 2
# The bytes of elements for which every processor with masks has masked loads.
_MASKED = (4, 8)
TURNED = (f32, f64, i8, u8, i16, u16, i32, u32, i64, u64)


@record(eq=False)
class _RowTile:
    """A load in a loop over `along`, and the buffer with the transposed tile, which begins at `begin`."""

    load: Load
    along: Var
    buffer: Buffer
    begin: Expr


@record(eq=False)
class Memory:
    """`root` gives the allocation that a view belongs to; `written` are those that the iterations of a loop write."""

    root: Callable[[Buffer], Buffer]
    written: Container[Buffer]

    def is_steady(self, buffer: Buffer) -> bool:
        return self.root(buffer) not in self.written


class Columns(Lanes):
    """Lanes of a loop over `var`, from its value `first` on, some of which load along rows.

    `is_steady` says of a buffer that nothing writes it while the loop runs. `dtypes` are those of tiles. With
    `stores_rows`, inner loops may store along rows as well, in the way that suits `processor`.
    """

    def __init__(
        self,
        var: Var,
        first: Expr,
        lanes: int,
        is_inside: Callable[[Load], bool],
        is_steady: Callable[[Buffer], bool],
        dtypes: tuple[DType, ...],
        processor: Processor,
        *,
        stores_rows: bool,
    ) -> None:
        super().__init__(lanes, {var: Ramp.unit(first, lanes)}, neighbours=True, is_inside=is_inside)
        self.var = var
        self.first = first
        self.is_steady = is_steady
        self.dtypes = dtypes
        self.processor = processor
        self.stores_rows = stores_rows
        self.tiles: list[_RowTile] = []
        self.outgoing: list[_RowTile] = []
        # Loop-invariant elements of inner loops that are not contiguous between lanes, and the buffers that collect
        # them.
        self.collected: list[tuple[Load, Buffer]] = []
        self.before: list[Stmt] = []
        self.inside: set[object] = set()  # the inner loops and branches being written, and the names defined there

    def statement(self, stmt: Stmt) -> Stmt:
        """A statement for all lanes; inner loops along rows go by tiles. Raises NotVector."""
        if self.inside:
            return self._statement(stmt)
        made = self._statement(stmt)
        if self.before:
            made, self.before = SeqStmt((*self.before, made)), []
        return made

    def _statement(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, For | IfThenElse | While):
            outside, self.inside = self.inside, self.inside | {stmt, *defined_in(stmt)}
            made = self._composite(stmt)
            self.inside = outside
            return made
        if isinstance(stmt, Store) and not self.inside and self.on is None and stmt.buffer not in self.wide:
            return self._stored(stmt)
        if isinstance(stmt, Store):
            tile = next((tile for tile in self.outgoing if is_at(Load(stmt.buffer, stmt.indices), tile.load)), None)
            if tile is not None:
                value = self.spread(self.of(stmt.value))
                return Store(tile.buffer, self._place_in(tile), value, span=stmt.span)
        return super().statement(stmt)

    def _stored(self, stmt: Store) -> Stmt:
        """A store of a vector, or scalar stores from a buffer with the values of all lanes."""
        try:
            return super().statement(stmt)
        except NotVector:
            if not self._is_known(stmt, set()):
                raise
        stage, lane = self._stage(stmt.buffer), Var("lane")
        place = {self.var: folded(Add(self.first, lane))}
        indices = tuple(folded(substitute(index, place)) for index in stmt.indices)
        one = Store(stmt.buffer, indices, Load(stage, (lane,)), span=stmt.span)
        return SeqStmt(
            (
                Allocate(stage, span=stmt.span),
                Store(stage, (self._lane_numbers(const(0, i64)),), self.spread(self.of(stmt.value)), span=stmt.span),
                For(lane, const(0, i64), const(self.lanes, i64), SeqStmt((one,)), span=stmt.span),
            )
        )

    def _stage(self, buffer: Buffer) -> Buffer:
        return Buffer(f"{buffer.name}.lanes", buffer.dtype, (const(self.lanes, i64),), "local")

    def _is_known(self, node: Load | Store, inside: set[object]) -> bool:
        """Whether the index depends on no varying name but the iteration, and lanes are not adjacent."""
        nodes = [*walk(*node.indices)]
        names = {each for each in nodes if isinstance(each, Var)}
        is_plain = node.buffer.dtype.lanes == 1 and not node.buffer.volatile
        if not is_plain or any(isinstance(each, Load | Call) for each in nodes) or names & inside:
            return False
        *row, last = node.indices or (const(0, i64),)
        is_beside = not mentions(row, self.var) and moved_by(last, self.var) == 1
        return {name for name in names if name in self.values} == {self.var} and not is_beside

    def _from_stage(self, load: Load) -> Expr | None:
        """The elements that lanes load outside of inner loops, loaded one by one before the statement."""
        whole = (self._lane_numbers(const(0, i64)),)
        for known, stage in self.collected:
            if is_at(load, known):
                return Load(stage, whole)
        is_surely = not self.inside and self.on is None and not self.is_lazy
        is_known = load.buffer not in self.wide and self._is_known(load, self.inside)
        if not is_known or not self.is_steady(load.buffer):
            return None
        if not is_surely and not self.is_inside(load):
            return None
        stage, lane = self._stage(load.buffer), Var("lane")
        place = {self.var: folded(Add(self.first, lane))}
        one = Load(load.buffer, tuple(folded(substitute(index, place)) for index in load.indices))
        self.before.append(Allocate(stage))
        self.before.append(For(lane, const(0, i64), const(self.lanes, i64), SeqStmt((Store(stage, (lane,), one),))))
        self.collected.append((load, stage))
        return Load(stage, whole)

    def _composite(self, stmt: For | IfThenElse | While) -> Stmt:
        if isinstance(stmt, For) and stmt.step == 1 and self.on is None and _is_in_order(stmt):
            loads, stores = self._along_rows(stmt), self._stores_along_rows(stmt)
            if loads or stores:
                return SeqStmt((*self._by_tiles(stmt, loads, stores),))
        return super().statement(stmt)

    def moved(self, load: Load) -> Expr | None:
        tile = next((tile for tile in self.tiles if is_at(load, tile.load)), None)
        if tile is None:
            return self._from_stage(load)
        return Load(tile.buffer, self._place_in(tile))

    def _place_in(self, tile: _RowTile) -> tuple[Expr, ...]:
        """The indices in a tile of the elements that all lanes load in one iteration."""
        return folded(Sub(tile.along, tile.begin)), self._lane_numbers(const(0, i64))

    def _stores_along_rows(self, loop: For) -> list[Load]:
        """The elements that each iteration stores along the lanes' rows, as loads; each in a buffer of its own."""
        stores = [stmt for stmt in statements_of(loop.body, Store) if self.stores_rows]
        defined, found = defined_in(loop), []
        for stmt in loop.body.stmts:
            if isinstance(stmt, Store) and sum(each.buffer is stmt.buffer for each in stores) == 1:
                element = Load(stmt.buffer, stmt.indices)
                if self._goes_along(element, loop, defined):
                    found.append(element)
        return found

    def _along_rows(self, loop: For) -> list[Load]:
        """The loads along the lanes' rows. Raises NotVector for one that not all lanes make."""
        found: list[Load] = []
        defined = defined_in(loop)
        for load, is_certain in loads_of(loop.body):
            is_along = self._goes_along(load, loop, defined) and self.is_steady(load.buffer)
            if not is_along or any(is_at(load, each) for each in found):
                continue
            if not is_certain and not self.is_inside(load):
                raise NotVector
            found.append(load)
        return found

    def _goes_along(self, load: Load, loop: For, defined: set[object]) -> bool:
        """Whether iterations of an inner loop access adjacent elements, and lanes different rows."""
        if load.buffer in self.wide or load.dtype not in self.dtypes or load.buffer.volatile or not load.indices:
            return False
        *row, last = load.indices
        nodes = [*walk(*load.indices)]
        own = {node for node in nodes if isinstance(node, Var) and node in self.values}
        if own != {self.var} or any(isinstance(node, Load | Call) for node in nodes):
            return False
        inside = [node for node in nodes if node in defined]
        if inside != [loop.var] or moved_by(last, loop.var) != 1:
            return False
        # If the lanes are contiguous, they need no tile.
        return not (mentions(last, self.var) and not mentions(row, self.var) and moved_by(last, self.var) == 1)

    def _by_tiles(self, loop: For, loads: list[Load], stores: list[Load]) -> Iterator[Stmt]:
        """The loop over tiles of the rows, the last of which may be partial."""
        if self.of(loop.start) is not loop.start or self.of(loop.stop) is not loop.stop:
            raise NotVector
        if not isinstance(loop.start, IntImm) or not isinstance(loop.stop, IntImm | Var):
            start, stop = Var("start"), Var("stop")
            yield Let(start, loop.start, span=loop.span)
            yield Let(stop, loop.stop, span=loop.span)
            loop = loop.replaced(start=start, stop=stop)
        count, at = loop.count, Var("tile")
        following = folded(Add(at, const(self.lanes, i64)))
        tail = count.value % self.lanes if isinstance(count, IntImm) else None
        if tail != 0 and all(element.dtype.bytes in _MASKED for element in (*loads, *stores)):
            # The body is long code, so it is written once, with a mask.
            part = self._part(loop, loads, stores, at, folded(Min(following, loop.stop)))
            yield For(at, loop.start, loop.stop, part, step=self.lanes, span=loop.span)
            return
        count = yield from held(count, "count", loop)
        whole = folded(Sub(count, const(tail, i64) if tail is not None else count % self.lanes))
        middle = yield from held(folded(Add(loop.start, whole)), "middle", loop)
        if not isinstance(count, IntImm) or count.value >= self.lanes:
            body = SeqStmt((*self._tile(loop, loads, stores, at, following, None),))
            yield For(at, loop.start, middle, body, step=self.lanes, span=loop.span)
        if tail != 0:
            part = self._part(loop, loads, stores, middle, loop.stop)
            yield IfThenElse(LT(middle, loop.stop), part, SeqStmt())

    def _part(self, loop: For, loads: list[Load], stores: list[Load], begin: Expr, end: Expr) -> SeqStmt:
        """A tile that may reach beyond the end, under a mask."""
        there = LT(self._lane_numbers(begin), self.spread(loop.stop))
        on = Var("left", there.dtype)
        return SeqStmt((Let(on, there), *self._tile(loop, loads, stores, begin, end, on)))

    def _lane_numbers(self, begin: Expr) -> Expr:
        return Ramp.unit(begin, self.lanes)

    def _tile(
        self, loop: For, loads: list[Load], stores: list[Load], begin: Expr, end: Expr, on: Expr | None
    ) -> Iterator[Stmt]:
        """The iterations from `begin` to `end`, after loading their tiles and before storing the results."""
        outer = len(self.tiles), len(self.outgoing)
        for elements, tiles in ((loads, self.tiles), (stores, self.outgoing)):
            for element in elements:
                shape = (const(self.lanes, i64), const(self.lanes, i64))
                tile = _RowTile(
                    element, loop.var, Buffer(f"{element.buffer.name}.columns", element.dtype, shape, "local"), begin
                )
                yield Allocate(tile.buffer, span=loop.span)
                if tiles is self.tiles:
                    yield from self._loaded(tile, on)
                tiles.append(tile)
        yield loop.replaced(start=begin, stop=end, body=self._uncertain(loop.body))
        for tile in self.outgoing[outer[1] :]:
            yield from self._stored_back(tile, loop.stop, on)
        del self.tiles[outer[0] :]
        del self.outgoing[outer[1] :]

    def _loaded(self, tile: _RowTile, on: Expr | None) -> Iterator[Stmt]:
        rows: list[Expr] = [Load(tile.load.buffer, indices) for indices in self._rows(tile, 0, 0, self.lanes, on)]
        columns = yield from transposed(rows)
        for number, column in enumerate(columns):
            yield Store(tile.buffer, (const(number, i64), self._lane_numbers(const(0, i64))), column)

    def _stored_back(self, tile: _RowTile, stop: Expr, on: Expr | None) -> Iterator[Stmt]:
        if on is None:
            yield from self._by_blocks(tile, stop, None)
            return
        # Elements too narrow for masks are stored lane by lane anyway.
        if self.processor.masks_stores_slowly and self.processor.has_masks(tile.load.dtype.bytes):
            part = SeqStmt((self._one_by_one(tile, stop),))
        else:
            part = SeqStmt((*self._by_blocks(tile, stop, on),))
        is_whole = LE(Add(tile.begin, const(self.lanes, i64)), stop)
        yield IfThenElse(is_whole, SeqStmt((*self._by_blocks(tile, stop, None),)), part)

    def side_of(self, element: Load) -> int:
        """The rows and columns of the blocks that are transposed before they are stored."""
        return min(self.lanes, self.processor.interleaved_bytes // element.dtype.bytes)

    def _by_blocks(self, tile: _RowTile, stop: Expr, on: Expr | None) -> Iterator[Stmt]:
        """Stores the rows of a tile by blocks, under a mask if `on`: some processors interleave only narrow vectors.

        Loaded tiles are transposed as a whole: vectors stored in parts would stall the loads of the inner loop.
        """
        side = self.side_of(tile.load)
        for row in range(0, self.lanes, side):
            lanes = Ramp.unit(row, side)
            for column in range(0, self.lanes, side):
                columns = (Load(tile.buffer, (const(column + each, i64), lanes)) for each in range(side))
                rows = yield from transposed([*columns])
                if on is not None and side < self.lanes:
                    on = LT(Ramp.unit(folded(Add(tile.begin, const(column, i64))), side), Broadcast(stop, side))
                places = self._rows(tile, row, column, side, on)
                yield from (Store(tile.load.buffer, at, value) for at, value in zip(places, rows, strict=True))

    def _one_by_one(self, tile: _RowTile, stop: Expr) -> Stmt:
        """Stores the existing elements of the rows of a tile one by one, without masks."""
        lane, at = Var("lane"), Var(tile.along.name)
        place = {self.var: folded(Add(self.first, lane)), tile.along: at}
        indices = tuple(folded(substitute(index, place)) for index in tile.load.indices)
        store = Store(tile.load.buffer, indices, Load(tile.buffer, (folded(Sub(at, tile.begin)), lane)))
        lanes = For(lane, const(0, i64), const(self.lanes, i64), SeqStmt((store,)))
        # The bound shows code generation that the loop is short: LLVM need not vectorize it.
        end = Min(folded(Add(tile.begin, const(self.lanes, i64))), stop)
        return For(at, tile.begin, end, SeqStmt((lanes,)))

    def _rows(self, tile: _RowTile, first: int, column: int, side: int, on: Expr | None) -> Iterator[tuple[Expr, ...]]:
        """The indices of `side` rows of a tile, from row `first` and `column` on."""
        begin = folded(Add(tile.begin, const(column, i64)))
        for lane in range(first, first + side):
            places = {self.var: folded(Add(self.first, const(lane, i64))), tile.along: begin}
            *row, last = (folded(substitute(index, places)) for index in tile.load.indices)
            part = Ramp.unit(last, side)
            yield (*row, part if on is None else masked(part, on))


def by_columns(
    loop: For, inside: Callable[[Load], bool], memory: Memory, processor: Processor, *, in_order: bool
) -> tuple[Callable[[Expr, int], Columns], int, Expr | None]:
    """Lanes of a loop from an iteration on, their number, and the condition under which they pay, or None for always.

    With inner loops `in_order`, tiles are of floats alone. Rows are stored by tiles only if inner loops run in order or
    read rows of lanes: independent iterations store faster along rows.
    """
    dtypes = IN_ORDER if in_order else TURNED
    stores_rows = in_order or takes_rows_of_lanes(loop)

    def lanes(first: Expr, count: int) -> Columns:
        return Columns(loop.var, first, count, inside, memory.is_steady, dtypes, processor, stores_rows=stores_rows)

    in_turn = _FEWEST_STORED if _stores_along(loop) else _FEWEST_COLUMNS
    pays = _many_columns(loop, in_turn if in_order else _FEWEST_TURNED)
    return lanes, _lanes_of(loop, dtypes, processor), pays


def transposed(vectors: list[Expr]) -> Generator[Stmt, None, list[Expr]]:
    """Transposes a square of vectors; yields the Lets on the way, and returns the transposed vectors."""

    def named(value: Expr) -> Let:
        return Let(Var("row", value.dtype), value)

    lets = [named(vector) for vector in vectors]
    yield from lets
    half = len(vectors) // 2
    for _ in range(len(vectors).bit_length() - 1):
        rows = [let.var for let in lets]
        lets = [
            named(Call(one.dtype, op, (one, other)))
            for one, other in zip(rows[:half], rows[half:], strict=True)
            for op in (Op.INTERLEAVE_LOW, Op.INTERLEAVE_HIGH)
        ]
        yield from lets
    return [let.var for let in lets]


def _is_in_order(loop: For) -> bool:
    """Whether the iterations of a loop run in order."""
    return loop.kind is ForKind.SERIAL or is_short(loop)


def _lanes_of(loop: For, dtypes: tuple[DType, ...], processor: Processor) -> int:
    """The number of columns: as many as a register holds of the widest of these dtypes.

    So a transposed tile takes as many registers, which a processor has.
    """
    loaded = (load.dtype.bytes for load in loads_in(loop.body) if load.dtype in dtypes)
    return processor.vector_bytes // max([4, *loaded])


def _stores_along(loop: For) -> bool:
    """Whether an inner loop stores along rows."""
    inner = (each for each in statements_of(loop.body, For))
    return any(mentions(store.indices, each.var) for each in inner for store in statements_of(each.body, Store))


def _many_columns(loop: For, fewest: int) -> Expr | None:
    """The condition that the only inner loop has enough iterations for vectors to pay; None if it always has."""
    inner = [*statements_of(loop.body, For)]
    if len(inner) != 1:
        return None
    count = inner[0].count
    is_told = all(isinstance(node, IntImm | Binary) or (isinstance(node, Var) and node.dim) for node in walk(count))
    if isinstance(count, IntImm) or not is_told or has_much_to_do(inner[0]):
        return None
    return GE(count, const(fewest, i64))


def takes_rows_of_lanes(loop: For) -> bool:
    """Whether an inner loop steps from row to row, and iterations of `loop` load adjacent elements of them.

    So does a transpose `y[j, i] = x[i, j]`, with i inside of j. For few rows, LLVM interleaves vectors itself.
    """
    return any(
        mentions(row, inner.var) and moved_by(last, loop.var) == 1
        for inner in statements_of(loop.body, For)
        if inner.values is None or len(inner.values) > MOST_APART
        for load, _ in loads_of(inner.body)
        if load.indices
        for *row, last in (load.indices,)
    )


def loads_of(body: SeqStmt) -> Iterator[tuple[Load, bool]]:
    """The loads of a body outside of inner loops, and whether every iteration makes them."""
    todo: list[tuple[Stmt | Expr, bool]] = [(stmt, True) for stmt in reversed(body.stmts)]
    while todo:
        node, is_certain = todo.pop()
        if type(node) is Var or type(node) is IntImm:  # a shortcut for most nodes
            continue
        if isinstance(node, IfThenElse):
            todo += ((stmt, False) for stmt in (*node.else_body.stmts, *node.then_body.stmts))
            todo.append((node.condition, is_certain))
        elif isinstance(node, And | Or) or (isinstance(node, Call) and node.op is Op.IF_THEN_ELSE):
            first, *others = node.children()
            todo += ((each, False) for each in others if isinstance(each, Expr))
            todo += ((each, is_certain) for each in (first,) if isinstance(each, Expr))
        elif isinstance(node, Let | Store | Expr):
            if isinstance(node, Load):
                yield node, is_certain
            todo += ((each, is_certain) for each in node.children() if isinstance(each, Expr))
