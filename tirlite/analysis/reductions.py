"""Finds what the iterations of a reduction combine: the stores that update an element, each by one operation.

An update is `a[i] = a[i] + e`, with `+ - * min max & | ^`, the element on either side where the order does not count.
Iterations may be regrouped where each buffer from outside of the loop that they write is updated by one operation
throughout, and read for that alone, or else each iteration has elements of its own in it.
"""

from __future__ import annotations

from math import inf
from typing import TypeAlias

from tirlite.analysis.definitions import Definitions
from tirlite.analysis.loop_accesses import Key, LoopAccesses
from tirlite.ir import (
    Add,
    Binary,
    BitAnd,
    BitOr,
    BitXor,
    Buffer,
    DType,
    Expr,
    FloatImm,
    For,
    IntImm,
    Load,
    Max,
    Min,
    Mul,
    Neg,
    Stmt,
    Store,
    Sub,
    structural_equal,
)
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


@record(eq=False)
class Reading:
    """`stmt` reads what `update` combines into."""

    update: Update
    stmt: Stmt


@record(eq=False)
class Mixture:
    """Two statements write one buffer, and are not both updates by one operation."""

    first: Store
    second: Stmt


@record(eq=False)
class Carried:
    """`stmt` writes `buffer`, not by an update, where another iteration may touch the same element."""

    buffer: Buffer
    stmt: Stmt


Obstacle: TypeAlias = "Reading | Mixture | Carried"


def update_of(store: Store) -> Update | None:
    """What a store combines with its own element; None where it is no update."""
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


def _is_element(expr: Expr, store: Store) -> bool:
    if not isinstance(expr, Load) or expr.buffer is not store.buffer:
        return False
    return all(a is b or structural_equal(a, b) for a, b in zip(expr.indices, store.indices, strict=True))


def neutral(operation: Operation, dtype: DType) -> Expr:
    """The scalar that changes nothing that it is combined with. Of float sums it is -0.0: 0.0 would change -0.0."""
    if dtype.is_float:
        return FloatImm(dtype, {Add: -0.0, Mul: 1.0, Min: inf, Max: -inf}[operation])
    ends = {Min: dtype.max, Max: dtype.min, BitAnd: dtype.max if dtype.min == 0 else -1}
    return IntImm(dtype, ends.get(operation, int(operation is Mul)))


def updates_in(loop: For, definitions: Definitions) -> tuple[Update, ...] | Obstacle:
    """The updates of buffers from outside of the loop; else what stands against regrouping its iterations.

    For functions in normal form.
    """
    accesses = LoopAccesses(loop, definitions)
    found: dict[Key, list[Update]] = {}
    for access in accesses.found:
        if not access.is_write or accesses.are_apart(access.buffer):
            continue
        update = update_of(access.node) if isinstance(access.node, Store) else None
        others = found.setdefault(accesses.key(access), [])
        if update is None:
            return Mixture(others[0].store, access.stmt) if others else Carried(access.buffer, access.stmt)
        if others and others[0].operation is not update.operation:
            return Mixture(others[0].store, access.stmt)
        others.append(update)
    own = {update.element for updates in found.values() for update in updates}
    for access in accesses.found:
        key = accesses.key(access)
        if access.node in own:
            own.remove(access.node)
        elif not access.is_write and key in found:
            return Reading(found[key][0], access.stmt)
    return tuple(update for updates in found.values() for update in updates)
