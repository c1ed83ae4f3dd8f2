"""Turns each temporary of one element in a function into a variable, or into a register."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tirlite.analysis.access import AccessKind, Allocation
from tirlite.analysis.facts import Facts
from tirlite.analysis.temporaries import temporaries
from tirlite.ir import Allocate, Buffer, Let, Load, Node, PrimFunc, Rule, SeqStmt, Stmt, Store, Var, rewrite
from tirlite.ir.shapes import has_one_element
from tirlite.record import record
from tirlite.rewrite.pipeline import FactsPass


@record
class ContractTemporaries(FactsPass):
    """Turns temporaries of one element into scalars, which take no memory.

    Where one store comes before all loads in its block, the value becomes a `let`; any other moves from `global` to
    `local` memory, whose small constant buffers are kept in registers. For functions in normal form (see `Normalize`),
    after `SinkAllocations` and `CompactBuffers`, which leave one element of what is used only at its own index.
    """

    def rewritten(self, facts: Facts) -> PrimFunc:
        return contracted(temporaries(facts), facts)


def contracted(allocations: Iterable[Allocation], facts: Facts) -> PrimFunc:
    """The function with those of these temporaries that have one element as scalars."""
    single = [each for each in allocations if has_one_element(each.buffer)]
    if not single:
        return facts.func
    blocks = Blocks(facts.func)
    contraction = _Contraction()
    for allocation in single:
        store = _only_store(allocation, blocks)
        if store is not None:
            contraction.variables[allocation.buffer] = Var(allocation.buffer.name, allocation.buffer.dtype)
        elif allocation.buffer.scope == "global":
            contraction.registers[allocation.buffer] = replace(allocation.buffer, scope="local")
    return contraction.apply(facts.func)


def _only_store(allocation: Allocation, blocks: Blocks) -> Store | None:
    """The one store of an allocation, if each load comes after it in the block that it stands in."""
    writes = [touch.node for touch in allocation.touches if touch.kind is AccessKind.WRITE]
    loads = [touch.node for touch in allocation.touches if touch.kind is not AccessKind.WRITE]
    if len(writes) != 1 or allocation.buffer.dtype.lanes != 1:
        return None
    (store,) = writes
    assert isinstance(store, Store)
    is_scalar = store.value.dtype == allocation.buffer.dtype
    return store if is_scalar and all(blocks.dominates(store, load) for load in loads) else None


class _Contraction:
    """What becomes of the buffers of one element."""

    def __init__(self) -> None:
        self.variables: dict[Buffer, Var] = {}
        self.registers: dict[Buffer, Buffer] = {}

    def apply(self, func: PrimFunc) -> PrimFunc:
        if not (self.variables or self.registers):
            return func
        rules: dict[type[Node], Rule] = {Allocate: self.allocate, Store: self.store, Load: self.load}
        return rewrite(func, rules)

    def allocate(self, node: Allocate) -> Stmt | tuple[Stmt, ...]:
        if node.buffer in self.variables:
            return ()
        new = self.registers.get(node.buffer)
        return node if new is None else node.replaced(buffer=new)

    def store(self, node: Store) -> Stmt:
        if node.buffer in self.variables:
            return Let(self.variables[node.buffer], node.value)
        new = self.registers.get(node.buffer)
        return node if new is None else node.replaced(buffer=new)

    def load(self, node: Load) -> Node:
        if node.buffer in self.variables:
            return self.variables[node.buffer]
        new = self.registers.get(node.buffer)
        return node if new is None else node.replaced(buffer=new)


class Blocks:
    """The nodes of a function, numbered in program order, and the block in which each statement stands.

    Of a node that stands at several places nothing is said.
    """

    def __init__(self, func: PrimFunc) -> None:
        self._numbers: dict[Node, int] = {}
        self._ends: dict[Stmt, int] = {}  # by statement, the first number behind the block that it stands in
        self._repeated: set[Node] = set()
        self._walk(func.body)

    def dominates(self, stmt: Stmt, node: Node) -> bool:
        """Whether `node` lies behind `stmt` in the block that `stmt` stands in, or in one inside of it."""
        if stmt in self._repeated or node in self._repeated:
            return False
        number = self._numbers[node]
        return self._numbers[stmt] < number < self._ends[stmt] and not self._is_within(number, stmt)

    def _is_within(self, number: int, stmt: Stmt) -> bool:
        return number <= self._last[stmt]

    def _walk(self, body: SeqStmt) -> None:
        clock = 0
        self._last: dict[Node, int] = {}  # of each node the greatest number inside of it
        stack: list[tuple[Node, bool]] = [(body, False)]
        while stack:
            node, is_done = stack.pop()
            if is_done:
                self._last[node] = clock - 1
                if isinstance(node, SeqStmt):
                    self._ends.update(dict.fromkeys(node.stmts, clock))
                continue
            if node in self._numbers:
                self._repeated.add(node)
            self._numbers[node] = clock
            clock += 1
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(node.children()))
