"""Partials are what a reduction keeps in each lane: how they start, take values in, and are combined at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from tirlite.analysis.bounds import Bounds
from tirlite.analysis.facts import Facts
from tirlite.analysis.reductions import AnyUpdate, PairUpdate, Update, neutral
from tirlite.analysis.regrouping import updates_in
from tirlite.ir import (
    GE,
    Allocate,
    BitAnd,
    Broadcast,
    Buffer,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    Let,
    Load,
    Max,
    Min,
    Ramp,
    Select,
    SeqStmt,
    Stmt,
    Store,
    Var,
    const,
    i64,
    statements,
    walk,
)
from tirlite.ir.arg_extremum import comes_first
from tirlite.ir.checked import has_check
from tirlite.rewrite.lanes import Lanes, NotVector, is_inside, iterations, last_whole
from tirlite.rewrite.local_elements import is_same_element

# The partial results of one sum fill four vectors of 512 bits, or more that are narrower, on every machine alike: the
# grouping, and so the last bit of a sum, is the same wherever the kernel runs.
_PARTIAL_BYTES = 256
_MOST_LANES = 64
# A loop over vectors of a quarter of that goes over what is left.
_PER_VECTOR = 4


_TAKEN = (Store, Let, IfThenElse, SeqStmt)


def partials_of(update: AnyUpdate, lanes: int) -> Single | Pair:
    """Partial results for an update, in so many lanes."""
    return Pair(update, lanes) if isinstance(update, PairUpdate) else Single(update, lanes)


class Single:
    """Partial results of `+ * min max & | ^`."""

    def __init__(self, update: Update, lanes: int) -> None:
        self.update = update
        self.lanes = lanes
        self.buffer = _buffer(update.store, lanes)
        self.replaced: tuple[Stmt, ...] = (update.store,)

    def start(self) -> Iterator[Stmt]:
        """Declares them and sets them to what changes nothing."""
        yield from _started(self.buffer, neutral(self.update.operation, self.buffer.dtype))

    def taken(self, vectors: Lanes) -> Iterator[Stmt]:
        """Combines with them what iterations compute."""
        place = ramp(0, vectors.lanes)
        operand = vectors.spread(vectors.of(self.update.operand))
        if vectors.on is not None:
            operand = Select(vectors.on, operand, vectors.spread(neutral(self.update.operation, self.buffer.dtype)))
        value = self.update.operation(self.buffer[place], operand)
        yield Store(self.buffer, (place,), value, span=self.update.store.span)

    def combined(self) -> Iterator[Stmt]:
        """Combines them by halves, and then with what was there before the loop."""
        operation, store = self.update.operation, self.update.store
        for low, high in _halves(self.lanes):
            yield Store(self.buffer, (low,), operation(self.buffer[low], self.buffer[high]))
        whole = operation(self.buffer[const(0, i64)], self.buffer[const(1, i64)])
        yield Store(store.buffer, store.indices, operation(self.update.element, whole), span=store.span)


class Pair:
    """Partial results of `tl.argmax` and `tl.argmin`: values, and where they stand."""

    def __init__(self, update: PairUpdate, lanes: int) -> None:
        self.update = update
        self.lanes = lanes
        self.buffers = [_buffer(store, lanes) for store in update.stores]
        self.replaced: tuple[Stmt, ...] = (*update.stores, *update.values)

    def start(self) -> Iterator[Stmt]:
        best, at = self.buffers
        yield from _started(best, neutral(self.update.operation, best.dtype))
        yield from _started(at, IntImm(at.dtype, at.dtype.max))

    def taken(self, vectors: Lanes) -> Iterator[Stmt]:
        place = ramp(0, vectors.lanes)
        operands = [vectors.spread(vectors.of(each)) for each in self.update.operands]
        names = [Var(name, each.dtype) for name, each in zip(("value", "place"), operands, strict=True)]
        yield from (Let(name, each) for name, each in zip(names, operands, strict=True))
        yield from kept(self.update.operation, names, [each[place] for each in self.buffers], vectors.on)

    def combined(self) -> Iterator[Stmt]:
        operation = self.update.operation
        for low, high in (*_halves(self.lanes), (const(0, i64), const(1, i64))):
            yield from kept(operation, [each[high] for each in self.buffers], [each[low] for each in self.buffers])
        yield from kept(operation, [each[const(0, i64)] for each in self.buffers], self.update.elements)


def kept(
    operation: type[Max] | type[Min], new: Sequence[Expr], old: Sequence[Load], on: Expr | None = None
) -> Iterator[Stmt]:
    """Stores in the places of the old pair the one that comes first, in the lanes that are on."""
    condition = comes_first(operation, new[0], new[1], old[0], old[1])
    condition = condition if on is None else BitAnd(on, condition)
    takes = Var("takes", condition.dtype)
    yield Let(takes, condition)
    for mine, its in zip(new, old, strict=True):
        yield Store(its.buffer, its.indices, Select(takes, mine, its))


def vector_lanes(element: int) -> int:
    """How many elements of so many bytes go together."""
    return min(_MOST_LANES, _PARTIAL_BYTES // element)


def ramp(start: int, lanes: int) -> Ramp:
    return Ramp(const(start, i64), const(1, i64), lanes)


def _buffer(store: Store, lanes: int) -> Buffer:
    return Buffer("partial", store.buffer.dtype, (const(lanes, i64),), "local")


def _started(buffer: Buffer, value: Expr) -> Iterator[Stmt]:
    (extent,) = buffer.shape
    assert isinstance(extent, IntImm)
    yield Allocate(buffer)
    yield Store(buffer, (ramp(0, extent.value),), Broadcast(value, extent.value))


def _halves(lanes: int) -> Iterator[tuple[Ramp, Ramp]]:
    """The lanes of the lower and the upper half, of the lower half's halves and so on, down to two."""
    while lanes > 2:
        lanes //= 2
        yield ramp(0, lanes), ramp(lanes, lanes)


