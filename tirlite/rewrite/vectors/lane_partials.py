"""Partials are the results of a reduction in each lane: how they start, take values in, and are combined at the end.

Products of narrow integers need half as many sums, as `tl.dot` adds two 16-bit products to each; differences of bytes a
quarter, if the processor sums products of four bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping

from tirlite.analysis.loops.reductions import AnyUpdate, Update
from tirlite.ir.checked import masked
from tirlite.ir.dot import dot
from tirlite.ir.dtype import i8, i16, i32, i64, u8
from tirlite.ir.expr import Add, Broadcast, Buffer, Call, Cast, Expr, Load, Max, Min, Mul, Ramp, Select, Sub, Var, const
from tirlite.ir.op import Op
from tirlite.ir.stmt import Allocate, Let, SeqStmt, Stmt, Store
from tirlite.rewrite.vectors.flat_views import flat_place
from tirlite.rewrite.vectors.lanes import Lanes

_PAIR = 2
_FOUR = 4


class Partials:
    """Partial results of an update: `count` of each element that it updates, in buffers of their own.

    These are called `name`, by default after the element's buffer, as `y.partial`.
    """

    def __init__(self, update: AnyUpdate, count: Expr, name: str = "", scope: str = "global") -> None:
        self.update = update
        own = [store.buffer for store in update.stores]
        self.buffers = [Buffer(name or f"{each.name}.partial", each.dtype, (count,), scope) for each in own]
        self.replaced: tuple[Stmt, ...] = (*update.stores, *update.values)

    def at(self, place: Expr) -> list[Load]:
        """The partial results of an iteration, or of some lanes."""
        return [each[place] for each in self.buffers]

    def declared(self) -> Iterator[Stmt]:
        return (Allocate(each, span=self.update.store.span) for each in self.buffers)

    def begun(self, place: Expr) -> Iterator[Stmt]:
        """Sets them to the neutral value."""
        for buffer, value in zip(self.buffers, self.update.neutral, strict=True):
            yield Store(buffer, (place,), value)

    def taken(self, place: Expr) -> Iterator[Stmt]:
        """Combines what an iteration computes with the partial results at a place."""
        yield from self.update.combined(self.update.operands, self.at(place))

    def ended(self, place: Expr) -> Iterator[Stmt]:
        """Combines the partial results at a place with the elements' values from before the loop."""
        yield from self.update.combined(self.at(place), self.update.elements)


class LanePartials(Partials):
    """Partial results in the lanes of vectors."""

    def __init__(self, update: AnyUpdate, lanes: int) -> None:
        super().__init__(update, const(lanes, i64), "partial", "local")
        self.lanes = lanes

    def start(self) -> Iterator[Stmt]:
        """Declares them, and sets them to the neutral value."""
        for buffer, value in zip(self.buffers, self.update.neutral, strict=True):
            yield Allocate(buffer)
            yield Store(buffer, (Ramp.unit(0, self.lanes),), Broadcast(value, self.lanes))

    def taken_by(self, vectors: Lanes) -> Iterator[Stmt]:
        """Combines what iterations compute with them."""
        operands = [vectors.spread(vectors.of(each)) for each in self.update.operands]
        if len(operands) > 1:  # each is used more than once
            lets = [Let(Var(name, each.dtype), each) for name, each in zip(("value", "place"), operands, strict=True)]
            yield from lets
            operands = [let.var for let in lets]
        yield from self.update.combined(operands, self.at(Ramp.unit(0, vectors.lanes)), vectors.on)

    def halved(self, left: int) -> Iterator[Stmt]:
        """Combines the upper and the lower half repeatedly, until this many are left."""
        for low, high in _halves(self.lanes, left):
            yield from self.update.combined(self.at(high), self.at(low))

    def set_to(self, wider: LanePartials) -> Iterator[Stmt]:
        """Copies what is left of `wider` ones."""
        place = Ramp.unit(0, self.lanes)
        for source, buffer in zip(wider.buffers, self.buffers, strict=True):
            yield Store(buffer, (place,), source[place])


