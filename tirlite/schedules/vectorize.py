"""Vectorize makes the iterations of a loop the lanes of vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tirlite.analysis.facts import Facts
from tirlite.ir.dtype import DType, bool_, i64
from tirlite.ir.equal import structural_equal
from tirlite.ir.expr import LE, LT, Add, Broadcast, Buffer, Expr, IntImm, Load, Min, Mul, Ramp, Sub, Var, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.rewrite import rewrite, substitute
from tirlite.ir.stmt import Allocate, For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store
from tirlite.ir.walk import accesses_in, allocated_in, loads_in, mentions, statements_of, walk
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.vectors.lanes import Lanes, NotVector, last_whole
from tirlite.schedules.handle import LoopName, loop_named
from tirlite.schedules.loop_facts import has_whole_blocks, is_block_of, is_whole, lanes_before, trips
from tirlite.schedules.order import demand_any_order, demand_independent
from tirlite.schedules.step import ScheduleStep, demand_plain, does_not_fit, with_loop

if TYPE_CHECKING:
    from tirlite.schedules.rows_in_place import Rows


@record
class Vectorize(ScheduleStep):
    """Vectorizes a loop with `lanes`, the widest first: the remainder of one width uses the next.

    Buffers that the body allocates get an element per lane. A block loop of `split` becomes one vector, or several of
    the narrower width if these have fewer lanes together, as in the last block. Refused if the loop carries a
    dependence, and for statements without a vector form: scattered accesses, branches, calls.

    `padded`: the last vector of the narrowest width may reach beyond the end, instead of a scalar remainder loop. It
    reads the padding of copies that `pack` has made whole; other memory is accessed lane by lane.
    `masked`: with `padded`, memory is accessed under a mask instead, if elements have 4 or 8 bytes; inner loops may
    then store as well, and a partial block runs entirely under a mask.
    """

    loop: LoopName
    lanes: tuple[int, ...]
    padded: bool = False
    masked: bool = False

    def rewritten(self, facts: Facts) -> PrimFunc:
        loop = loop_named(facts.func, self.loop)
        demand_plain(self, loop)
        are_widths = bool(self.lanes) and all(n >= 2 and not n & (n - 1) for n in self.lanes)
        if loop.kind is not ForKind.SERIAL or not are_widths or [*self.lanes] != sorted(self.lanes, reverse=True):
            raise does_not_fit(self, "it takes a `range`, and widths of 2, 4, 8 lanes and so on, the widest first")
        demand_any_order(self, loop)
        demand_independent(self, facts, loop)
        try:
            return with_loop(facts, loop, (*self._vectors(facts, loop),))
        except NotVector:
            raise does_not_fit(self, f"the loop over `{loop.var.name}` has a statement without a vector form") from None

    def _vectors(self, facts: Facts, loop: For) -> Iterator[Stmt]:
        """The loops over vectors, from the widest to the narrowest, and the remainder."""
        body = loop.body
        if self.padded and len(self.lanes) <= 2 and (around := _block_around(facts, loop)) is not None:
            yield from self._block(facts, loop, around)
            return
        count = loop.count
        begin = loop.start
        for lanes in self.lanes:
            is_last = self.padded and lanes == self.lanes[-1]
            end = loop.stop if is_last else last_whole(loop, count, lanes)
            at = Var(loop.var.name)
            if is_last:
                made = _Padded(facts, loop, body, at, lanes).body(self)
            else:
                made = _lanes(loop, at, lanes).block(body)
            yield For(at, begin, end, made, step=lanes, span=loop.span)
            begin = end
        if not self.padded:
            yield loop.replaced(start=begin, body=body)

    def _block(self, facts: Facts, loop: For, around: For) -> Iterator[Stmt]:
        """One block of the loop `around`, by vectors of at most as many lanes as the block has iterations."""
        lanes, *narrower = self.lanes
        if around.step > lanes:
            raise does_not_fit(self, f"a block has {around.step} iterations, more than {lanes} lanes")
        start = loop.start
        assert isinstance(start, Var)
        if (rows := _rows_of(loop)) is not None:
            yield from self._across_rows(facts, loop, rows.length)
            return
        is_all = is_whole([*statements_of(facts.func.body, For)], loop, lanes)
        count = around.count
        is_part = isinstance(count, IntImm) and count.value % lanes in narrower
        if around.step == lanes and (is_all or is_part):
            with suppress(NotVector):
                widths = self.lanes[: 1 if is_all else 2]
                yield from _by_width(loop, widths, lambda at, few: _lanes(loop, at, few).block(loop.body)).stmts
                return
        if self.masked and _stores_inside(loop):
            yield _whole_or_masked(loop, lanes)
            return
        made = _by_width(loop, self.lanes, lambda at, few: _Padded(facts, loop, loop.body, at, few).body(self))
        yield from made.stmts

    def _across_rows(self, facts: Facts, loop: For, length: Expr) -> Iterator[Stmt]:
        """One block of a loop that goes across rows, each at least half as long as a vector."""
        from tirlite.schedules.rows_in_place import RowLanes, is_least

        lanes = self.lanes[0]
        if not self.masked or not is_least(facts.func, loop, length, lanes // 2):
            raise does_not_fit(self, f"rows are not known to have {lanes // 2} elements or more")
        is_all = is_whole([*statements_of(facts.func.body, For)], loop, lanes)
        yield from RowLanes(loop, lanes, is_whole=is_all).block(loop.body).stmts


def _rows_of(loop: For) -> Rows | None:
    """The rows that a loop goes across; None if none are seen."""
    for stmt in loop.body.stmts:
        if isinstance(stmt, IfThenElse):
            from tirlite.schedules.rows_in_place import rows_of

            if (found := rows_of(stmt, loop.var)) is not None:
                return found
    return None


def _by_width(loop: For, widths: Sequence[int], made: Callable[[Var, int], SeqStmt]) -> SeqStmt:
    """One block as a vector of the first width, or as some of a narrower width if these have fewer lanes in all."""
    assert isinstance(loop.start, Var)
    lanes, *narrower = widths
    body = made(loop.start, lanes)
    for few in narrower:
        most = max(few, lanes - few)
        if most == few:
            vectors = made(loop.start, few)
        else:
            at = Var(loop.var.name)
            vectors = SeqStmt((For(at, loop.start, loop.stop, made(at, few), step=few, span=loop.span),))
        is_part = LE(Sub(loop.stop, loop.start), const(most, i64))
        body = SeqStmt((IfThenElse(is_part, vectors, body, span=loop.span),))
    return body


def _stores_inside(loop: For) -> bool:
    """Whether inner loops store to memory outside of the iteration, and all elements accessed have 4 or 8 bytes."""
    own = allocated_in(loop.body)
    inside = [store for inner in statements_of(loop.body, For) for store in statements_of(inner.body, Store)]
    touched = {node.buffer for node in accesses_in(loop.body)}
    are_words = all(buffer.dtype.bytes in (4, 8) and not buffer.volatile for buffer in touched)
    return are_words and any(store.buffer not in own for store in inside)


def _whole_or_masked(loop: For, lanes: int) -> Stmt:
    """One block as a vector, or as a masked vector if it is partial. Raises NotVector."""
    assert isinstance(loop.start, Var)
    vectors = _lanes(loop, loop.start, lanes)
    on = Let(Var("on", bool_.with_lanes(lanes)), lanes_before(loop.start, loop.stop, lanes), span=loop.span)
    vectors.on = vectors.some = on.var  # the first lane lies before the end
    part = SeqStmt((on, *vectors.block(loop.body).stmts))
    is_whole = LE(Add(loop.start, const(lanes, i64)), loop.stop)
    return IfThenElse(is_whole, _lanes(loop, loop.start, lanes).block(loop.body), part, span=loop.span)


def _block_around(facts: Facts, loop: For) -> For | None:
    """The loop whose blocks, as `split` makes them, this loop runs through; none of these is empty."""
    return next((each for each in statements_of(facts.func.body, For) if is_block_of(loop, each)), None)


def _lanes(loop: For, at: Var, lanes: int) -> Lanes:
    return Lanes(lanes, {loop.var: Ramp.unit(at, lanes)}, neighbours=True)


class _Padded:
    """One vector of iterations from `at` on, some of which may lie beyond the end of the loop."""

    def __init__(self, facts: Facts, loop: For, body: SeqStmt, at: Var, lanes: int) -> None:
        self.loop = loop
        self.inside = body
        self.at = at
        self.vectors = _lanes(loop, at, lanes)
        self.end = Min(Add(at, const(lanes, i64)), loop.stop)
        self.place = Ramp.unit(0, lanes)
        self.lanes = lanes
        self.on: Var | None = None  # the mask of the lanes before the end, once needed
        self.own = allocated_in(body)
        self.loops = [*statements_of(facts.func.body, For)]
        self.made = allocated_in(facts.func.body)
        most = trips(facts, loop)
        self.room = -(-most.value // lanes) * lanes if isinstance(most, IntImm) else None

    def body(self, step: Vectorize) -> SeqStmt:
        """The statements; memory without padding is accessed under a mask or lane by lane. Raises NotVector."""
        stmts: list[Stmt] = []
        for stmt in self.inside.stmts:
            if step.masked and isinstance(stmt, Store) and self._is_at_edge(stmt):
                on = self._mask(stmt, stmts)
                try:
                    stmts.append(self._under_mask(stmt, on))
                except NotVector:
                    if stmt.buffer in self.own:
                        raise
                    stmts += self._stored(stmt)
            elif isinstance(stmt, Let) and not self._reads_within(stmt):
                if step.masked and self._is_wide(stmt):
                    stmts.append(self._read_under_mask(stmt, self._mask(stmt, stmts)))
                else:
                    stmts += self._read_one_by_one(stmt)
            elif isinstance(stmt, Store) and stmt.buffer not in self.own:
                stmts += self._stored(stmt)
            elif isinstance(stmt, Store) and not self._reads_within(stmt.value):
                stmts += self._one_by_one(stmt)
            elif self._reads_within(stmt) and self._writes_within(stmt):
                stmts.append(self.vectors.statement(stmt))
            else:
                raise does_not_fit(step, "beyond the end, loops inside touch more than copies that were made whole")
        return SeqStmt(tuple(stmts))

    def _mask(self, stmt: Stmt, stmts: list[Stmt]) -> Var:
        """The mask of the lanes before the end, defined before the first statement that needs it."""
        if self.on is None:
            self.on = Var("on", bool_.with_lanes(self.lanes))
            stmts.append(Let(self.on, lanes_before(self.at, self.loop.stop, self.lanes), span=stmt.span))
        return self.on

    def _is_wide(self, stmt: Stmt) -> bool:
        """Whether all memory that a statement reads has elements of 4 or 8 bytes."""
        read = {node.buffer for node in loads_in(stmt)} - self.own
        return all(buffer.dtype.bytes in (4, 8) and not buffer.volatile for buffer in read)

    def _read_under_mask(self, stmt: Let, on: Var) -> Stmt:
        """A let that reads only the lanes before the end."""
        known = [*self.vectors.accessed]
        self.vectors.on = self.vectors.some = on  # the first lane lies before the end
        try:
            return self.vectors.statement(stmt)
        finally:
            self.vectors.on, self.vectors.accessed = None, known

    def _is_at_edge(self, store: Store) -> bool:
        """Whether lanes beyond the end would access memory, with elements of 4 or 8 bytes only."""
        loads = list(loads_in(store.value))
        if store.buffer in self.own and (all(map(self._has_room, loads)) or any(n.buffer in self.own for n in loads)):
            return False
        touched = {store.buffer, *(load.buffer for load in loads)} - self.own
        return all(buffer.dtype.bytes in (4, 8) and not buffer.volatile for buffer in touched)

    def _under_mask(self, store: Store, on: Var) -> Stmt:
        """A masked store to memory; to a buffer of the iteration, an unmasked store of 0 in the lanes beyond the end.

        If all lanes exist, memory is stored to without a mask: masked stores are much slower on some processors.
        """
        is_memory, known = store.buffer not in self.own, [*self.vectors.accessed]
        whole = self.vectors.statement(store) if is_memory else store
        self.vectors.accessed = known
        self.vectors.on = self.vectors.some = on  # the first lane lies before the end
        try:
            if is_memory:
                part = self.vectors.statement(store)
                is_whole = LE(Add(self.at, const(self.lanes, i64)), self.loop.stop)
                return IfThenElse(is_whole, SeqStmt((whole,)), SeqStmt((part,)), span=store.span)
            wide = self.vectors.wide[store.buffer]
            value = self.vectors.spread(self.vectors.of(store.value))
            return Store(wide, (*store.indices, self.place), value, span=store.span)
        finally:
            self.vectors.on = None

    def _reads_within(self, root: Stmt | Expr) -> bool:
        """Whether lanes beyond the end read only padding."""
        return all(self._has_room(node) for node in loads_in(root))

    def _writes_within(self, stmt: Stmt) -> bool:
        return all(store.buffer in self.own for store in statements_of(stmt, Store))

    def _has_room(self, load: Load) -> bool:
        """Whether a load in lanes beyond the end stays within the padding of its buffer."""
        if load.buffer in self.own or not mentions(load.indices, self.loop.var):
            return True
        width, last = load.buffer.shape[-1], load.indices[-1]
        if not isinstance(width, IntImm) or mentions(load.indices[:-1], self.loop.var):
            return False
        group, is_made = last.dtype.lanes, load.buffer in self.made
        column = folded(Sub(self.loop.var, self.loop.start)) if is_made else self.loop.var
        groups = Ramp.unit(folded(Mul(column, const(group, i64))), group)
        if not structural_equal(last, column if group == 1 else groups):
            return False
        if is_made:
            return self.room is not None and width.value >= group * self.room
        # An operand that `dots` reads in place has whole blocks.
        return group > 1 and has_whole_blocks(self.loops, self.loop, const(width.value // group, i64), self.lanes)

    def _is_let(self, node: Node) -> bool:
        """Whether a variable is defined in the body, with a value per lane."""
        return isinstance(node, Var) and node is not self.loop.var and node in self.vectors.values

    def _stage(self, name: str, dtype: DType) -> Buffer:
        """A buffer with an element per lane, through which memory is accessed lane by lane."""
        return Buffer(f"{name}.lanes", dtype, (const(self.lanes, i64),), "local")

    def _one_by_one(self, store: Store) -> Iterator[Stmt]:
        """Sets a local element per lane to its value, and to 0 beyond the end."""
        stage = self._stage(store.buffer.name, store.buffer.dtype)
        wide = self.vectors.wide[store.buffer]
        each = (
            *self._gathered(store, store.value, stage),
            Store(wide, (*store.indices, self.place), Load(stage, (self.place,)), span=store.span),
        )
        yield from self._whole_or(store, each)

    def _read_one_by_one(self, stmt: Let) -> Iterator[Stmt]:
        """Reads a let's value for each lane, 0 beyond the end."""
        stage = self._stage(stmt.var.name, stmt.value.dtype)
        yield from self._gathered(stmt, stmt.value, stage)
        wide = self.vectors.values[stmt.var] = Var(stmt.var.name, stage.dtype.with_lanes(self.lanes))
        yield Let(wide, Load(stage, (self.place,)), span=stmt.span)

    def _gathered(self, stmt: Stmt, value: Expr, stage: Buffer) -> Iterator[Stmt]:
        """Sets a buffer's elements to the value of each lane before the end, and to 0 beyond it."""
        if any((isinstance(node, Load) and node.buffer in self.own) or self._is_let(node) for node in walk(value)):
            raise NotVector
        lane = Var(f"{self.loop.var.name}.lane")
        own = Store(stage, (folded(Sub(lane, self.at)),), substitute(value, {self.loop.var: lane}), span=stmt.span)
        yield Allocate(stage, span=stmt.span)
        yield Store(stage, (self.place,), Lanes(self.lanes, {}).spread(const(0, stage.dtype)), span=stmt.span)
        yield For(lane, self.at, self.end, SeqStmt((own,)))

    def _stored(self, store: Store) -> Iterator[Stmt]:
        """Stores an element per lane to memory, for the lanes before the end, from the lanes' own values."""
        lane, stages = Var(f"{self.loop.var.name}.lane"), dict[Buffer | Var, Buffer]()
        each: list[Stmt] = []
        for node in walk(store):
            whole: Expr
            if isinstance(node, Load) and node.buffer in self.own and node.buffer not in stages:
                if node.indices:
                    raise NotVector
                stage = stages[node.buffer] = self._stage(node.buffer.name, node.dtype)
                whole = Load(self.vectors.wide[node.buffer], (self.place,))
            elif isinstance(node, Var) and self._is_let(node) and node not in stages:
                stage, whole = self._stage(node.name, node.dtype), self.vectors.values[node]
                stages[node] = stage
            else:
                continue
            each.append(Allocate(stage, span=store.span))
            each.append(Store(stage, (self.place,), whole, span=store.span))
        number = folded(Sub(lane, self.at))

        def moved(node: Load | Var) -> Expr:
            made = node.buffer if isinstance(node, Load) else node
            return Load(stages[made], (number,)) if made in stages else node

        kept = rewrite(substitute(store, {self.loop.var: lane}), {Load: moved, Var: moved})
        assert isinstance(kept, Store)
        each.append(For(lane, self.at, self.end, SeqStmt((kept,))))
        yield from self._whole_or(store, each)

    def _whole_or(self, store: Store, each: Sequence[Stmt]) -> Iterator[Stmt]:
        """A vector store if all lanes exist, else a masked one; without vector form `each`, lane by lane."""
        try:
            vector = self.vectors.statement(store)
        except NotVector:
            yield from each
            return
        is_whole = LE(Add(self.at, const(self.lanes, i64)), self.loop.stop)
        part = self._masked(store) if store.buffer not in self.own else None
        yield IfThenElse(is_whole, SeqStmt((vector,)), SeqStmt(tuple(part or each)), span=store.span)

    def _masked(self, store: Store) -> Sequence[Stmt] | None:
        """A store of the lanes before the end; None if it has no vector form."""
        left = folded(Sub(self.loop.stop, self.at))
        there = LT(self.place, Broadcast(left, self.lanes))
        on = Var("left", there.dtype)
        # Accesses seen so far were made with all lanes, and cannot justify loads here.
        self.vectors.on, self.vectors.some, self.vectors.accessed = on, on, []
        try:
            return Let(on, there, span=store.span), self.vectors.statement(store)
        except NotVector:
            return None
        finally:
            self.vectors.on = None
