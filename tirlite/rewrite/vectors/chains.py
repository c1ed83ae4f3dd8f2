"""Splits a reduction into several accumulators, updated in turn, so that latencies of updates overlap.

In `s = s + a[i, j] * b[i, j]` over rows `i`, with `s` a scalar or a vector of columns, each row waits for the one
before; a processor could compute several meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tirlite.analysis.loops.patterns import has_much_to_do
from tirlite.analysis.loops.reductions import Update, update_of
from tirlite.ir.checked import has_check
from tirlite.ir.dtype import i64
from tirlite.ir.expr import GE, Add, And, Broadcast, Expr, IntImm, Load, const
from tirlite.ir.rewrite import Substitution
from tirlite.ir.stmt import Allocate, For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store
from tirlite.ir.walk import defined_in, is_steady, mentions, walk
from tirlite.record import replace
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.vectors.lanes import held, last_whole

# The accumulators of one result, which has up to this many vectors; more vectors hide the latency by themselves.
_NUMBER = 4
_MOST_VECTORS = 2
# A loop must run for this many rounds of the accumulators, and have no more nodes than this.
_ROUNDS = 2
_MOST_NODES = 100
# The most elements of a result that is kept in registers.
_MOST_ELEMENTS = 256


def in_chains(loop: For, vector_bytes: int, condition: Expr | None = None) -> tuple[Stmt, ...] | None:
    """The serial loops that replace a reduction, where a condition holds; None if it keeps one accumulator."""
    updates = _updates(loop)
    if not updates:
        return None
    vectors = sum(-(-each.store.value.dtype.bytes // vector_bytes) for each in updates)
    count = loop.count
    if vectors > _MOST_VECTORS or (isinstance(count, IntImm) and count.value < _ROUNDS * _NUMBER):
        return None
    return (*_by_turns(loop, updates, condition),)


def _updates(loop: For) -> list[Update]:
    """The updates of small results that make up the loop; none if it does anything else."""
    stmts = loop.body.stmts
    stores = [stmt for stmt in stmts if isinstance(stmt, Store)]
    if loop.step != 1 or has_check(loop) or has_much_to_do(loop):
        return []
    if not all(isinstance(stmt, Store | Let) for stmt in stmts):
        return []
    if sum(1 for _ in walk(loop.body)) > _MOST_NODES or len({store.buffer for store in stores}) < len(stores):
        return []
    updates = [update for store in stores if (update := update_of(store)) is not None]
    moving = defined_in(loop)
    is_plain = len(updates) == len(stores) and all(_waits(store, moving) for store in stores)
    return updates if is_plain else []


def _waits(store: Store, moving: set[object]) -> bool:
    """Whether each iteration waits for the one before: all update the same elements of a small local array."""
    buffer, kind = store.buffer, store.value.dtype
    if buffer.scope != "local" or buffer.volatile or not (kind.is_float or kind.lanes > 1):
        return False
    extents = [extent.value for extent in buffer.shape if isinstance(extent, IntImm)]
    if len(extents) < len(buffer.shape) or prod(extents) > _MOST_ELEMENTS:
        return False
    return is_steady(*store.indices) and not mentions(store.indices, moving)


def _by_turns(loop: For, updates: list[Update], condition: Expr | None) -> Iterator[Stmt]:
    count = yield from held(loop.count, "count", loop)
    whole = last_whole(loop, count, _NUMBER)
    serial = loop.replaced(kind=ForKind.SERIAL)
    many = SeqStmt((*_many(loop, updates, whole), serial.replaced(start=whole)))
    if not isinstance(count, IntImm):
        are_many = GE(count, const(_ROUNDS * _NUMBER, i64))
        condition = are_many if condition is None else And(condition, are_many)
    if condition is None:
        yield from many.stmts
    else:
        yield IfThenElse(condition, many, SeqStmt((serial,)), span=loop.span)


def _many(loop: For, updates: list[Update], whole: Expr) -> Iterator[Stmt]:
    """The unrolled loop up to `whole`, with the accumulators initialized before it and combined after it."""
    results: list[list[Load]] = [[] for _ in updates]
    copies = [Substitution({loop.var: folded(Add(loop.var, const(at, i64)))}, {}) for at in range(1, _NUMBER)]
    for update, loads in zip(updates, results, strict=True):
        (neutral,) = update.neutral
        kind, store = update.store.value.dtype, update.store
        loads.append(update.element)
        for copy in copies:
            buffer = copy.buffers[store.buffer] = replace(store.buffer)
            loads.append(Load(buffer, store.indices))
            yield Allocate(buffer, span=store.span)
            yield Store(buffer, store.indices, Broadcast(neutral, kind.lanes) if kind.lanes > 1 else neutral)
    body = [*loop.body.stmts]
    for copy in copies:
        body += (copy.copied(stmt) for stmt in loop.body.stmts if isinstance(stmt, Let | Store))
    yield loop.replaced(stop=whole, step=_NUMBER, body=SeqStmt((*body,)), kind=ForKind.SERIAL)
    for update, loads in zip(updates, results, strict=True):
        while len(loads) > 1:
            half = len(loads) // 2
            for mine, its in zip(loads[half:], loads[:half], strict=True):
                yield from update.combined([mine], [its])
            loads = loads[:half]
