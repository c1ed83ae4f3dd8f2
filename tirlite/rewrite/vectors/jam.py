"""Jam writes several iterations of a loop as one (unroll and jam): each statement for all of them, before the next one.

Inner loops stay one loop each, whose loads all of these iterations use, and uniform values are computed once. If a loop
adds one row after the other to a row of results, as in `for i: for j: y[j] += a[i, j]`, each element of the results is
loaded and stored once for all of them, with its terms in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from tirlite.analysis.access import Allocation, Touch
from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.dependence import writes
from tirlite.analysis.loops.patterns import moved_by
from tirlite.ir.checked import has_check
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Add, Buffer, Expr, IntImm, Load, Min, Var, const
from tirlite.ir.rewrite import Substitution
from tirlite.ir.stmt import Allocate, For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store, nested
from tirlite.ir.walk import defined_in, is_steady, loads_in, mentions, statements, statements_of, walk
from tirlite.rewrite.vectors.lanes import NotVector, held, is_at, is_same_element, last_whole, may_fault

# Iterations of an outer loop taken together to share loads, with four registers each for results.
ROWS = 4
PLAIN = (ForKind.SERIAL, ForKind.PARALLEL)
# LLVM unrolls shorter rows itself, and keeps them in registers throughout.
_SHORTEST = 17
# Other numbers of iterations to take together, if they leave no remainder.
_OF_FEW = (3, 5, 7)


class Jam:
    """Writes this many independent iterations of a loop over `var` as one, from its value on.

    Iterations beyond `last`, if given, repeat that one.
    """

    def __init__(self, var: Var, iterations: int, last: Expr | None = None) -> None:
        images: list[Expr] = [Add(var, const(place, i64)) for place in range(1, iterations)]
        if last is not None:
            images = [Min(image, last) for image in images]
        # One for each iteration but the first, which stays as written.
        self.copies = [Substitution({var: image}, {}) for image in images]
        # The variables and buffers whose value may differ between iterations.
        self.differing: set[Var | Buffer] = {var}

    def block(self, body: SeqStmt) -> SeqStmt:
        """The body for all iterations. Raises NotVector if inner loops differ, and for other statements."""
        self._find_differing(body)
        return self._block(body)

    def _find_differing(self, body: SeqStmt) -> None:
        """Propagates differences through lets and stores; buffers from outside always count as different."""
        stmts = [*statements(body)]
        own = {stmt.buffer for stmt in stmts if isinstance(stmt, Allocate)}
        known = -1
        while known < len(self.differing):
            known = len(self.differing)
            for stmt in stmts:
                if isinstance(stmt, Let) and self._differs(stmt.value):
                    self.differing.add(stmt.var)
                elif isinstance(stmt, Store) and (
                    stmt.buffer not in own or any(map(self._differs, (stmt.value, *stmt.indices)))
                ):
                    self.differing.add(stmt.buffer)

    def _differs(self, expr: Expr) -> bool:
        names = (node.buffer if isinstance(node, Load) else node for node in walk(expr))
        return any(name in self.differing for name in names)

    def _block(self, body: SeqStmt) -> SeqStmt:
        return SeqStmt(tuple(each for stmt in body.stmts for each in self.statement(stmt)))

    def statement(self, stmt: Stmt) -> Iterator[Stmt]:
        """A statement for all iterations. Raises NotVector if its bounds or condition differ between them."""
        if isinstance(stmt, For) and stmt.kind in (ForKind.SERIAL, ForKind.REDUCE, ForKind.UNROLLED):
            if self._differs(stmt.start) or self._differs(stmt.stop):
                raise NotVector
            yield stmt.replaced(body=self._block(stmt.body))
        elif isinstance(stmt, IfThenElse):
            if self._differs(stmt.condition):
                raise NotVector
            then_body, else_body = self._block(stmt.then_body), self._block(stmt.else_body)
            yield stmt.replaced(then_body=then_body, else_body=else_body)
        elif isinstance(stmt, Allocate | Let | Store):
            name = stmt.var if isinstance(stmt, Let) else stmt.buffer
            yield stmt
            if name in self.differing:
                yield from (copy.copied(stmt) for copy in self.copies)
        else:
            raise NotVector


def is_plain(loop: For) -> bool:
    return loop.kind in PLAIN and loop.step == 1 and not goes_by_vectors(loop) and not has_check(loop)


def goes_by_vectors(loop: For) -> bool:
    """Whether the loop contains vectors already, from a schedule."""
    return any(store.value.dtype.lanes > 1 for store in statements_of(loop.body, Store))


def is_repeatable(loop: For, touches: Mapping[Allocation, Sequence[Touch]]) -> bool:
    """Whether running an iteration twice is harmless: it reads what it writes only after setting it."""
    always = {*loop.body.stmts}
    for found in touches.values():
        if not any(map(writes, found)):
            continue
        fresh: list[Store] = []
        for stmt, group in groupby(found, lambda touch: touch.stmt):
            if any(not writes(touch) and not any(is_same_element(store, touch) for store in fresh) for touch in group):
                return False
            if isinstance(stmt, Store) and stmt in always:
                fresh.append(stmt)
    return True


def rows_together(chain: Sequence[For], rows: int, facts: Facts) -> tuple[Stmt, ...] | None:
    """What replaces a chain whose innermost loop adds a row to a row of results in each iteration of the outer loop.

    Several iterations of the outer loop are taken together, as many as leave no remainder if their number is constant.
    There may be lets beside the inner loop. None if that cannot be, or does not pay.
    """
    *names, inner = chain[-1].body.stmts or chain[-1:]
    if names and isinstance(inner, For):
        *around, loop = chain
    elif len(chain) > 1:
        *around, loop, inner = chain
        names = []
    else:
        return None
    if loop.kind not in (ForKind.SERIAL, ForKind.REDUCE):
        return None
    count = loop.count
    few = count.value if isinstance(count, IntImm) and count.value > rows else rows
    number = next((each for each in (rows, *_OF_FEW) if few % each == 0), rows)
    made = _together(loop, names, inner, number, facts)
    return None if made is None else nested(around, *by_rows(loop, number, made, (*names, inner))).stmts


def _together(loop: For, names: Sequence[Stmt], inner: For, rows: int, facts: Facts) -> tuple[Stmt, ...] | None:
    """`rows` iterations of a loop over `names` and `inner`, taken together; None if that cannot be."""
    if inner.kind is not ForKind.SERIAL or inner.step != 1 or loop.step != 1:
        return None
    if not _is_long(loop, rows) or not _is_long(inner, _SHORTEST) or has_check(loop):
        return None
    if not _updates_alone(loop, inner, facts) or not facts.is_independent(inner):
        return None
    store = inner.body.stmts[-1]
    assert isinstance(store, Store)
    if loop.kind is ForKind.REDUCE and all(isinstance(extent, IntImm) for extent in store.buffer.shape):
        # Blocks of iterations may get an array of partial results instead.
        return None
    root = facts.definitions.root(store.buffer)
    ends = walk(loop.start, loop.stop)
    if any(isinstance(node, Load) and facts.definitions.root(node.buffer) is root for node in ends):
        return None
    for name in names:
        if not isinstance(name, Let) or any(isinstance(node, Expr) and may_fault(node) for node in walk(name.value)):
            return None
        if any(facts.definitions.root(load.buffer) is root or load.buffer.volatile for load in loads_in(name.value)):
            return None
    moving = {loop.var, *defined_in(inner.body)}
    if mentions(store.indices, moving) or not is_steady(*store.indices):
        return None
    try:
        return Jam(loop.var, rows).block(SeqStmt((*names, inner))).stmts
    except NotVector:
        return None


def sums_together(chain: list[For], facts: Facts, registers: int) -> tuple[Stmt, ...] | None:
    """The statements that replace a chain whose innermost loop sums along rows that its iterations share.

    Several iterations are jammed, those of the outer loop too: each loaded vector is used in all its sums.
    """
    stmts: tuple[Stmt, ...] = chain[-1].body.stmts
    sums = _sums_along_rows(stmts)
    if sums is None:
        return None
    results = sum(1 for _ in statements_of(sums.body, Store))
    number = next((each for each in (ROWS, 2) if each * (each * results + 2) <= registers), 1)
    level = len(chain)
    while number > 1 and level and len(chain) - level < 2 and _serves(chain[level - 1], sums, facts):
        loop = chain[level - 1]
        try:
            together = Jam(loop.var, number).block(SeqStmt(stmts)).stmts
        except NotVector:
            break
        stmts = (*by_rows(loop, number, together, stmts),)
        level -= 1
    return nested(chain[:level], *stmts).stmts if level < len(chain) else None


def _sums_along_rows(stmts: tuple[Stmt, ...]) -> For | None:
    """The only loop among statements, if it sums along at least two rows, over adjacent elements."""
    loops = [stmt for stmt in stmts if isinstance(stmt, For)]
    if len(loops) != 1 or loops[0].kind is not ForKind.REDUCE:
        return None
    loop, inside = loops[0], loops[0].body
    loads = [node for node in loads_in(inside) if mentions(node, loop.var)]
    are_rows = len(loads) > 1 and all(moved_by(load.indices[-1], loop.var) == 1 for load in loads)
    return loop if are_rows and inside.kinds <= {Let, Store} else None


def _serves(loop: For, sums: For, facts: Facts) -> bool:
    """Whether iterations of a loop are independent, and share some but not all of the rows that `sums` reads."""
    loads = [node for node in loads_in(sums.body) if mentions(node, sums.var)]
    own = [load for load in loads if mentions(load, loop.var)]
    pays = is_plain(loop) and all(load.dtype.is_float for load in loads) and 0 < len(own) < len(loads)
    return pays and facts.is_independent(loop) and facts.replaces_nothing(loop)


def by_rows(loop: For, number: int, rows: tuple[Stmt, ...], single: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """The loop with the body `rows` for `number` iterations at once, and the remainder loop with the body `single`."""
    count = yield from held(loop.count, "count", loop)
    middle = last_whole(loop, count, number)
    yield loop.replaced(stop=middle, step=number, body=SeqStmt(rows))
    yield loop.replaced(start=middle, body=SeqStmt(single))


def _is_long(loop: For, least: int) -> bool:
    count = loop.count
    return not isinstance(count, IntImm) or count.value >= least


def _updates_alone(loop: For, inner: For, facts: Facts) -> bool:
    """Whether iterations only update adjacent elements, from their old values and what `loop` does not write."""
    *lets, store = inner.body.stmts or (None,)
    if not isinstance(store, Store) or not store.indices or store.buffer.volatile or store.value.dtype.lanes > 1:
        return False
    if not all(isinstance(let, Let) for let in lets) or not mentions(store.indices[-1], inner.var):
        return False
    root = facts.definitions.root(store.buffer)
    has_old = has_others = False
    for stmt in (*lets, store):
        assert isinstance(stmt, Let | Store)
        for node in walk(stmt.value):
            if isinstance(node, Expr) and may_fault(node):
                return False
            if isinstance(node, Load) and facts.definitions.root(node.buffer) is root:
                is_old = stmt is store and is_at(node, store)
                has_old, has_others = has_old or is_old, has_others or not is_old
            if isinstance(node, Load) and node.buffer.volatile:
                return False
    return has_old and not (has_others and _carries_others(loop, store, facts))


def _carries_others(loop: For, store: Store, facts: Facts) -> bool:
    """Whether an iteration may touch what another one does, other than the element that `store` updates."""
    touches = (touch for each in facts.carried_by(loop) for touch in (each.source, each.sink))
    return not all(is_same_element(store, touch) for touch in touches)
