"""Splits a reduction into blocks of iterations: each block has a partial result, and these are combined afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce

from tirlite.analysis.facts import Facts
from tirlite.analysis.integers.definitions import Definitions
from tirlite.analysis.loops.patterns import has_much_to_do
from tirlite.analysis.loops.reductions import AnyUpdate, PairUpdate, Update
from tirlite.analysis.loops.regrouping import updates_in
from tirlite.ir.dtype import i64
from tirlite.ir.expr import (
    GT,
    LE,
    Add,
    And,
    Buffer,
    Expr,
    FloorDiv,
    IntImm,
    Load,
    Max,
    Min,
    Mul,
    Or,
    Ramp,
    Sub,
    Var,
    const,
)
from tirlite.ir.node import Node
from tirlite.ir.rewrite import Rule, rewrite, substitute
from tirlite.ir.shapes import constant_bytes
from tirlite.ir.stmt import Allocate, For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store, View, counting, nested
from tirlite.ir.walk import buffers_of, defined_in, loads_in, mentions, statements, statements_of, walk
from tirlite.record import cached_property
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.vectors.first_place import Search, search_in
from tirlite.rewrite.vectors.jam import by_rows
from tirlite.rewrite.vectors.lane_partials import Partials
from tirlite.rewrite.vectors.lanes import Lanes, held, is_at
from tirlite.rewrite.vectors.partials import vector_lanes

# The most blocks; the most copies of an array, one per block, and their bytes.
_MOST_BLOCKS = 64
_COPIES = 8
_COPIES_BYTES = 1 << 18
# The most elements of an array whose extents are not known, of which each block has a copy.
_COPIED_ROW = 1 << 13
# Consecutive iterations use this many copies of an array of up to this many bytes, so that updates do not wait.
_TURNS = 4
_TURN_BYTES = 1 << 12
# The fewest iterations of a block: in general, with inner loops, where these update a copied row, and per element of
# another copied array.
_LEAST = 4096
_LEAST_OF_NESTS = 16
_LEAST_OF_ROWS = 128
_LEAST_PER_COPY = 16
# Initializing and combining copies of fewer elements takes too little time to need a form without them.
_WORTH_A_FORM = 64
_PLAIN = (Store, Let, For, IfThenElse, Allocate, SeqStmt)
_INSIDE = (ForKind.REDUCE, ForKind.SERIAL, ForKind.UNROLLED)


def in_blocks(
    loop: For, kind: ForKind, facts: Facts, bounds: Mapping[Expr, int], *, repeats: bool, sparing: bool
) -> tuple[Stmt, ...] | None:
    """What replaces a reduction; None if it stays. The loop over blocks has this kind.

    `bounds` are upper bounds of some counts here. If an outer loop `repeats` the reduction, it stays whole unless there
    are several blocks, since starting workers takes longer than short rows do. So does one with at most as many
    iterations as a block's copies have elements to set and combine. With `sparing`, no array has copies whose size is
    not known.
    """
    if loop.step != 1 or not all(map(_is_plain, statements(loop.body))):
        return None
    updates = updates_in(loop, facts)
    if not isinstance(updates, tuple) or not updates:
        return None
    if len(updates) == 1 and isinstance(updates[0], PairUpdate) and (search := search_in(loop, updates[0])):
        blocks: _BlockLoop = _Searched(search, kind)
    elif results := _results(updates, loop, windows=kind is ForKind.SERIAL, sparing=sparing):
        blocks = _BlockLoop(loop, kind, results)
        if all(map(_is_of_integers, updates)) and not has_much_to_do(loop) and not _loads_by_tests(loop):
            blocks.inside = ForKind.SERIAL
            blocks.take_turns()
    else:
        return None
    stores = [store for update in updates for store in update.stores]
    if not all(_may_move(store.buffer, loop, facts.definitions) for store in stores):
        return None
    most = blocks.count.value if isinstance(blocks.count, IntImm) else None
    if isinstance(blocks.count, Var) and blocks.count.dim is not None:
        most = blocks.count.dim.high
    most = bounds.get(blocks.count, most)
    if most is not None and most < 2 * blocks.least:
        return None
    stmts = (*blocks.statements(),)
    rows = [each.size for each in blocks.results if isinstance(each, Copies) and not isinstance(each.size, IntImm)]
    few = blocks.least if repeats or rows else max(each.elements for each in blocks.results)
    if not rows and ((not repeats and few < _WORTH_A_FORM) or isinstance(blocks.count, IntImm)):
        return stmts
    whole = SeqStmt((loop.replaced(kind=blocks.inside),))
    stays: Expr = LE(blocks.count, const(few, i64))
    for size in rows:
        stays = Or(stays, GT(size, const(_COPIED_ROW, i64)))
    return (IfThenElse(stays, whole, SeqStmt(stmts), span=loop.span),)


def _is_plain(stmt: Stmt) -> bool:
    return isinstance(stmt, _PLAIN) and (not isinstance(stmt, For) or stmt.kind in _INSIDE)


def _may_move(buffer: Buffer, loop: For, definitions: Definitions) -> bool:
    """Whether a loop accesses a buffer only under its own name, and it is not volatile."""
    mentioned = {each for node in walk(*statements(loop)) for each in buffers_of(node)}
    return not buffer.volatile and all(
        each is buffer for each in mentioned if definitions.root(each) is definitions.root(buffer)
    )


def _results(updates: tuple[AnyUpdate, ...], loop: For, *, windows: bool, sparing: bool) -> list[Cells | Copies] | None:
    """The partial results of blocks: scalars for a fixed element, or a copy of an array. None if there is no form."""
    inside = defined_in(loop)
    found: list[Cells | Copies] = []
    moving: dict[Buffer, Copies] = {}
    for update in updates:
        stores = update.stores
        is_vector = any(store.value.dtype.lanes > 1 or store.buffer.dtype.lanes > 1 for store in stores)
        indices = [node for store in stores for node in walk(*store.indices)]
        moves = any(node in inside or isinstance(node, Load) for node in indices)
        if is_vector or any(each.covers(store) for each in found for store in stores):
            if is_vector or isinstance(update, PairUpdate):
                return None
        elif not moves:
            if not all(store in loop.body.stmts or _is_there(store) for store in stores):
                return None
            found.append(Cells(update))
        elif isinstance(update, PairUpdate) or not _may_be_copied(update.store, loop, sparing):
            return None
        else:
            moving.setdefault(update.store.buffer, Copies(update, windows=windows))
    return None if any(each.buffer in moving for each in found) else [*found, *moving.values()]


def _is_there(store: Store) -> bool:
    """Whether constant indices show that an element is in bounds."""
    pairs = zip(store.indices, store.buffer.shape, strict=True)
    return all(
        isinstance(index, IntImm) and isinstance(extent, IntImm) and 0 <= index.value < extent.value
        for index, extent in pairs
    )


def _may_be_copied(store: Store, loop: For, sparing: bool) -> bool:
    """Whether blocks may have copies of an array: it is small, or inner loops update it by rows."""
    size = constant_bytes(store.buffer)
    if size is not None:
        return size * _COPIES <= _COPIES_BYTES
    inside = statements_of(loop.body, For)
    return not sparing and any(store in each.body.stmts and mentions(store.indices, each.var) for each in inside)


class Cells:
    """Partial results for fixed elements: each block accumulates in local scalars, which an array collects."""

    most = _MOST_BLOCKS
    least = 1
    elements = 0

    def __init__(self, update: AnyUpdate) -> None:
        self.update = update
        self.buffer, self.span = update.store.buffer, update.store.span
        self.own = [Buffer(each.buffer.name, each.buffer.dtype, (), "local") for each in update.stores]
        self.all = Partials(update, const(_MOST_BLOCKS, i64), "blocks", "local")
        # Without iterations the element may not exist.
        self.is_certain = all(map(_is_there, update.stores))

    def _scalar(self, access: Load | Store) -> Buffer | None:
        """The scalar that replaces an element."""
        pairs = zip(self.update.stores, self.own, strict=True)
        return next((own for store, own in pairs if is_at(access, store)), None)

    def covers(self, access: Load | Store) -> bool:
        return self._scalar(access) is not None

    def declared(self) -> Iterator[Stmt]:
        return self.all.declared()

    def begun(self, _block: Var) -> Iterator[Stmt]:
        for own, first in zip(self.own, self.update.neutral, strict=True):
            yield Allocate(own, span=self.span)
            yield Store(own, (), first)

    def moved(self, access: Load | Store, _block: Var) -> Node:
        return access.replaced(buffer=self._scalar(access), indices=())

    def ended(self, block: Var) -> Iterator[Stmt]:
        pairs = zip(self.own, self.all.buffers, strict=True)
        return (Store(each, (block,), own[()], span=self.span) for own, each in pairs)

    def combined(self, block: Var) -> Iterator[Stmt]:
        """Combines the partial result of a block."""
        yield from self.all.ended(block)


class Copies:
    """Partial results for an array with varying indices: each block has a copy, or one per turn.

    Iterations use several copies in turn, so that updates of equal consecutive elements, as in pictures, do not wait
    for each other. With `windows`, a copy keeps the array's name and axes, for code that names elements in errors, and
    there are no turns.
    """

    most = _COPIES

    def __init__(self, update: Update, *, windows: bool) -> None:
        self.update = update
        self.buffer = update.store.buffer
        self.window = Buffer(self.buffer.name, self.buffer.dtype, self.buffer.shape) if windows else None
        self.is_certain = True
        self.takes_turns = False

    @cached_property
    def size(self) -> Expr:
        """The number of elements in a copy."""
        return folded(reduce(Mul, self.buffer.shape, const(1, i64)))

    @cached_property
    def copies(self) -> Buffer:
        turns = (const(_TURNS, i64),) if self.takes_turns else ()
        known = isinstance(self.size, IntImm)
        row = self.buffer.shape if known else (Min(self.size, const(_COPIED_ROW, i64)),)
        return Buffer("copies", self.buffer.dtype, (const(_COPIES, i64), *turns, *row))

    @property
    def least(self) -> int:
        return _LEAST_PER_COPY * self.size.value if isinstance(self.size, IntImm) else _LEAST_OF_ROWS

    @property
    def elements(self) -> int:
        """The number of elements in a block's copies; 0 if it is not known."""
        return len(self._turns()) * self.size.value if isinstance(self.size, IntImm) else 0

    def _at(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """The indices in a copy of an element."""
        if isinstance(self.size, IntImm):
            return (*indices,)
        pairs = zip(indices[1:], self.buffer.shape[1:], strict=True)
        return (folded(reduce(lambda at, each: Add(Mul(at, each[1]), each[0]), pairs, indices[0])),)

    def covers(self, access: Load | Store) -> bool:
        return access.buffer is self.buffer

    def declared(self) -> Iterator[Stmt]:
        yield Allocate(self.copies, span=self.update.store.span)

    def begun(self, block: Var) -> Iterator[Stmt]:
        (value,) = self.update.neutral
        if self.window is not None:
            offset = folded(Mul(block, Mul(self.size, const(self.buffer.dtype.bytes, i64))))
            yield View(self.window, self.copies, offset, span=self.update.store.span)
        yield self._for_each(lambda turn, place: Store(self.copies, (block, *turn, *self._at(place)), value))

    def moved(self, access: Load | Store, block: Var) -> Node:
        if self.window is not None:
            return access.replaced(buffer=self.window)
        return access.replaced(buffer=self.copies, indices=(block, *self._turns()[0], *self._at(access.indices)))

    def by_turns(self, loop: For) -> Iterator[Stmt]:
        """A loop over the copy of the first turn, unrolled over the copies of all turns."""

        def turned(access: Load | Store, turn: int) -> Node:
            if access.buffer is not self.copies:
                return access
            block, _, *place = access.indices
            return access.replaced(indices=(block, const(turn, i64), *place))

        rows: list[Stmt] = []
        for turn in range(_TURNS):
            body = folded(substitute(loop.body, {loop.var: Add(loop.var, const(turn, i64))}))
            own = partial(turned, turn=turn)
            rows += rewrite(body, {Load: own, Store: own}).stmts
        return by_rows(loop, _TURNS, (*rows,), loop.body.stmts)

    @property
    def is_brief(self) -> bool:
        """Whether a copy is small enough for turns."""
        return isinstance(self.size, IntImm) and self.size.value * self.buffer.dtype.bytes <= _TURN_BYTES

    def _turns(self) -> list[tuple[Expr, ...]]:
        return [(const(turn, i64),) for turn in range(_TURNS)] if self.takes_turns else [()]

    def ended(self, _block: Var) -> Iterator[Stmt]:
        return iter(())

    def combined(self, block: Var) -> Iterator[Stmt]:
        def taken(turn: tuple[Expr, ...], place: tuple[Var, ...]) -> Stmt:
            (stmt,) = self.update.combined(
                [Load(self.copies, (block, *turn, *self._at(place)))], [Load(self.buffer, place)]
            )
            return stmt

        yield self._for_each(taken)

    def _for_each(self, stmt: Callable[[tuple[Expr, ...], tuple[Var, ...]], Stmt]) -> Stmt:
        """A loop that runs a statement for each turn and element, by vectors if rows are multiples of them."""
        place = tuple(Var("place") for _ in self.buffer.shape)
        *others, last = self.buffer.shape
        at, lanes = place[-1], vector_lanes(self.buffer.dtype.bytes)
        made = [stmt(turn, place) for turn in self._turns()]
        if isinstance(last, IntImm) and last.value % lanes == 0:
            at = Var("place")
            made = [Lanes(lanes, {place[-1]: Ramp.unit(at, lanes)}).statement(each) for each in made]
            row = For(at, const(0, i64), last, SeqStmt((*made,)), step=lanes)
        else:
            row = For(at, const(0, i64), last, SeqStmt((*made,)))
        return nested(counting(place[:-1], others), row)


def _is_of_integers(update: AnyUpdate) -> bool:
    return isinstance(update, Update) and not update.store.buffer.dtype.is_float


def _loads_by_tests(loop: For) -> bool:
    """Whether a condition decides about a load in another condition, for which LLVM would use masks needlessly."""
    return any(isinstance(each, And | Or) and [*loads_in(each.b)] for each in walk(loop.body))


class _BlockLoop:
    """The loop over the blocks, and the statements before and after it.

    Integers may be combined in any order. For long loops LLVM's own form of the loop `inside` is as fast as partial
    results in vectors and takes half the compile time; rows of some hundred iterations took up to three times as long.
    """

    inside = ForKind.REDUCE

    def __init__(self, loop: For, kind: ForKind, results: Sequence[Cells | Copies]) -> None:
        self.loop = loop
        self.kind = kind
        self.results = results
        self.count = loop.count
        self.most = min(each.most for each in results)
        nested = any(isinstance(stmt, For) for stmt in statements(loop.body))
        self.least = max(_LEAST_OF_NESTS if nested else _LEAST, *(each.least for each in results))

    def take_turns(self) -> None:
        """Lets iterations that do little but one update of a small array use copies in turn."""
        only = self.results[0] if len(self.results) == 1 and len(self.loop.body.stmts) == 1 else None
        if isinstance(only, Copies) and only.window is None and only.is_brief:
            only.takes_turns = True

    def statements(self) -> Iterator[Stmt]:
        stop = yield from held(self.loop.stop, "stop", self.loop)
        loop = self.loop.replaced(stop=stop)
        count = yield from held(loop.count, "count", loop)
        # At most `most` blocks, whose length is a multiple of `least`; no sum overflows.
        unit = const(self.least, i64)
        length, number = Var("length"), Var("number")
        share = Add(FloorDiv(count, const(self.least * self.most, i64)), const(1, i64))
        yield Let(length, folded(Mul(share, unit)), span=loop.span)
        yield Let(number, Add(FloorDiv(Max(Sub(count, const(1, i64)), const(0, i64)), length), const(1, i64)))
        for each in self.results:
            yield from each.declared()
        block = Var(f"{loop.var.name}.block")  # a name with a dot is left out of fault messages
        yield For(block, const(0, i64), number, self.body(loop, block, length), self.kind, span=loop.span)
        yield from self.together(loop, count, number, length)

    def together(self, loop: For, count: Expr, number: Var, _length: Var) -> Iterator[Stmt]:
        """The statements that combine the results of all blocks."""
        block = Var(f"{loop.var.name}.block")
        taken = SeqStmt(tuple(stmt for each in self.results for stmt in each.combined(block)))
        together = For(block, const(0, i64), number, taken, span=loop.span)
        is_certain = all(each.is_certain for each in self.results)
        yield together if is_certain else IfThenElse(GT(count, const(0, i64)), SeqStmt((together,)))

    def body(self, loop: For, block: Var, length: Var) -> SeqStmt:
        """The statements of one block."""
        first = Var("first")
        begin: Expr = Mul(block, length)
        if not isinstance(loop.start, IntImm) or loop.start.value != 0:
            begin = Add(loop.start, begin)
        end = Add(first, Min(length, Sub(loop.stop, first)))

        def moved(access: Load | Store) -> Node:
            result = next((each for each in self.results if each.covers(access)), None)
            return access if result is None else result.moved(access, block)

        rules: dict[type[Node], Rule] = {Load: moved, Store: moved}
        body = rewrite(loop.body, rules)
        inner = loop.replaced(start=first, stop=end, body=body, kind=self.inside)
        begun = (stmt for each in self.results for stmt in each.begun(block))
        ended = (stmt for each in self.results for stmt in each.ended(block))
        only = self.results[0]
        loops = only.by_turns(inner) if isinstance(only, Copies) and only.takes_turns else (inner,)
        return SeqStmt((Let(first, begin), *begun, *loops, *ended))


class _Searched(_BlockLoop):
    """Blocks that find only the value; its place is searched in the first block that has it."""

    def __init__(self, search: Search, kind: ForKind) -> None:
        self.search = search
        values, update = search.best(search.update.elements[0])
        self.total = Cells(update)
        super().__init__(values, kind, [self.total])

    def together(self, loop: For, count: Expr, number: Var, length: Var) -> Iterator[Stmt]:
        (of_blocks,) = self.total.all.buffers
        best = Buffer("best", of_blocks.dtype, (), "local")
        found = Buffer("found", i64, (), "local")
        yield Allocate(best, span=loop.span)
        yield Store(best, (), self.total.update.neutral[0])
        yield Allocate(found, span=loop.span)
        yield Store(found, (), IntImm(i64, i64.max))
        block, none = Var("block"), const(0, i64)
        taken = self.search.update.combined((of_blocks[block], block), (best[()], found[()]))
        yield For(block, none, number, SeqStmt((*taken,)), span=loop.span)
        first, end = Var("first"), Var("end")
        begin = Let(first, Add(loop.start, Mul(found[()], length)))
        behind = Let(end, Add(first, Min(length, Sub(loop.stop, first))))
        looked = self.search.found(best[()], first, end)
        yield IfThenElse(GT(count, none), SeqStmt((begin, behind, *looked)), span=loop.span)
