"""ComputeOnce stores what two loops would compute twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tirlite.analysis.facts import Facts
from tirlite.analysis.work import has_much_to_do
from tirlite.ir import (
    Allocate,
    Buffer,
    Call,
    Expr,
    For,
    ForKind,
    IfThenElse,
    Let,
    Load,
    Node,
    PrimFunc,
    SeqStmt,
    Stmt,
    Store,
    Var,
    statements,
    statements_of,
    walk,
)
from tirlite.record import record
from tirlite.rewrite.pipeline import FactsPass

# Between the two loops nothing else may stand: it neither fails, nor reads or writes what is not seen.
_PLAIN = (Allocate, For, IfThenElse, Let, Store)


@record
class ComputeOnce(FactsPass):
    """Computes an elementary function once where a reduction and the loop that fills a row of a parameter both do.

    In a softmax, for one, the sum and the results take the same exponentials. A loop of its own stores them before the
    reduction, at the places of the results: the reduction loads them there, and the last loop makes the results of
    them. All results stay the same to the last bit.

    With `called`, for functions that others call, all that is read of parameters is at the places of the results: so
    two parameters may still be one array. For functions in normal form (see `Normalize`).
    """

    called: bool = False

    def rewritten(self, facts: Facts) -> PrimFunc:
        loops = [loop for loop in statements_of(facts.func.body, For) if loop.kind is ForKind.REDUCE]
        if not any(map(has_much_to_do, loops)):
            return facts.func
        from tirlite.ir import rewrite

        return rewrite(facts.func, {SeqStmt: lambda block: _Block(block, facts, called=self.called).rewritten()})


class _Block:
    """The statements of a block, in which pairs of loops are looked for."""

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
        store = _only_store(second)
        if store is None or not _go_alike(first, second) or second.var not in store.indices:
            return None
        result = self._root(store.buffer)
        bound = {each.var for each in _all_of(*between) if isinstance(each, Let)}
        if result not in self.facts.params or any(node in bound for index in store.indices for node in walk(index)):
            return None
        if result in self._loaded(first, *between, store) | self._stored(first, *between):
            return None
        for value in _elementary(store.value):
            pair = _Pair(first, second, store, value)
            if value.dtype == store.buffer.dtype and pair.is_shared and self._may_stand(pair, between):
                return pair
        return None

    def _may_stand(self, pair: _Pair, between: Sequence[Stmt]) -> bool:
        """Whether the value is the same before the first loop, and the results may stand there that early."""
        loads = [each for each in walk(pair.value) if isinstance(each, Load)]
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
        return {self._root(each.buffer) for node in nodes for each in walk(node) if isinstance(each, Load)}

    def _stored(self, *stmts: Stmt) -> set[Buffer]:
        return {self._root(each.buffer) for each in _all_of(*stmts) if isinstance(each, Store)}

    def _root(self, buffer: Buffer) -> Buffer:
        return self.facts.definitions.root(buffer)


class _Pair:
    """Two loops that compute a value, as they are when it is loaded, and the loop that stores it."""

    def __init__(self, first: For, second: For, store: Store, value: Call) -> None:
        from tirlite.ir import substitute

        self.store = store
        self.value = value
        var = Var(second.var.name, second.var.dtype)
        moved = substitute(store.replaced(value=value), {second.var: var})
        self.stored = second.replaced(var=var, body=SeqStmt((moved,)))
        self.first = _loading(first, store, substitute(value, {second.var: first.var}), {second.var: first.var})
        self.second = _loading(second, store, value, {})
        self.is_shared = self.first is not first


def _loading(loop: For, store: Store, value: Call, names: dict[Var, Expr]) -> For:
    """A loop with loads of what was stored in the place of a value."""
    from tirlite.ir import rewrite, structural_equal, substitute

    stored = Load(store.buffer, tuple(substitute(index, names) for index in store.indices))
    result = rewrite(loop, {Call: lambda node: stored if structural_equal(node, value) else node})
    assert isinstance(result, For)
    return result


def _without_names(loop: For) -> For:
    """A loop with one store, which may follow lets, as the store alone."""
    *lets, last = loop.body.stmts or (loop,)
    if not lets or not isinstance(last, Store) or not all(isinstance(each, Let) for each in lets):
        return loop
    from tirlite.ir import substitute

    values: dict[Var, Expr] = {}
    for let in lets:
        assert isinstance(let, Let)
        values[let.var] = substitute(let.value, values)
    return loop.replaced(body=SeqStmt((substitute(last, values),)))


def _only_store(loop: For) -> Store | None:
    if loop.kind in (ForKind.THREAD, ForKind.REDUCE) or len(loop.body.stmts) != 1:
        return None
    (store,) = loop.body.stmts
    return store if isinstance(store, Store) and not store.buffer.volatile else None


def _go_alike(first: For, second: For) -> bool:
    from tirlite.ir.equal import are_equal

    return first.step == second.step == 1 and are_equal((first.start, first.stop), (second.start, second.stop))


def _lie_alike(load: Load, store: Store) -> bool:
    """Whether the one is at the place of the other, should their buffers be."""
    from tirlite.ir.equal import are_equal

    a, b = load.buffer, store.buffer
    pairs = [(a.shape, b.shape), (a.strides, b.strides), (load.indices, store.indices)]
    return a.dtype == b.dtype and all(are_equal(*pair) for pair in pairs)


def _all_of(*stmts: Stmt) -> Iterator[Stmt]:
    return (each for stmt in stmts for each in statements(stmt))


def _elementary(value: Expr) -> Iterator[Call]:
    return (node for node in walk(value) if isinstance(node, Call) and node.op.takes_fast)
