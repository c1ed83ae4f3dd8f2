"""Partial results of a reduction, one in each lane: how they start, take values in, and are combined at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tirlite.analysis.reductions import AnyUpdate, PairUpdate, Update, neutral
from tirlite.ir import (
    Allocate,
    Broadcast,
    Buffer,
    Expr,
    IntImm,
    Let,
    Load,
    Ramp,
    Select,
    Stmt,
    Store,
    Var,
    const,
    i64,
)
from tirlite.ir.arg_extremum import comes_first
from tirlite.rewrite.lanes import Lanes


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
        yield from self._kept(names, [each[place] for each in self.buffers])

    def combined(self) -> Iterator[Stmt]:
        for low, high in (*_halves(self.lanes), (const(0, i64), const(1, i64))):
            yield from self._kept([each[high] for each in self.buffers], [each[low] for each in self.buffers])
        yield from self._kept([each[const(0, i64)] for each in self.buffers], self.update.elements)

    def _kept(self, new: Sequence[Expr], old: Sequence[Load]) -> Iterator[Stmt]:
        """Stores in the places of the old pair the one that comes first."""
        condition = comes_first(self.update.operation, new[0], new[1], old[0], old[1])
        takes = Var("takes", condition.dtype)
        yield Let(takes, condition)
        for mine, its in zip(new, old, strict=True):
            yield Store(its.buffer, its.indices, Select(takes, mine, its), span=self.update.store.span)


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