def split(loop: For, facts: Facts) -> Stmt | tuple[Stmt, ...]:
    """A reduction as serial loops, those over vectors first where it has a vector form; any other loop as it is."""
    if loop.kind is not ForKind.REDUCE:
        return loop
    serial = loop.replaced(kind=ForKind.SERIAL)
    stmts = [*statements(loop.body)]
    if loop.step != 1 or has_check(loop) or not all(isinstance(each, _TAKEN) for each in stmts):
        return serial
    updates = updates_in(loop, facts)
    if not isinstance(updates, tuple) or not updates or any(_moves(update, loop, stmts) for update in updates):
        return serial
    top = {*loop.body.stmts}
    if any(store not in top and not _is_certain(store, loop, facts) for update in updates for store in _stores(update)):
        return serial
    try:
        return (*_Loops(loop, updates, partial(is_inside, Bounds(facts.space))).statements(),)
    except NotVector:
        return serial


def _stores(update: AnyUpdate) -> tuple[Store, ...]:
    return update.stores if isinstance(update, PairUpdate) else (update.store,)


def _is_certain(store: Store, loop: For, facts: Facts) -> bool:
    """Whether what stands beside a loop accesses an element that the loop updates on a condition.

    Else there may be no such element, or it may be another worker's.
    """
    for allocation, touches in facts.touches_in[loop].items():
        for mine in touches:
            if mine.node is store:
                region = mine.region
                while region.parent is not None and region.composite is not loop:
                    region = region.parent
                beside = (touch for touch in allocation.touches if touch.region is region.parent)
                return any(is_same_element(store, touch) for touch in beside)
    return False


def _moves(update: AnyUpdate, loop: For, stmts: Sequence[Stmt]) -> bool:
    """Whether iterations combine into different elements, or into one that is volatile."""
    inside = {loop.var, *(stmt.var for stmt in stmts if isinstance(stmt, Let))}
    written = {stmt.buffer for stmt in stmts if isinstance(stmt, Store)}
    for store in _stores(update):
        nodes = [node for index in store.indices for node in walk(index)]
        changes = any(node in inside or (isinstance(node, Load) and node.buffer in written) for node in nodes)
        if store.value.dtype.lanes > 1 or changes or store.buffer.volatile:
            return True
    return False


class _Loops:
    """What one loop becomes."""

    def __init__(self, loop: For, updates: tuple[AnyUpdate, ...], inside: Callable[[Load], bool]) -> None:
        self.loop = loop
        self.is_inside = inside
        width = max(stmt.buffer.dtype.bytes for stmt in statements(loop.body) if isinstance(stmt, Store))
        self.most = vector_lanes(width)
        self.few = self.most // _PER_VECTOR
        self.partials = [partials_of(update, self.most) for update in updates]
        # The first of the stores that make an update is where it is made.
        self.replaced = {stmt: each for each in self.partials for stmt in each.replaced}

    def statements(self) -> Iterator[Stmt]:
        """The loops over vectors, and the serial one over the rest. Raises NotVector."""
        loop = self.loop
        count = iterations(loop)
        if not isinstance(count, IntImm | Var):
            var = Var("count")
            yield Let(var, count, span=loop.span)
            count = var
        whole = last_whole(loop, count, self.few)
        vectors = SeqStmt((*self.vectors(count),))
        yield from (
            vectors.stmts if isinstance(count, IntImm) else [IfThenElse(GE(count, const(self.few, i64)), vectors)]
        )
        yield loop.replaced(kind=ForKind.SERIAL, start=whole)

    def vectors(self, count: Expr) -> Iterator[Stmt]:
        if isinstance(count, IntImm) and count.value < self.few:
            return
        for each in self.partials:
            yield from each.start()
        begin = self.loop.start
        for lanes in (self.most, self.few):
            end = last_whole(self.loop, count, lanes)
            yield self.over_vectors(lanes, begin, end)
            begin = end
        for each in self.partials:
            yield from each.combined()

    def over_vectors(self, lanes: int, begin: Expr, end: Expr) -> Stmt:
        """The loop from `begin` to `end`, so many iterations at a time."""
        at = Var(self.loop.var.name)
        vectors = _Updates(lanes, {self.loop.var: Ramp(at, const(1, i64), lanes)}, is_inside=self.is_inside)
        vectors.replaced = self.replaced
        return For(at, begin, end, vectors.block(self.loop.body), step=lanes)


class _Updates(Lanes):
    """Lanes in which partial results take in what updates combine."""

    replaced: Mapping[Stmt, Single | Pair]

    def statement(self, stmt: Stmt) -> Stmt:
        made = self.replaced.get(stmt)
        if made is None:
            return super().statement(stmt)
        return SeqStmt((*made.taken(self),)) if stmt is made.replaced[0] else SeqStmt()
