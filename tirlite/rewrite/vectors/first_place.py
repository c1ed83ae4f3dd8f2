"""Finds the first place of the value that a reduction keeps: by vectors up to the first match, or in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.dependence import writes
from tirlite.analysis.loops.reductions import PairUpdate, Update, is_beyond
from tirlite.ir.dtype import bool_, i32, i64
from tirlite.ir.expr import (
    EQ,
    LE,
    LT,
    Add,
    And,
    BitOr,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Expr,
    IntImm,
    Load,
    Not,
    Ramp,
    Select,
    Sub,
    Var,
    const,
)
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.rewrite import rewrite, substitute
from tirlite.ir.stmt import Allocate, For, ForKind, Let, SeqStmt, Stmt, Store, While
from tirlite.ir.walk import loads_in, walk
from tirlite.record import record
from tirlite.rewrite.vectors.lanes import Lanes, NotVector, may_fault

# The bytes tested in one step, and the most nodes of a value.
_BYTES = 128
_MOST_NODES = 32


@record(eq=False)
class Search:
    """A loop that only looks for an extreme value and its place, which is the iteration."""

    loop: For
    update: PairUpdate
    value: Expr

    def best(self, element: Load) -> tuple[For, Update]:
        """The loop that finds the value alone, in this element, and its update."""
        operation = self.update.operation
        store = Store(element.buffer, element.indices, operation(element, self.value), span=self.update.store.span)
        return self.loop.replaced(body=SeqStmt((store,))), Update(store, operation, element, self.value)

    def found(self, best: Load, start: Expr, stop: Expr) -> Iterator[Stmt]:
        """Updates the results by the first place in `start` to `stop` with the value `best`, which exists."""
        at = Buffer("at", i64, (), "local")
        place, span, step = Load(at, ()), self.loop.span, const(self.lanes, i64)
        yield Allocate(at, span=span)
        yield Store(at, (), start)
        vectors = Lanes(self.lanes, {self.loop.var: Ramp.unit(place, self.lanes)}, neighbours=True)
        met = _matches(vectors.of(self.value), vectors.spread(best))
        ahead = And(LE(place, Sub(stop, step)), Not(Call(bool_, Op.ANY, (met,))))
        yield While(ahead, SeqStmt((Store(at, (), Add(place, step)),)), span=span)
        one = const(1, i64)
        before = And(LT(place, Sub(stop, one)), Not(_matches(substitute(self.value, {self.loop.var: place}), best)))
        yield While(before, SeqStmt((Store(at, (), Add(place, one)),)), span=span)
        where = Var("where")
        yield Let(where, place, span=span)
        pair = [substitute(each, {self.loop.var: where}) for each in (self.value, self.update.operands[1])]
        yield from self.update.combined(pair, self.update.elements)

    @property
    def lanes(self) -> int:
        """How many places are tested in one step."""
        widths = (node.buffer.dtype.bytes for node in loads_in(self.value))
        return _BYTES // max(self.value.dtype.bytes, *widths)


def search_in(loop: For, update: PairUpdate) -> Search | None:
    """The loop as a search; None if it does more, or if its value is too expensive to compute twice."""
    stmts = loop.body.stmts
    lets = [stmt for stmt in stmts if isinstance(stmt, Let) and stmt not in update.values]
    mine = loop.var, *(let.var for let in lets)
    moves = any(node in mine for store in update.stores for node in walk(*store.indices))
    is_scalar = all(store.value.dtype.lanes == 1 for store in update.stores)
    is_all = all(isinstance(stmt, Let) or stmt in update.stores for stmt in stmts)
    if not is_place(update.operands[1], loop) or not is_scalar or not is_all or moves:
        return None
    value = update.operands[0]
    for let in reversed(lets):
        value = substitute(value, {let.var: let.value})
        if sum(1 for _ in walk(value)) > _MOST_NODES:
            return None
    search = Search(loop, update, value)
    return search if _is_cheap(search) else None


def is_place(place: Expr, loop: For) -> bool:
    """Whether an expression is the iteration number, in at least 32 bits."""
    return place is loop.var or (isinstance(place, Cast) and place.value is loop.var and place.dtype.bytes >= i32.bytes)


def _is_cheap(search: Search) -> bool:
    """Whether the value is cheap to compute again, by vectors of adjacent elements."""
    nodes = [*walk(search.value)]
    if not any(isinstance(node, Load) for node in nodes) or any(map(_is_expensive, nodes)):
        return False
    place = Ramp.unit(search.loop.var, search.lanes)
    try:
        return Lanes(search.lanes, {search.loop.var: place}, neighbours=True).of(search.value).dtype.lanes > 1
    except NotVector:
        return False


def _is_expensive(node: Node) -> bool:
    if isinstance(node, Load):
        return node.buffer.volatile
    return isinstance(node, Call) or (isinstance(node, Expr) and may_fault(node))


def _matches(value: Expr, best: Expr) -> Expr:
    """Whether a value is the best one; nan always is."""
    is_equal: Expr = EQ(value, best)
    if not value.dtype.is_float:
        return is_equal
    return BitOr(is_equal, Call(bool_.with_lanes(value.dtype.lanes), Op.ISNAN, (value,)))


def in_order(loop: For, pairs: Sequence[PairUpdate], facts: Facts) -> Stmt:
    """The reduction as a serial loop, in which the first of equal values stays."""
    found = [_without_ties(let, each) for each in pairs if _ascends(each, loop, facts) for let in each.values]
    made = {let.var: let for let in found}

    def shorter(let: Let) -> Stmt:
        return made.get(let.var, let)

    return rewrite(loop.replaced(kind=ForKind.SERIAL), {Let: shorter})


def _without_ties(let: Let, update: PairUpdate) -> Let:
    choice = cast(Select, let.value)
    taken = is_beyond(update.operation, update.operands[0], update.elements[0])
    return let.replaced(value=choice.replaced(condition=taken))


def _ascends(update: PairUpdate, loop: For, facts: Facts) -> bool:
    """Whether the place kept is never greater than the iteration: it comes from an earlier one, or an initial value."""
    kept = update.stores[1]
    if not is_place(_scalar(update.operands[1]), loop) or loop.step < 1 or not isinstance(loop.start, IntImm):
        return False
    for allocation, inside in facts.touches_in.get(loop, {}).items():
        home = [touch.region for touch in inside if touch.node is kept]
        while home and home[0].composite is not loop and home[0].parent is not None:
            home = [home[0].parent]
        # Allocated in the body around the loop, it keeps nothing from one run to the next.
        if home and home[0].parent is allocation.home:
            stores = [touch.node for touch in allocation.touches if writes(touch) and touch.node is not kept]
            return all(isinstance(each, Store) and _is_at_most(each.value, loop.start.value) for each in stores)
    return False


def _is_at_most(value: Expr, most: int) -> bool:
    value = _scalar(value)
    return isinstance(value, IntImm) and value.value <= most


def _scalar(value: Expr) -> Expr:
    return value.value if isinstance(value, Broadcast) else value