class DotPartials(LanePartials):
    """Partial sums of products, one for each pair of iterations."""

    def __init__(self, update: AnyUpdate, lanes: int, factors: tuple[Expr, Expr]) -> None:
        super().__init__(update, lanes // _PAIR)
        self.factors = factors

    def taken_by(self, vectors: Lanes) -> Iterator[Stmt]:
        a, b = (vectors.spread(vectors.of(each)) for each in self.factors)
        if vectors.on is not None:
            a = Select(vectors.on, a, vectors.spread(const(0, i16)))
        (total,) = self.at(Ramp.unit(0, self.lanes))
        yield Store(total.buffer, total.indices, dot(total, a, b), span=self.update.store.span)


class DifferencePartials(LanePartials):
    """Partial sums of absolute differences of bytes, one for every four iterations."""

    def __init__(self, update: AnyUpdate, lanes: int, apart: tuple[Expr, Expr]) -> None:
        super().__init__(update, lanes // _FOUR)
        self.apart = apart

    def taken_by(self, vectors: Lanes) -> Iterator[Stmt]:
        values = [vectors.spread(vectors.of(each)) for each in self.apart]
        lets = [Let(Var(name, each.dtype), each) for name, each in zip(("one", "other"), values, strict=True)]
        yield from lets
        a, b = (let.var for let in lets)
        differ: Expr = Sub(Max(a, b), Min(a, b))
        if vectors.on is not None:
            differ = Select(vectors.on, differ, vectors.spread(const(0, u8)))
        (total,) = self.at(Ramp.unit(0, self.lanes))
        summed = dot(total, differ, vectors.spread(const(1, i8)))
        yield Store(total.buffer, total.indices, summed, span=self.update.store.span)


class Updates(Lanes):
    """Lanes of the iterations from `first` on, whose updates go to partial results.

    Elements of neighbouring groups are loaded from `flat` views.
    """

    def __init__(
        self,
        var: Var,
        first: Expr,
        partials: Iterable[LanePartials],
        is_inside: Callable[[Load], bool],
        lanes: int,
        flat: Mapping[Buffer, Buffer] | None = None,
    ) -> None:
        super().__init__(lanes, {var: Ramp.unit(first, lanes)}, is_inside=is_inside)
        self.flat = flat or {}
        # An update of several stores is written in place of the first.
        self.replaced = {stmt: each for each in partials for stmt in each.replaced}

    def statement(self, stmt: Stmt) -> Stmt:
        made = self.replaced.get(stmt)
        if made is None:
            return super().statement(stmt)
        return SeqStmt((*made.taken_by(self),)) if stmt is made.replaced[0] else SeqStmt()

    def moved(self, load: Load) -> Expr | None:
        place = flat_place(self, load) if load.buffer in self.flat else None
        if place is None:
            return None
        last = place[-1] if self.on is None else masked(place[-1], self.on)
        return Load(self.flat[load.buffer], (*place[:-1], last))


class Rest(Updates):
    """Lanes of which the last ones are no iterations, so that their own elements may not exist."""

    def is_there(self, load: Load) -> bool:
        is_same = not any(map(self.differs, load.indices))
        # The first lane is an iteration.
        return is_same and not load.buffer.volatile and (self.is_certain or self.is_inside(load))


def lane_partials(update: AnyUpdate, lanes: int, dots: Container[str]) -> LanePartials:
    """The partial results of `lanes` iterations at a time, for a processor with these `dots`."""
    factors = factors_of(update)
    if factors is not None:
        return DotPartials(update, lanes, factors)
    apart = differences_of(update, dots)
    return LanePartials(update, lanes) if apart is None else DifferencePartials(update, lanes, apart)


def differences_of(update: AnyUpdate, dots: Container[str]) -> tuple[Expr, Expr] | None:
    """The two bytes, if an update adds their absolute difference to an i32, and `dots` can sum that."""
    if not isinstance(update, Update) or update.operation is not Add or "u8 s8" not in dots:
        return None
    term = update.operand
    apart = term.args[0] if isinstance(term, Call) and term.op is Op.ABS and term.dtype == i32 else None
    if not isinstance(apart, Sub) or not isinstance(apart.a, Cast) or not isinstance(apart.b, Cast):
        return None
    a, b = apart.a.value, apart.b.value
    return (a, b) if a.dtype == b.dtype == u8 else None


def factors_of(update: AnyUpdate) -> tuple[Expr, Expr] | None:
    """The two factors as i16, if an update adds a product of integers that fit into i16 to an i32."""
    if not isinstance(update, Update) or update.operation is not Add or not isinstance(update.operand, Mul):
        return None
    casts = [each for each in (update.operand.a, update.operand.b) if isinstance(each, Cast)]
    narrow = [each.value for each in casts if _fits(each.value)]
    if update.operand.dtype != i32 or len(narrow) < _PAIR:
        return None
    a, b = (each if each.dtype == i16 else Cast(i16, each) for each in narrow)
    return a, b


def _fits(value: Expr) -> bool:
    kind = value.dtype
    return kind.is_integer and not kind.is_bool and kind.lanes == 1 and i16.min <= kind.min and kind.max <= i16.max


def _halves(lanes: int, left: int) -> Iterator[tuple[Expr, Expr]]:
    """The lanes of the lower and the upper half, then of the lower half's halves, until `left` are left."""
    while lanes > left:
        lanes //= 2
        yield (Ramp.unit(0, lanes), Ramp.unit(lanes, lanes)) if lanes > 1 else (const(0, i64), const(1, i64))
