"""Stores values that several loops, or all iterations of one loop, would compute again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TypeGuard

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.patterns import has_much_to_do
from tirlite.ir.dtype import i64
from tirlite.ir.equal import are_equal, structural_equal
from tirlite.ir.expr import Add, Buffer, Call, Expr, FloorDiv, FloorMod, IntImm, Load, Max, Min, Mul, Sub, TruncDiv, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.rewrite import rewrite, substitute, values_of
from tirlite.ir.stmt import Allocate, For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store, While
from tirlite.ir.walk import is_constant, loads_in, mentions, statements, statements_of, variables_in, walk

# Only these statements may come between the two loops: they cannot fail, and their accesses are visible.
_PLAIN = (Allocate, For, IfThenElse, Let, Store)
# The operations in quotients that are stored.
_PURE = (Add, FloorDiv, FloorMod, IntImm, Max, Min, Mul, Sub, TruncDiv, Var)
# A loop of at most this many iterations, as over the colours of a pixel, counts as part of an iteration around it.
_FEW = 16


def rewritten(facts: Facts, *, called: bool) -> PrimFunc:
    """The function with values that two loops compute stored by a loop before them, see `ComputeOnce`."""
    func = facts.func
    if any(loop.kind is ForKind.REDUCE and has_much_to_do(loop) for loop in statements_of(func.body, For)):
        func = rewrite(func, {SeqStmt: lambda block: _LoopPairs(block, facts, called=called).rewritten()})
    return func if called else _with_quotients(func, facts)


class _LoopPairs:
    """Searches a block for pairs of loops that compute the same value."""

    def __init__(self, block: SeqStmt, facts: Facts, *, called: bool) -> None:
        self.block = block
        self.facts = facts
        self.called = called

    def rewritten(self) -> SeqStmt:
        stmts = self.block.stmts
        for at, loop in enumerate(stmts):
            if not isinstance(loop, For) or loop.kind is not ForKind.REDUCE or not has_much_to_do(loop):
                continue
            first = _without_names(loop)
            for place, second in enumerate(stmts[at + 1 :], start=at + 1):
                between = stmts[at + 1 : place]
                if not all(isinstance(each, _PLAIN) for each in _all_of(first, *between)):
                    break
                if isinstance(second, For) and (pair := self._pair(first, between, _without_names(second))) is not None:
                    found = (pair.stored, pair.first, *between, pair.second)
                    return self.block.replaced(stmts=(*stmts[:at], *found, *stmts[place + 1 :]))
        return self.block

    def _pair(self, first: For, between: Sequence[Stmt], second: For) -> _Pair | None:
        """The pair of loops if both compute a value that can be stored in the results of the second."""
        store = _only_store(second)
        if store is None or not _go_alike(first, second) or second.var not in store.indices:
            return None
        result = self._root(store.buffer)
        bound = {each.var for each in _all_of(*between) if isinstance(each, Let)}
        if result not in self.facts.params or mentions(store.indices, bound):
            return None
        if result in self._loaded(first, *between, store) | self._stored(first, *between):
            return None
        for value in _elementary(store.value):
            pair = _Pair(first, second, store, value)
            if value.dtype == store.buffer.dtype and pair.is_shared and self._may_stand(pair, between):
                return pair
        return None

    def _may_stand(self, pair: _Pair, between: Sequence[Stmt]) -> bool:
        """Whether the value is the same before the first loop, and the results may be overwritten that early."""
        loads = list(loads_in(pair.value))
        is_changed = not self._loaded(pair.value).isdisjoint(self._stored(pair.first, *between))
        if is_changed or any(each.buffer.volatile for each in loads):
            return False
        if not self.called:
            return True
        beside = self._loaded(pair.first, *between, pair.second) - {self._root(pair.store.buffer)}
        return beside.isdisjoint(self.facts.params) and all(
            _lie_alike(each, pair.store) for each in loads if self._root(each.buffer) in self.facts.params
        )

    def _loaded(self, *nodes: Node) -> set[Buffer]:
        return {self._root(each.buffer) for each in loads_in(*nodes)}

    def _stored(self, *stmts: Stmt) -> set[Buffer]:
        return {self._root(each.buffer) for each in _all_of(*stmts) if isinstance(each, Store)}

    def _root(self, buffer: Buffer) -> Buffer:
        return self.facts.definitions.root(buffer)


class _Pair:
    """Two loops that compute a value, changed to load it, and the loop that stores it before them."""

    def __init__(self, first: For, second: For, store: Store, value: Call) -> None:
        self.store = store
        self.value = value
        var = Var(second.var.name, second.var.dtype)
        moved = substitute(store.replaced(value=value), {second.var: var})
        self.stored = second.replaced(var=var, body=SeqStmt((moved,)))
        self.first = _loading(first, store, substitute(value, {second.var: first.var}), {second.var: first.var})
        self.second = _loading(second, store, value, {})
        self.is_shared = self.first is not first


def _loading(loop: For, store: Store, value: Call, names: dict[Var, Expr]) -> For:
    """A loop that loads the stored value instead of computing it."""
    stored = Load(store.buffer, tuple(substitute(index, names) for index in store.indices))
    result = rewrite(loop, {Call: lambda node: stored if structural_equal(node, value) else node})
    assert isinstance(result, For)
    return result


def _without_names(loop: For) -> For:
    """A loop whose body is one store after lets, as the store alone."""
    *before, last = loop.body.stmts or (loop,)
    lets = [each for each in before if isinstance(each, Let)]
    if not lets or len(lets) < len(before) or not isinstance(last, Store):
        return loop
    return loop.replaced(body=SeqStmt((substitute(last, values_of(lets)),)))


def _only_store(loop: For) -> Store | None:
    if loop.kind in (ForKind.THREAD, ForKind.REDUCE) or len(loop.body.stmts) != 1:
        return None
    (store,) = loop.body.stmts
    return store if isinstance(store, Store) and not store.buffer.volatile else None


def _go_alike(first: For, second: For) -> bool:
    return first.step == second.step == 1 and are_equal((first.start, first.stop), (second.start, second.stop))


def _lie_alike(load: Load, store: Store) -> bool:
    """Whether both access the same place, if their buffers are the same array."""
    a, b = load.buffer, store.buffer
    pairs = [(a.shape, b.shape), (a.strides, b.strides), (load.indices, store.indices)]
    return a.dtype == b.dtype and all(are_equal(*pair) for pair in pairs)


def _all_of(*stmts: Stmt) -> Iterator[Stmt]:
    return (each for stmt in stmts for each in statements(stmt))


def _elementary(value: Expr) -> Iterator[Call]:
    return (node for node in walk(value) if isinstance(node, Call) and node.op.takes_fast)


def _with_quotients(func: PrimFunc, facts: Facts) -> PrimFunc:
    """The function with quotients that the rows of its nests share stored before these."""
    if For not in func.body.kinds:
        return func
    stmts: list[Stmt] = []
    for stmt in func.body.stmts:
        if not isinstance(stmt, For) or not any(map(_is_by_no_constant, walk(stmt))):
            stmts.append(stmt)
            continue
        stored: dict[Expr, Buffer] = {}
        loads: dict[Expr, Load] = {}
        for loop in statements_of(stmt.body, For):
            for quotient in _quotients(loop, facts) if _is_of_rows(loop, facts) else ():
                _store_once(quotient, loop, stored, loads, stmts)
        if loads:
            stmt = rewrite(stmt, dict.fromkeys((FloorDiv, TruncDiv), partial(_loaded_from, loads)))
        stmts.append(stmt)
    return func if len(stmts) == len(func.body.stmts) else func.replaced(body=func.body.replaced(stmts=(*stmts,)))


def _loaded_from(loads: dict[Expr, Load], quotient: Expr) -> Expr:
    return loads.get(quotient, quotient)


def _is_of_rows(loop: For, facts: Facts) -> bool:
    """Whether a loop runs along a row whose length is known on entry."""
    from tirlite.sizes import is_at_most

    inside = (each for each in statements(loop.body) if isinstance(each, For | While))
    is_plain = loop.kind in (ForKind.SERIAL, ForKind.PARALLEL) and loop.step == 1
    begins = is_constant(loop.start, 0)
    if not is_plain or not begins or not all(map(_is_short, inside)):
        return False
    size = facts.extents.size(loop.stop)
    is_given = all(node in facts.extents.given for node in variables_in(loop.stop))
    return size is not None and is_given and is_at_most(0, size)


def _is_short(loop: For | While) -> bool:
    return isinstance(loop, For) and loop.values is not None and len(loop.values) <= _FEW


def _is_by_no_constant(node: Node) -> TypeGuard[FloorDiv | TruncDiv]:
    return isinstance(node, FloorDiv | TruncDiv) and node.dtype == i64 and not isinstance(node.b, IntImm)


def _quotients(loop: For, facts: Facts) -> Iterator[FloorDiv | TruncDiv]:
    """The non-constant quotients in a loop that only depend on its variable and on the function's parameters."""
    todo: list[Node] = [loop.body]
    while todo:
        node = todo.pop()
        if _is_by_no_constant(node):
            inside = [*walk(node)]
            names = {each for each in inside if isinstance(each, Var)}
            is_pure = all(isinstance(each, _PURE) for each in inside)
            if is_pure and loop.var in names and names <= {loop.var, *facts.extents.given}:
                yield node
                continue
        todo += node.children()


def _store_once(
    quotient: Expr, loop: For, stored: dict[Expr, Buffer], loads: dict[Expr, Load], stmts: list[Stmt]
) -> None:
    """Replaces a quotient by a load from a row that stores equal quotients, which is added if it is new."""
    row = next((each for other, each in stored.items() if structural_equal(other, quotient)), None)
    if row is None:
        row = stored[quotient] = Buffer("quotients", i64, (loop.stop,))
        var = Var(loop.var.name, i64)
        store = Store(row, (var,), substitute(quotient, {loop.var: var}))
        stmts += (Allocate(row), For(var, loop.start, loop.stop, SeqStmt((store,)), span=loop.span))
    loads[quotient] = Load(row, (loop.var,))
