"""Vectorizes searches: loops that look for an element that ends them, sets a record or breaks an assertion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.patterns import is_local_scalar, whole_rows
from tirlite.ir.checked import has_check
from tirlite.ir.dtype import bool_, i64
from tirlite.ir.equal import structural_equal
from tirlite.ir.expr import (
    GT,
    LE,
    LT,
    Add,
    And,
    BitOr,
    Buffer,
    Call,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Load,
    Min,
    Not,
    Ramp,
    Sub,
    Var,
    const,
)
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.rewrite import rewrite, substitute, values_of
from tirlite.ir.stmt import Allocate, Assert, For, IfThenElse, Let, SeqStmt, Stmt, Store, While, nested
from tirlite.ir.walk import conjuncts, is_constant, loads_in, mentions, reads, walk
from tirlite.record import record
from tirlite.rewrite.vectors.columns import loads_of
from tirlite.rewrite.vectors.flat_views import declared
from tirlite.rewrite.vectors.lanes import Lanes, NotVector, last_whole, may_fault
from tirlite.rewrite.vectors.one_row import as_one_row

# The bytes tested in one step, of the widest element, and the most nodes of a test.
_BYTES = 128
_MOST_NODES = 32
# At most this many vectors run in order before one is tested again.
_MOST_IN_ORDER = 31


@record(eq=False)
class _Search:
    """A search by a counter below `limit`, in a local buffer.

    `rest` are the loop's other conditions; `at` stands for the counter in `goes_on`.
    """

    counter: Load
    limit: Expr
    rest: tuple[Expr, ...]
    at: Var
    goes_on: Expr


def search_ahead(loop: While) -> Stmt | None:
    """A loop to put before a search, which advances the counter by whole vectors while the search continues.

    None for loops that do more than search, or whose vectors might access memory out of bounds.
    """
    search = _search_with_body(loop) or _search_with_break(loop)
    if search is None or has_check(search.goes_on) or not _may_look_ahead(search):
        return None
    widths = [node.buffer.dtype.bytes for node in loads_in(search.goes_on)]
    if not widths:
        return None
    lanes = _BYTES // max(widths)
    try:
        vectors = Lanes(lanes, {search.at: Ramp.unit(search.counter, lanes)}, neighbours=True)
        holds = vectors.of(search.goes_on)
    except NotVector:
        return None
    if holds.dtype.lanes != lanes:
        return None
    # The limit is an extent, so `limit - step` cannot overflow; `counter + step` might.
    step = const(lanes, i64)
    ahead = Add(search.counter, step)
    condition: Expr = And(LE(search.counter, Sub(search.limit, step)), Not(Call(bool_, Op.ANY, (Not(holds),))))
    for each in reversed(search.rest):
        condition = And(each, condition)
    moved = Store(search.counter.buffer, search.counter.indices, ahead, span=loop.span)
    return While(condition, SeqStmt((moved,)), span=loop.span)


def asserted_by_vectors(
    nest: Sequence[For], is_inside: Callable[[Load], bool], params: Iterable[Buffer]
) -> tuple[Stmt, ...] | None:
    """What replaces loops that only assert: tests of whole vectors, and of each element of a vector with a failure.

    A nest over whole rows of parameters becomes one loop over all elements. None for other loops, and if anything but
    the assertion could stop the kernel. `is_inside` says whether a load is in bounds in every iteration.
    """
    (stmt,) = nest[-1].body.stmts
    assert isinstance(stmt, Assert)
    loads = list(loads_in(stmt.condition))
    is_whole = all(not may_fault(node) for node in walk(stmt.condition) if isinstance(node, Expr))
    if not loads or has_check(stmt.condition) or not is_whole or not all(map(is_inside, loads)):
        return None
    if len(nest) > 1:
        return _asserted_of_rows(nest, stmt, params)
    (loop,) = nest
    return (
        None if loop.step != 1 else _asked(loop, Not(stmt.condition), lambda at, to: loop.replaced(start=at, stop=to))
    )


def records_by_vectors(loop: For, facts: Facts) -> tuple[Stmt, ...] | None:
    """What replaces a loop that keeps records: whole vectors are tested for a new record.

    Without a new record nothing changes, so all lanes are tested at once; otherwise the iterations of the vector run in
    order. None if the comparison has no vector form, or may stop the kernel.
    """
    values = values_of([stmt for stmt in loop.body.stmts if isinstance(stmt, Let)])
    branches = [stmt for stmt in loop.body.stmts if isinstance(stmt, IfThenElse)]
    broken = reduce(BitOr, (substitute(each.condition, values) for each in branches))
    nodes = [node for _, node in zip(range(_MOST_NODES + 1), walk(broken), strict=False)]
    is_harmless = all(not may_fault(node) for node in nodes if isinstance(node, Expr))
    if loop.step != 1 or len(nodes) > _MOST_NODES or not is_harmless:
        return None
    # The first iteration makes all certain loads that are the same in all iterations.
    for load, is_certain in loads_of(SeqStmt((IfThenElse(broken, SeqStmt(()), SeqStmt(())),))):
        is_first = is_certain and not mentions(load.indices, loop.var)
        if load.buffer.volatile or not (is_first or facts.bounds.is_inside(load)):
            return None
    made = _asked(loop, broken, lambda at, to: loop.replaced(start=at, stop=to), facts.bounds.is_inside)
    if made is None:
        return None
    vectors, rest = made
    return (*_where_few_break(vectors), rest)


def _where_few_break(vectors: Stmt) -> Iterator[Stmt]:
    """Tests of vectors; after several new records in a row, the next vectors run in order without a test."""
    assert isinstance(vectors, For)
    (asked,) = vectors.body.stmts
    assert isinstance(asked, IfThenElse)
    in_order = asked.then_body.stmts
    left, run = (Buffer(name, i64, (), "local") for name in ("left", "run"))
    none, one = const(0, i64), const(1, i64)
    for buffer in (left, run):
        yield Allocate(buffer, span=vectors.span)
        yield Store(buffer, (), none, span=vectors.span)
    longer = Min(Add(Add(Load(run, ()), Load(run, ())), one), const(_MOST_IN_ORDER, i64))
    broken = SeqStmt((*in_order, Store(left, (), Load(run, ())), Store(run, (), longer)))
    asked = asked.replaced(then_body=broken, else_body=SeqStmt((Store(run, (), none),)))
    counted = SeqStmt((*in_order, Store(left, (), Sub(Load(left, ()), one))))
    is_left = IfThenElse(GT(Load(left, ()), none), counted, SeqStmt((asked,)), span=vectors.span)
    yield vectors.replaced(body=SeqStmt((is_left,)))


def _asserted_of_rows(nest: Sequence[For], stmt: Assert, params: Iterable[Buffer]) -> tuple[Stmt, ...] | None:
    """The same for a nest over whole rows; a failing element is reported with its row and column."""
    nothing = SeqStmt(())
    (test,) = nested(nest, IfThenElse(stmt.condition, nothing, nothing)).stmts
    assert isinstance(test, For)
    rows = whole_rows(test)
    found = as_one_row(rows, params) if len(rows) == len(nest) else None
    if found is None:
        return None
    row, flat = found
    (looked,) = row.body.stmts
    assert isinstance(looked, IfThenElse)
    refused = IfThenElse(Not(looked.condition), SeqStmt((*_at_place(row.var, nest, stmt),)), nothing, span=stmt.span)
    one_by_one = row.replaced(body=SeqStmt((refused,)))
    made = _asked(row, Not(looked.condition), lambda at, to: one_by_one.replaced(start=at, stop=to))
    return None if made is None else (*declared(flat, made),)


def _at_place(place: Var, nest: Sequence[For], stmt: Assert) -> Iterator[Stmt]:
    """The assertion of a nest over whole rows, for the element with this position."""
    rest: Expr = place
    indices: dict[Var, Var] = {}
    lets: list[Let] = []
    for loop in reversed(nest[1:]):
        indices[loop.var] = Var(loop.var.name, i64)
        lets.append(Let(indices[loop.var], FloorMod(rest, loop.stop)))
        rest = FloorDiv(rest, loop.stop)
    indices[nest[0].var] = Var(nest[0].var.name, i64)
    yield Let(indices[nest[0].var], rest)
    yield from reversed(lets)
    yield substitute(stmt, indices)


def _asked(
    row: For,
    condition: Expr,
    one_by_one: Callable[[Expr, Expr], Stmt],
    is_inside: Callable[[Load], bool] = lambda load: False,
) -> tuple[Stmt, ...] | None:
    """A test of a condition by vectors over a row; `one_by_one` handles those in which it holds for some element."""
    loads = [load for load in loads_in(condition) if mentions(load.indices, row.var)]
    if not loads:
        return None
    lanes = _BYTES // max(load.buffer.dtype.bytes for load in loads)
    tile = Var("tile")
    try:
        vectors = Lanes(lanes, {row.var: Ramp.unit(tile, lanes)}, neighbours=True, is_inside=is_inside)
        holds = vectors.of(condition)
    except NotVector:
        return None
    if holds.dtype.lanes != lanes:
        return None
    whole = last_whole(row, row.count, lanes)
    part = SeqStmt((one_by_one(tile, Add(tile, const(lanes, i64))),))
    found = IfThenElse(Call(bool_, Op.ANY, (holds,)), part, SeqStmt(()), span=row.span)
    return For(tile, row.start, whole, SeqStmt((found,)), step=lanes, span=row.span), one_by_one(whole, row.stop)


def _search_with_body(loop: While) -> _Search | None:
    """`while j < limit and goes_on(j): j += 1`."""
    conditions = [*conjuncts(loop.condition)]
    limit, others = conditions[0], conditions[1:]
    if len(loop.body.stmts) != 1 or not others or not isinstance(limit, LT):
        return None
    counter, at = limit.a, Var("at")
    if not isinstance(counter, Load) or not _moves_on(loop.body.stmts[0], counter, counter):
        return None
    goes_on = others[0]
    for each in others[1:]:
        goes_on = And(goes_on, each)
    named = rewrite(goes_on, {Load: lambda load: at if _is_counter(load, counter) else load})
    return _Search(counter, limit.b, (), at, named)


def _search_with_break(loop: While) -> _Search | None:
    """`while going and j < limit: at = j; j += 1; if found(at): ...; going = False`."""
    conditions = [*conjuncts(loop.condition)]
    if len(conditions) != 2 or len(loop.body.stmts) != 3:
        return None
    going, limit = conditions
    if not isinstance(limit, LT):
        return None
    named, step, found = loop.body.stmts
    counter = limit.a
    if not (isinstance(going, Load) and isinstance(counter, Load) and isinstance(named, Let)):
        return None
    if not isinstance(named.value, Load) or not _is_counter(named.value, counter):
        return None
    if not _moves_on(step, counter, named.var) or not isinstance(found, IfThenElse) or found.else_body.stmts:
        return None
    # The loop ends at the first match, so the branch is taken once.
    ends = [stmt for stmt in found.then_body.stmts if isinstance(stmt, Store) and _is_counter(stmt, going)]
    is_over = bool(ends) and isinstance(ends[-1].value, IntImm) and not ends[-1].value.value
    if not is_over or not is_local_scalar(going):
        return None
    return _Search(counter, limit.b, (going,), named.var, Not(found.condition))


def _moves_on(stmt: Stmt, counter: Load, value: Expr) -> bool:
    """Whether a statement sets a counter to one more than a value."""
    if not isinstance(stmt, Store) or not _is_counter(stmt, counter) or not isinstance(stmt.value, Add):
        return False
    is_value = stmt.value.a is value or bool(structural_equal(stmt.value.a, value))
    return is_value and is_constant(stmt.value.b, 1) and is_local_scalar(counter)


def _is_counter(node: Load | Store, counter: Load) -> bool:
    return node.buffer is counter.buffer and not node.indices


def _may_look_ahead(search: _Search) -> bool:
    """Whether the condition may be computed for all counters below the limit: it cannot fault or be out of bounds."""
    moved = (search.counter.buffer, *(each.buffer for each in search.rest if isinstance(each, Load)))
    if search.counter.dtype != i64 or any(reads(buffer, search.limit) for buffer in moved):
        return False
    loads = list(loads_in(search.goes_on))
    looks = any(node is search.at for load in loads for node in walk(*load.indices))
    return looks and all(_is_harmless(node, search, moved) for node in walk(search.goes_on))


def _is_harmless(node: Node, search: _Search, moved: tuple[Buffer, ...]) -> bool:
    if isinstance(node, Call):
        return node.op.is_math
    if not isinstance(node, Load):
        return isinstance(node, Expr) and not may_fault(node)
    if node.buffer in moved or node.buffer.volatile:
        return False
    if not mentions(node.indices, search.at):
        return True
    # The element at the counter exists, and the limit is the end of its row.
    *row, last = node.indices
    is_last = last is search.at and not mentions(row, search.at)
    return is_last and bool(structural_equal(node.buffer.shape[-1], search.limit))
