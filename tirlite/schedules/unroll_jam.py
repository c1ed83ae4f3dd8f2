"""Unroll writes several iterations of a loop one after the other; UnrollJam interleaves them in shared inner loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tirlite.analysis.access import Allocation, Touch
from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.dependence import writes
from tirlite.analysis.loops.tiled import products_of
from tirlite.ir.dtype import i64
from tirlite.ir.equal import structural_equal
from tirlite.ir.expr import Add, Buffer, Call, IntImm, Load, Min, Sub, Var, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.rewrite import Rule, rewrite, substitute
from tirlite.ir.stmt import Allocate, For, ForKind, Let, SeqStmt, Stmt, Store
from tirlite.ir.walk import buffers_of, defined_in, is_steady, mentions, statements, statements_of, walk
from tirlite.record import record, replace
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.loops.unroll_loops import MOST_STATEMENTS, unrolled
from tirlite.rewrite.vectors.jam import Jam
from tirlite.rewrite.vectors.lanes import NotVector, last_whole
from tirlite.schedules.handle import LoopName, loop_named
from tirlite.schedules.order import demand_any_order, demand_independent
from tirlite.schedules.step import ScheduleStep, demand_plain, does_not_fit, named, with_loop

_KINDS = (ForKind.SERIAL, ForKind.PARALLEL, ForKind.REDUCE, ForKind.UNROLLED)


@record
class Unroll(ScheduleStep):
    """Unrolls a loop by `by` iterations, in their order, with a remainder loop `i.rest`.

    Without `by`, all iterations are written out; refused unless their number is constant. Never changes results. To
    share what inner loops load, use `unroll_jam`.
    """

    loop: LoopName
    by: int = 0

    def rewritten(self, facts: Facts) -> PrimFunc:
        loop = loop_named(facts.func, self.loop)
        values = loop.values
        number = self.by or (None if values is None else len(values))
        if loop.kind not in _KINDS or number is None or self.by == 1 or self.by < 0:
            raise does_not_fit(self, f"how often the loop over `{loop.var.name}` runs is not known, or one at a time")
        if number * sum(1 for _ in statements(loop.body)) > MOST_STATEMENTS:
            raise does_not_fit(self, f"there would be more than {MOST_STATEMENTS} statements")
        if not self.by:
            return with_loop(facts, loop, unrolled(loop))
        demand_plain(self, loop)
        middle = last_whole(loop, loop.count, self.by)
        copies = [
            folded(substitute(loop.body, {loop.var: Add(loop.var, const(k, i64))})) if k else loop.body
            for k in range(self.by)
        ]
        body = SeqStmt(tuple(stmt for copy in copies for stmt in copy.stmts))
        rest = loop.replaced(start=middle)
        return with_loop(facts, loop, (loop.replaced(stop=middle, step=self.by, body=body), named(rest, ".rest")))


# From this factor on, the remainder is unrolled by two.
_FEW = 4


@record
class UnrollJam(ScheduleStep):
    """Unrolls a loop by `by` iterations and jams them: each statement for all of them before the next statement.

    Inner loops stay one loop each, and what they load serves all of these iterations. A remainder of known size is
    jammed as well. Otherwise it goes by two, which shortens the wait for dependent sums; an odd last iteration then
    runs twice, if that is harmless and the loop stores vectors (for scalar rows that may coincide, LLVM would find no
    vectors). Else it goes one by one.

    With `rolled`, iterations are not written out: each part of the body is a loop over them, and buffers that an
    iteration allocates get a row for each, the form that tiled dot products need. Refused if the loop carries a
    dependence, and if inner loops differ between iterations.
    """

    loop: LoopName
    by: int
    rolled: bool = False

    def rewritten(self, facts: Facts) -> PrimFunc:
        loop = loop_named(facts.func, self.loop)
        demand_plain(self, loop)
        if loop.kind not in (ForKind.SERIAL, ForKind.PARALLEL) or not 2 <= self.by <= 64:
            raise does_not_fit(self, "it takes 2 to 64 iterations of a `range`")
        demand_any_order(self, loop)
        demand_independent(self, facts, loop)
        try:
            made = (_Rows(loop, self.by).all(),) if self.rolled else (*self._together(facts, loop),)
            return with_loop(facts, loop, made)
        except NotVector:
            reason = f"loops inside of the one over `{loop.var.name}` differ between iterations, or branch"
            raise does_not_fit(self, reason) from None

    def _together(self, facts: Facts, loop: For) -> Iterator[Stmt]:
        """The jammed loop, and the loop over the remainder."""
        count, touches = loop.count, facts.touched_in(loop)
        if not isinstance(count, IntImm) and isinstance(size := facts.space.size(count), int):
            count = const(size, i64)
        if not isinstance(count, IntImm | Var):
            var = Var("count")
            yield Let(var, count, span=loop.span)
            count = var
        middle = last_whole(loop, count, self.by)
        yield loop.replaced(stop=middle, step=self.by, body=Jam(loop.var, self.by).block(loop.body))
        rest = count.value % self.by if isinstance(count, IntImm) else None
        has_vectors = any(store.value.dtype.lanes > 1 for store in statements_of(loop.body, Store))
        if rest is None and self.by >= _FEW and has_vectors and _may_run_twice(touches):
            last = folded(Sub(loop.stop, const(1, i64)))
            yield loop.replaced(start=middle, step=2, body=Jam(loop.var, 2, last).block(loop.body))
        elif rest is None or rest == 1:
            yield loop.replaced(start=middle)
        elif rest:
            body = Jam(loop.var, rest).block(loop.body)
            yield loop.replaced(start=middle, stop=folded(Add(middle, const(rest, i64))), step=rest, body=body)


def _may_run_twice(touches: Mapping[Allocation, Sequence[Touch]]) -> bool:
    """Whether an iteration can be jammed with itself: it reads no buffer that it writes, which both would update."""
    return all(all(map(writes, found)) or not any(map(writes, found)) for found in touches.values())


class _Rows(Jam):
    """Runs each part of a loop's body for up to `most` iterations, in a loop of its own, before the next part.

    It does what Jam does for more iterations than can be written out, as tiles of dot products need. Buffers that an
    iteration allocates get a row for each. The iterations must be independent.
    """

    def __init__(self, loop: For, most: int) -> None:
        super().__init__(loop.var, 1)
        self.loop, self.most, self.first = loop, most, Var(f"{loop.var.name}.first")
        self.own: dict[Buffer, Buffer] = {}  # each buffer that an iteration allocates, and the one with rows for all
        self.rows: set[Var] = set()

    def all(self) -> For:
        """The loop over groups of `most` iterations. Raises NotVector if the body cannot be divided into parts."""
        made = self.loop.replaced(var=self.first, step=self.most, body=self.block(self.loop.body))
        if any(name in self.own for node in walk(made) for name in buffers_of(node)) or self.is_torn(made):
            raise NotVector
        return made

    def is_torn(self, made: For) -> bool:
        """Whether a part uses a name that another part defines for an iteration."""
        parts = [each for each in statements_of(made.body, For) if each.var in self.rows]
        defined = [(each, defined_in(each.body)) for each in parts]
        return any(mentions(each, names) for each in parts for other, names in defined if other is not each)

    def _block(self, body: SeqStmt) -> SeqStmt:
        """The parts of a body, each in a loop over the iterations; allocations get a row for each."""
        made, together = list[Stmt](), list[Stmt]()
        for stmt in body.stmts:
            if isinstance(stmt, Allocate):
                shape = (const(self.most, i64), *stmt.buffer.shape)
                self.own[stmt.buffer] = replace(stmt.buffer, shape=shape, scope="global")
                made.append(stmt.replaced(buffer=self.own[stmt.buffer]))
            elif isinstance(stmt, Let) and not self._differs(stmt.value) and is_steady(stmt.value):
                made.append(stmt)
            elif any(isinstance(node, Allocate) or _is_dot(node) for node in walk(stmt)):
                has_own = any(statements_of(stmt, Allocate))
                # Keep the store that sets sums to 0 in the part of their dot products.
                begun = [together.pop()] if together and not has_own and _is_zero(together[-1]) else []
                made += self._each(together)
                made += self.statement(stmt) if has_own else self._each([*begun, stmt])
                together = []
            else:
                together.append(stmt)
        return SeqStmt((*made, *self._each(together)))

    def _each(self, stmts: list[Stmt]) -> Iterator[Stmt]:
        """A loop over the iterations around a part."""
        if stmts:
            row = Var(self.loop.var.name)
            self.rows.add(row)

            def moved(node: Load | Store) -> Node:
                wide = self.own.get(node.buffer)
                indices = (folded(Sub(row, self.first)), *node.indices)
                return node if wide is None else node.replaced(buffer=wide, indices=indices)

            rules: dict[type[Node], Rule] = {Load: moved, Store: moved}
            part = rewrite(substitute(SeqStmt(tuple(stmts)), {self.loop.var: row}), rules)
            stop = Min(Add(self.first, const(self.most, i64)), self.loop.stop)
            made = For(row, self.first, stop, part, span=self.loop.span)
            if any(map(_is_dot, walk(part))) and products_of(made) is None:
                raise NotVector
            yield made


def _is_zero(stmt: Stmt) -> bool:
    return isinstance(stmt, Store) and bool(structural_equal(stmt.value, const(0, stmt.value.dtype)))


def _is_dot(node: Node) -> bool:
    return isinstance(node, Call) and node.op is Op.DOT
