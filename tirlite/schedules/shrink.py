"""Shrink brings temporaries to where they are used, and leaves what is touched there, of one element a scalar."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from tirlite.analysis.access import AccessKind, Allocation
from tirlite.analysis.facts import Facts
from tirlite.analysis.regions import is_within
from tirlite.analysis.temporaries import temporaries
from tirlite.ir import (
    Allocate,
    AttrStmt,
    Buffer,
    For,
    ForKind,
    Let,
    Load,
    Node,
    PrimFunc,
    Stmt,
    Store,
    Var,
    rewrite,
    statements,
    statements_of,
)
from tirlite.ir.shapes import has_one_element
from tirlite.record import record
from tirlite.rewrite.pipeline import Rewritten
from tirlite.schedules.compact import compacted
from tirlite.schedules.handle import BufferName, buffer_named
from tirlite.schedules.sink import sunk
from tirlite.schedules.step import Step, demand_temporaries, does_not_fit


@record
class Shrink(Step):
    """Temporaries in the innermost body that holds all of their uses, with as many elements as are touched there.

    All of them, where none is named. One element becomes a scalar: a `let` where it is stored once. After `join`, which
    brings together what fills a temporary and what reads it, little is left of it. It never changes results. Refused
    where nothing becomes less.
    """

    buffers: tuple[BufferName, ...] = ()

    def rewritten(self, facts: Facts) -> PrimFunc:
        return self.on(facts).func

    def on(self, facts: Facts) -> Rewritten:
        named = [buffer_named(facts.func, each) for each in self.buffers]
        moved = Rewritten(sunk(self._chosen(facts, named), facts)).facts_after(facts)
        accesses = compacted(self._chosen(moved, named), moved)
        less = Rewritten(accesses.apply(moved.func)).facts_after(moved)
        made = contracted(self._chosen(less, [accesses.buffers.get(each, each) for each in named]), less)
        if made is facts.func:
            told = ", ".join(f"`{each.name}`" for each in named) or "each temporary"
            raise does_not_fit(self, f"all of {told} is touched in the body that it is allocated in")
        return Rewritten(made, facts=less if made is less.func else None)

    def _chosen(self, facts: Facts, named: Collection[Buffer]) -> list[Allocation]:
        """The allocations of these buffers, or of all temporaries. Raises KernelError for one that is no temporary."""
        return demand_temporaries(self, facts, named) if named else temporaries(facts)


def contracted(allocations: Iterable[Allocation], facts: Facts) -> PrimFunc:
    """The function with those of these temporaries that have one element as scalars, which take no memory.

    Where one store comes before all loads in its block, the value becomes a `let`; any other moves from `global` to
    `local` memory, whose small constant buffers are kept in registers.
    """
    single = [each for each in allocations if has_one_element(each.buffer)]
    apart = _apart(facts.func) if single else {}
    made: dict[Buffer, Var | Buffer] = {}
    for each in single:
        if _is_let(each, apart):
            made[each.buffer] = Var(each.buffer.name, each.buffer.dtype)
        elif each.buffer.scope == "global":
            made[each.buffer] = replace(each.buffer, scope="local")

    def access(node: Load | Store) -> Node:
        new = made.get(node.buffer)
        if isinstance(new, Var):
            return Let(new, node.value) if isinstance(node, Store) else new
        return node if new is None else node.replaced(buffer=new)

    def allocate(node: Allocate) -> Stmt | tuple[Stmt, ...]:
        new = made.get(node.buffer)
        return () if isinstance(new, Var) else node if new is None else node.replaced(buffer=new)

    return rewrite(facts.func, {Allocate: allocate, Store: access, Load: access}) if made else facts.func


def _apart(func: PrimFunc) -> dict[Stmt, set[Stmt]]:
    """For statements of bodies that end where no region does, which statements stand in these."""
    marked: list[AttrStmt | For] = [*statements_of(func.body, AttrStmt)]
    marked += (loop for loop in statements_of(func.body, For) if loop.kind is ForKind.THREAD)
    return {stmt: inside for each in marked if (inside := {*statements(each.body)}) for stmt in each.body.stmts}


def _is_let(allocation: Allocation, apart: dict[Stmt, set[Stmt]]) -> bool:
    """Whether there is one store, and each load comes after it in the block that it stands in."""
    stores = [touch for touch in allocation.touches if touch.kind is AccessKind.WRITE]
    if len(stores) != 1 or allocation.buffer.dtype.lanes != 1:
        return False
    (store,) = stores
    assert isinstance(store.node, Store)
    block = apart.get(store.stmt)
    return store.node.value.dtype == allocation.buffer.dtype and all(
        each.position > store.position and is_within(each.region, store.region) and (not block or each.stmt in block)
        for each in allocation.touches
        if each is not store
    )
