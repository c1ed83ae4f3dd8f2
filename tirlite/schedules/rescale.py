"""Rescale sums terms of exp(x - top) while it computes the maximum `top`: sums so far are scaled when it grows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.fusion import can_be_reordered
from tirlite.analysis.loops.reductions import Update, neutral
from tirlite.analysis.loops.regrouping import updates_in
from tirlite.ir.equal import structural_equal
from tirlite.ir.expr import EQ, LT, NE, Add, Buffer, Call, Div, Expr, Load, Max, Mul, Neg, Select, Sub, Var, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.rewrite import rewrite, substitute, values_of
from tirlite.ir.stmt import (
    Allocate,
    AttrKey,
    AttrStmt,
    For,
    ForKind,
    IfThenElse,
    Let,
    Permission,
    SeqStmt,
    Stmt,
    Store,
    While,
    nested,
)
from tirlite.ir.walk import allocated_in, defined_in, is_steady, loads_in, mentions, statements, statements_of, walk
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.normalize import exchanged
from tirlite.rewrite.reductions import message_of
from tirlite.schedules.handle import LoopName, block_of, chain_to, loop_named
from tirlite.schedules.loop_facts import is_in_bounds, trips
from tirlite.schedules.order import demand_any_order, demand_order
from tirlite.schedules.step import ScheduleStep, does_not_fit

_EXP = (Op.EXP, Op.FAST_EXP, Op.EXP2, Op.FAST_EXP2)


@record
class Rescale(ScheduleStep):
    """Joins loops that sum terms of exp(x - maximum) with the loop `first` that computes the maximum: online softmax.

    Each sum is kept in `y.scaled`, relative to the maximum so far: when that grows from m to m', the sum is multiplied
    by exp(m - m'). Where its loop was, the sum is added to the element. The maximum of nothing, -inf, counts as 0 until
    there is another one. Softmax and attention so read their input once, and only keep the scores of a block. As sums
    may be rescaled in each iteration, they differ from the original ones by up to `c * n * eps * sum |term|`.

    Requires `tl.allow("rescale")`. All are `tl.reduce` loops of one range in one block. Refused unless each term is a
    multiple of one such exp of what the maximum is taken of, which keeps sums from overflowing; and if the loops may
    not be joined for other reasons than the maximum.
    """

    first: LoopName
    others: tuple[LoopName, ...]

    def rewritten(self, facts: Facts) -> PrimFunc:
        around = chain_to(facts.func, self.first)
        first, others = around[-1], [loop_named(facts.func, each) for each in self.others]
        self._demand_permission(facts.func, first)
        self._demand_one_range(facts, first, others)
        maximum = self._maximum(facts, first, others)
        best = maximum.element
        sums = [_Sum(self, facts, loop, maximum, around[:-1]) for loop in others]
        self._demand_order(facts, first, others, best, sums)
        made: dict[Stmt, tuple[Stmt, ...]] = {first: (*_joined(first, best, sums),)}
        for loop, each in zip(others, sums, strict=True):
            made[loop] = (*each.ended(best),)
        return exchanged(facts.func, made)

    def _demand_permission(self, func: PrimFunc, first: For) -> None:
        granted = [stmt for stmt in statements_of(func.body, AttrStmt) if stmt.key is AttrKey.ALLOW]
        for stmt in granted:
            if isinstance(stmt.value, tuple) and Permission.RESCALE in stmt.value and first in {*statements(stmt.body)}:
                return
        raise does_not_fit(self, 'it changes how sums are rounded: grant tl.allow("rescale")')

    def _demand_one_range(self, facts: Facts, first: For, others: Sequence[For]) -> None:
        """Raises KernelError unless the loops are reductions of one range, one after the other in a block."""
        space = facts.space
        block = block_of(facts.func, first)
        places = [block.stmts.index(each) if each in block.stmts else -1 for each in (first, *others)]
        if not others or places != sorted({*places}):
            raise does_not_fit(self, "the loops do not follow each other in one block")
        for loop in (first, *others):
            demand_any_order(self, loop)
            is_same = loop.step == first.step and all(
                space.size(a) == space.size(b) for a, b in ((loop.start, first.start), (loop.stop, first.stop))
            )
            if loop.kind is not ForKind.REDUCE or not is_same or not is_steady(loop.start) or not is_steady(loop.stop):
                raise does_not_fit(self, f"the loop over `{loop.var.name}` is no `tl.reduce` of the range of the first")
            if not can_be_reordered(loop):
                raise does_not_fit(self, f"the loop over `{loop.var.name}` does more than load and store")

    def _maximum(self, facts: Facts, first: For, others: Sequence[For]) -> _Maximum:
        """The maximum that the first loop computes and the others read. Raises KernelError if there is none."""
        found = updates_in(first, facts)
        if not isinstance(found, tuple):
            raise message_of(found, first.var.name).error()
        read = {node.buffer for node in loads_in(*others)}
        best = [each for each in found if not read.isdisjoint(store.buffer for store in each.stores)]
        update = best[0] if len(best) == 1 else None
        wrong = does_not_fit(self, f"the loop over `{first.var.name}` combines no one maximum that the others read")
        if not isinstance(update, Update) or update.operation is not Max or not update.store.buffer.dtype.is_float:
            raise wrong
        inside = defined_in(first)
        if not is_steady(*update.store.indices) or mentions(update.store.indices, inside):
            raise wrong
        root = facts.definitions.root
        of = {root(node.buffer) for node in loads_in(update.operand)}
        place = next(k for k, stmt in enumerate(first.body.stmts) if update.store in {*statements(stmt)})
        for stmt in first.body.stmts[place:]:
            for store in statements_of(stmt, Store):
                if root(store.buffer) in of and store is not update.store:
                    raise does_not_fit(self, f"`{store}` writes what the maximum is of")
        within = next(chain for each, chain in _loops_to(first) if each is update.store)
        return _Maximum(update.element, _without_lets(update.operand, first), (first, *within))

    def _demand_order(self, facts: Facts, first: For, others: Sequence[For], best: Load, sums: Sequence[_Sum]) -> None:
        """Raises KernelError if one of the loops may not be joined with the first."""
        root = facts.definitions.root
        combined = {root(update.store.buffer) for each in sums for update in each.updates}
        block = block_of(facts.func, first)
        written = set[Buffer]()
        for stmt in block.stmts[block.stmts.index(first) + 1 : block.stmts.index(others[-1])]:
            if stmt in others or isinstance(stmt, Allocate):
                continue
            stored = {root(each.buffer) for each in statements_of(stmt, Store)}
            if not can_be_reordered(stmt) or root(best.buffer) in stored:
                raise does_not_fit(self, "what stands between the loops does more than load and store other elements")
            written |= stored
        for loop, each in zip(others, sums, strict=True):
            for read in each.read:
                if root(read.buffer) in written | combined:
                    raise does_not_fit(self, f"`{read}` is written between the loops, or summed up by one of them")
            demand_order(self, facts, first, loop, but=root(best.buffer))


@record(eq=False)
class _Maximum:
    """The element that holds a maximum, the expression it is taken of, and the loops around that, `first` outermost."""

    element: Load
    operand: Expr
    loops: tuple[For, ...]

    def is_of(self, value: Expr, loops: Sequence[For]) -> bool:
        """Whether a value in other loops is among those that the maximum is taken of, so that it is never greater."""
        same: dict[Var, Expr] = {}
        for mine, other in zip(self.loops, loops, strict=False):
            ends = ((mine.start, other.start), (mine.stop, other.stop)) if same else ()
            if mine.step != other.step or not all(structural_equal(a, substitute(b, same)) for a, b in ends):
                return False
            same[other.var] = mine.var
        return len(loops) >= len(self.loops) and bool(structural_equal(self.operand, substitute(value, same)))


def _without_lets(value: Expr, loop: For) -> Expr:
    """A value in a loop with the loop's lets substituted."""
    return substitute(value, values_of(statements_of(loop.body, Let)))


def _joined(first: For, best: Load, sums: Sequence[_Sum]) -> Iterator[Stmt]:
    """The loop that does what all of them do, in order."""
    kind = best.dtype
    before, now, shift = (Var(name, kind) for name in ("before", "now", "shift"))
    factors = {each.exp: Var("factor", kind) for each in sums}
    scaled: list[Stmt] = [Let(var, Call(kind, exp, (Sub(before, now),))) for exp, var in factors.items()]
    inside: list[Stmt] = []
    for each in sums:
        yield from each.begun()
        scaled += each.scaled(factors[each.exp])
        inside += each.body(first.var, shift)
    grows = IfThenElse(NE(now, before), SeqStmt(tuple(scaled)), SeqStmt(), span=first.span)
    around = (Let(before, best), *first.body.stmts, Let(now, best), grows, Let(shift, _shift(now)))
    yield first.replaced(kind=ForKind.SERIAL, body=SeqStmt((*around, *inside)))


def _shift(best: Expr) -> Expr:
    """The maximum, or 0 if it is -inf, so that exp(-inf - 0) is 0."""
    return Select(EQ(best, const(-inf, best.dtype)), const(0.0, best.dtype), best)


class _Sum:
    """The sums that one of the loops computes."""

    def __init__(self, step: Rescale, facts: Facts, loop: For, maximum: _Maximum, around: tuple[For, ...]) -> None:
        self.step, self.loop, self.maximum, self.best = step, loop, maximum, maximum.element
        self.ops: set[Op] = set()
        self.seen: set[Node] = set()
        found = updates_in(loop, facts)
        if not isinstance(found, tuple):
            raise message_of(found, loop.var.name).error()
        self.updates = [each for each in found if isinstance(each, Update) and each.operation is Add]
        if not found or len(self.updates) < len(found):
            raise does_not_fit(step, f"the loop over `{loop.var.name}` does not sum up all that it combines")
        own = allocated_in(loop.body)
        kept = {each.store: each for each in self.updates}
        self.powers: dict[Node, int | None] = {}  # of let variables, and of the stores that add to a sum
        for stmt, within in _loops_to(loop):
            if isinstance(stmt, Let):
                self.powers[stmt.var] = self._power(stmt.value, within)
            elif isinstance(stmt, Store) and stmt in kept:
                self.powers[stmt] = self._power(kept[stmt].operand, within)
            elif isinstance(stmt, Store) and stmt.buffer not in own:
                raise does_not_fit(step, f"the loop over `{loop.var.name}` writes `{stmt.buffer.name}`, too")
        elements = {each.element for each in self.updates}
        self.read = [node for node in loads_in(loop.body) if node not in elements]
        self.parts = [_ScaledSum(self, facts, each, around) for each in self.updates]
        if len(self.ops) != 1 or any(self._is_best(node) and node not in self.seen for node in self.read):
            raise does_not_fit(step, f"`{self.best}` is read for more than one kind of `exp(x - {self.best})`")
        (self.exp,) = self.ops

    def _power(self, value: Expr, within: Sequence[For]) -> int | None:
        """The power of exp(-best) that is a factor of a value; None if the value depends on it in another way."""
        if isinstance(value, Call) and value.op in _EXP and isinstance(value.args[0], Sub):
            less, top = _without_lets(value.args[0].a, self.loop), value.args[0].b
            if structural_equal(top, self.best) and self.maximum.is_of(less, (self.loop, *within)):
                self.ops.add(value.op)
                self.seen.add(top)
                return 1
        if isinstance(value, Mul | Div):
            a, b = self._power(value.a, within), self._power(value.b, within)
            if a is None or b is None or (isinstance(value, Div) and b):
                return None
            return a + b
        if isinstance(value, Neg):
            return self._power(value.a, within)
        if isinstance(value, Var):
            return self.powers.get(value, 0)
        is_free = not any(self.powers.get(node, 0) != 0 or self._is_best(node) for node in walk(value))
        return 0 if is_free else None

    def _is_best(self, node: Node) -> bool:
        return isinstance(node, Load) and node.buffer is self.best.buffer

    def begun(self) -> Iterator[Stmt]:
        for part in self.parts:
            yield Allocate(part.scaled, span=self.loop.span)
            yield from part.set_to(neutral(Add, part.scaled.dtype))

    def scaled(self, factor: Var) -> Iterator[Stmt]:
        for part in self.parts:
            yield from part.set_to(Mul(part.scaled[part.places], factor))

    def body(self, var: Var, shift: Var) -> tuple[Stmt, ...]:
        """The loop's body, relative to the maximum so far."""
        kept = {part.update.store: part for part in self.parts}

        def summed(store: Store) -> Store:
            part = kept.get(store)
            return store if part is None else part.summed()

        def shifted(load: Load) -> Expr:
            return shift if self._is_best(load) else load

        made = rewrite(rewrite(self.loop.body, {Store: summed}), {Load: shifted})
        return substitute(made, {self.loop.var: var}).stmts

    def ended(self, best: Load) -> Iterator[Stmt]:
        """Adds the sums to the elements, relative to the final maximum, if there was an iteration."""
        kind = best.dtype
        shift, last = Var("shift", kind), Var("last", kind)
        same = const(1.0, kind)
        factor = Select(EQ(shift, best), same, Call(kind, self.exp, (Sub(shift, best),)))
        taken = [stmt for part in self.parts for stmt in part.taken(last)]
        body = SeqStmt((Let(shift, _shift(best)), Let(last, factor), *taken))
        yield IfThenElse(LT(self.loop.start, self.loop.stop), body, SeqStmt(), span=self.loop.span)


class _ScaledSum:
    """The sums of one update, relative to the maximum so far: one for each element that it updates."""

    def __init__(self, own: _Sum, facts: Facts, update: Update, around: tuple[For, ...]) -> None:
        step, loop, store = own.step, own.loop, update.store
        self.update = update
        name, inside = store.buffer.name, defined_in(loop)
        within = next(chain for each, chain in _loops_to(loop) if each is store)
        self.loops = [each for each in within if mentions(store.indices, each.var)]
        branches = (stmt for stmt in statements(loop) if isinstance(stmt, IfThenElse | While))
        moving = inside - {each.var for each in self.loops}
        counts: list[Expr] = []
        if not is_steady(*store.indices) or mentions(store.indices, moving):
            raise does_not_fit(step, f"which element of `{name}` is summed up is decided inside")
        for each in self.loops:
            count = trips(facts, each)
            if each.step != 1 or count is None or mentions((each.start, each.stop, count), inside):
                raise does_not_fit(step, f"how often the loop over `{each.var.name}` runs is decided inside")
            counts.append(count)
        if any(store in {*statements(stmt)} for stmt in branches) or store.buffer.volatile:
            raise does_not_fit(step, f"whether `{name}` is summed up is decided by a branch")
        if not is_in_bounds(facts.func, (*around, *self.loops), store):
            raise does_not_fit(step, f"the elements of `{name}` are not proved to be in bounds")
        if own.powers[store] != 1 or store.buffer.dtype != own.best.dtype or store.value.dtype.lanes > 1:
            reason = (
                f"what is added to `{name}` is no multiple of one `exp(x - {own.best})` of what that is the maximum of"
            )
            raise does_not_fit(step, reason)
        self.scaled = Buffer(f"{name}.scaled", store.buffer.dtype, tuple(counts), "global" if counts else "local")
        self.places = tuple(folded(Sub(each.var, each.start)) for each in self.loops)

    def summed(self) -> Store:
        """The update of the sum so far."""
        value = Add(self.scaled[self.places], self.update.operand)
        return Store(self.scaled, self.places, value, span=self.update.store.span)

    def taken(self, last: Var) -> Iterator[Stmt]:
        """Adds the sums to the elements that they belong to."""
        value = Add(self.update.element, Mul(self.scaled[self.places], last))
        yield from self._inside(self.update.store.replaced(value=value))

    def set_to(self, value: Expr) -> Iterator[Stmt]:
        """Sets each of the sums."""
        yield from self._inside(Store(self.scaled, self.places, value))

    def _inside(self, stmt: Stmt) -> Iterator[Stmt]:
        yield from nested([loop.replaced(kind=ForKind.SERIAL) for loop in self.loops], stmt).stmts


def _loops_to(loop: For) -> Iterator[tuple[Stmt, tuple[For, ...]]]:
    """Each statement in a loop, in program order, with the inner loops around it."""
    stack: list[tuple[Stmt, tuple[For, ...]]] = [(loop.body, ())]
    while stack:
        stmt, around = stack.pop()
        if isinstance(stmt, SeqStmt):
            stack += ((each, around) for each in reversed(stmt.stmts))
            continue
        yield stmt, around
        inner = (*around, stmt) if isinstance(stmt, For) else around
        stack += ((body, inner) for body in reversed(stmt.bodies))
