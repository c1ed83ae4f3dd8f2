"""Recognizes updates: stores that combine a value into an element by one operation.

An update is `a[i] = a[i] + e`, with `+ - * min max & | ^`, the element on either side where the order does not matter.
`if e < a[i]: a[i] = e` is one, too, by a comparison: the minimum of integers, and of floats one that ignores nan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import TypeAlias, cast

from tirlite.ir.dtype import DType, bool_
from tirlite.ir.equal import are_equal, structural_equal
from tirlite.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    Add,
    Binary,
    BitAnd,
    BitOr,
    BitXor,
    Call,
    Cast,
    Expr,
    FloatImm,
    IntImm,
    Load,
    Max,
    Min,
    Mul,
    Neg,
    Not,
    Select,
    Sub,
    Var,
)
from tirlite.ir.op import Op
from tirlite.ir.stmt import For, IfThenElse, Let, SeqStmt, Stmt, Store
from tirlite.ir.walk import loads_in
from tirlite.record import record

Operation: TypeAlias = type[Binary]

# How the source spells an operation.
SPELLING: dict[Operation, str] = {
    Add: "+",
    Mul: "*",
    Min: "min",
    Max: "max",
    BitAnd: "&",
    BitOr: "|",
    BitXor: "^",
}


@record(eq=False)
class Update:
    """`store` sets its element to `operation` of `element`, which it loads, and `operand`."""

    store: Store
    operation: Operation
    element: Load
    operand: Expr

    @property
    def stores(self) -> tuple[Store, ...]:
        return (self.store,)

    @property
    def values(self) -> tuple[Let, ...]:
        """The lets that hold what the stores store."""
        return ()

    @property
    def elements(self) -> tuple[Load, ...]:
        return (self.element,)

    @property
    def reads(self) -> tuple[Load, ...]:
        """What it reads of what it combines into, by the nodes that do."""
        return (self.element,)

    @property
    def operands(self) -> tuple[Expr, ...]:
        return (self.operand,)

    @property
    def neutral(self) -> tuple[Expr, ...]:
        """For each element the scalar that changes nothing that it is combined with."""
        return (neutral(self.operation, self.store.buffer.dtype),)

    def combined(self, new: Sequence[Expr], old: Sequence[Load], on: Expr | None = None) -> Iterator[Stmt]:
        """Takes new operands into the places of old ones, which may be vectors, in the lanes that are on."""
        ((mine,), (its,)) = new, old
        value: Expr = self.operation(its, mine)
        if on is not None:
            value = Select(on, value, its)
        yield Store(its.buffer, its.indices, value, span=self.store.span)


@record(eq=False)
class ComparedUpdate(Update):
    """`store` sets its element to `operand` where that is less, or with Max greater, and else leaves it: of nan too."""

    compared: Load

    @property
    def reads(self) -> tuple[Load, ...]:
        return (self.element, self.compared)

    def combined(self, new: Sequence[Expr], old: Sequence[Load], on: Expr | None = None) -> Iterator[Stmt]:
        ((mine,), (its,)) = new, old
        value = Var("value", mine.dtype)
        yield Let(value, mine)
        takes: Expr = LT(value, its) if self.operation is Min else GT(value, its)
        takes = takes if on is None else BitAnd(on, takes)
        yield Store(its.buffer, its.indices, Select(takes, value, its), span=self.store.span)


@record(eq=False)
class PairUpdate:
    """Two stores keep the pair of a value and its place that comes first, as `tl.argmax` or, with Min, `tl.argmin`.

    `values` are the lets that hold what they store; `elements` is the pair that was there, `operands` the other one.
    """

    stores: tuple[Store, Store]
    values: tuple[Let, Let]
    operation: type[Max] | type[Min]
    elements: tuple[Load, Load]
    operands: tuple[Expr, Expr]

    @property
    def store(self) -> Store:
        return self.stores[0]

    @property
    def reads(self) -> tuple[Load, ...]:
        """None but those of `values`."""
        return ()

    @property
    def neutral(self) -> tuple[Expr, ...]:
        best, at = (store.buffer.dtype for store in self.stores)
        return neutral(self.operation, best), IntImm(at, at.max)

    def combined(self, new: Sequence[Expr], old: Sequence[Load], on: Expr | None = None) -> Iterator[Stmt]:
        condition = comes_first(self.operation, new[0], new[1], old[0], old[1])
        condition = condition if on is None else BitAnd(on, condition)
        takes = Var("takes", condition.dtype)
        yield Let(takes, condition)
        for mine, its in zip(new, old, strict=True):
            yield Store(its.buffer, its.indices, Select(takes, mine, its))


AnyUpdate: TypeAlias = Update | PairUpdate


def update_of(store: Store) -> Update | None:
    """The update that a store is, or None."""
    value = store.value
    if isinstance(value, Sub) and _is_element(value.a, store):
        assert isinstance(value.a, Load)
        return Update(store, Add, value.a, Neg(value.b))
    operation = type(value)
    if not isinstance(value, Binary) or operation not in SPELLING:
        return None
    for mine, other in ((value.a, value.b), (value.b, value.a)):
        if _is_element(mine, store):
            assert isinstance(mine, Load)
            return Update(store, operation, mine, other)
    return None


def compared_update_of(store: Store) -> ComparedUpdate | None:
    """What a store keeps the least or the greatest of by a comparison, as `without_branch` writes it."""
    value = store.value
    if not isinstance(value, Select) or not isinstance(value.if_false, Load) or not _is_element(value.if_false, store):
        return None
    found = _compared(value.condition, value.if_true, store)
    return None if found is None else ComparedUpdate(store, found[0], value.if_false, value.if_true, found[1])


def without_branch(branch: IfThenElse) -> Store | None:
    """`if e < a[i]: a[i] = e`, or another comparison, without a branch: as a minimum, or of floats a choice."""
    stmts = branch.then_body.stmts
    if len(stmts) != 1 or branch.else_body.stmts or not isinstance(store := stmts[0], Store):
        return None
    found = _compared(branch.condition, store.value, store)
    if found is None or store.value.dtype.lanes > 1 or store.buffer.volatile:
        return None
    operation, element = found
    if store.buffer.dtype.is_integer:
        return store.replaced(value=operation(element, store.value))
    return store.replaced(value=Select(branch.condition, store.value, element))


def _compared(condition: Expr, value: Expr, store: Store) -> tuple[type[Max] | type[Min], Load] | None:
    """Which of a value and the element that is stored to is taken, and the load of that."""
    if not isinstance(condition, LT | LE | GT | GE):
        return None
    is_less = isinstance(condition, LT | LE)
    for mine, other, kind in ((condition.a, condition.b, is_less), (condition.b, condition.a, not is_less)):
        if isinstance(other, Load) and _is_element(other, store) and structural_equal(mine, value):
            return (Min if kind else Max), other
    return None


def converted_update(store: Store) -> Binary | None:
    """The operation by which a store combines its element in another type, before it converts the result back."""
    value = store.value.value if isinstance(store.value, Cast) else None
    if not isinstance(value, Sub) and (not isinstance(value, Binary) or type(value) not in SPELLING):
        return None
    operands = (value.a,) if isinstance(value, Sub) else (value.a, value.b)
    is_update = any(isinstance(each, Cast) and _is_element(each.value, store) for each in operands)
    return value if is_update else None


def _is_element(expr: Expr, store: Store) -> bool:
    return isinstance(expr, Load) and expr.buffer is store.buffer and are_equal(expr.indices, store.indices)


def pair_updates(loop: For) -> Iterator[PairUpdate]:
    """The pair updates in a loop, those of branches and of loops inside too, each as the language writes it."""
    bodies = [loop.body]
    while bodies:
        body = bodies.pop()
        yield from _pairs_in(body)
        bodies += (inside for stmt in body.stmts for inside in stmt.bodies)


def _pairs_in(body: SeqStmt) -> Iterator[PairUpdate]:
    lets = {stmt.var: stmt for stmt in body.stmts if isinstance(stmt, Let) and isinstance(stmt.value, Select)}
    stores = [stmt for stmt in body.stmts if isinstance(stmt, Store) and stmt.value in lets]
    for one, two in pairwise(stores):
        values = lets[cast(Var, one.value)], lets[cast(Var, two.value)]
        choices = [cast(Select, each.value) for each in values]
        if not all(_is_element(choice.if_false, store) for choice, store in zip(choices, (one, two), strict=True)):
            continue
        value, place = (choice.if_true for choice in choices)
        best, at = (cast(Load, choice.if_false) for choice in choices)
        mentioned = {node.buffer for node in loads_in(value, place)}
        if not place.dtype.is_integer or place.dtype.is_bool or mentioned & {best.buffer, at.buffer}:
            continue
        for operation in (Max, Min):
            wanted = comes_first(operation, value, place, best, at)
            if all(structural_equal(choice.condition, wanted) for choice in choices):
                yield PairUpdate((one, two), values, operation, (best, at), (value, place))


def neutral(operation: Operation, dtype: DType) -> Expr:
    """The neutral element of an operation. Of float sums it is -0.0, as 0.0 would change -0.0."""
    if dtype.is_float:
        return FloatImm(dtype, {Add: -0.0, Mul: 1.0, Min: inf, Max: -inf}[operation])
    ends = {Min: dtype.max, Max: dtype.min, BitAnd: dtype.max if dtype.min == 0 else -1}
    return IntImm(dtype, ends.get(operation, int(operation is Mul)))


def comes_first(kind: type[Max] | type[Min], value: Expr, at: Expr, other: Expr, its: Expr) -> Expr:
    """Whether the pair (`value`, `at`) is taken rather than (`other`, `its`); all may be vectors.

    nan is beyond all else, and of equal values the one with the lower place is taken.
    """
    comes: Expr = GT(value, other) if kind is Max else LT(value, other)
    if value.dtype.is_float:
        comes = BitOr(comes, BitAnd(_isnan(value), Not(_isnan(other))))
    return BitOr(comes, BitAnd(is_same(value, other), LT(at, its)))


def is_beyond(kind: type[Max] | type[Min], value: Expr, other: Expr) -> Expr:
    """Whether a value is taken rather than another one, whose place is lower."""
    if not value.dtype.is_float:
        return GT(value, other) if kind is Max else LT(value, other)
    # Two comparisons: what is not at most the other one is beyond it, or one of them is nan.
    return BitAnd(Not(LE(value, other) if kind is Max else GE(value, other)), Not(_isnan(other)))


def is_same(value: Expr, other: Expr) -> Expr:
    """Whether two values are equal in this order: all nan are."""
    is_equal: Expr = EQ(value, other)
    return BitOr(is_equal, BitAnd(_isnan(value), _isnan(other))) if value.dtype.is_float else is_equal


def _isnan(value: Expr) -> Expr:
    return Call(bool_.with_lanes(value.dtype.lanes), Op.ISNAN, (value,))
