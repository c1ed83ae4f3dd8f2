"""Split and Delinearise split a loop in two, over blocks and within a block; Fuse fuses two loops into one."""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.dependence import writes
from tirlite.ir.dtype import i64
from tirlite.ir.equal import are_equal
from tirlite.ir.expr import GE, LT, Add, Buffer, Expr, FloorDiv, FloorMod, IntImm, Load, Min, Mul, Sub, Var, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.rewrite import rewrite, substitute
from tirlite.ir.stmt import For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store, View
from tirlite.ir.walk import defined_in, is_constant, is_steady, mentions, statements_of
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.loops.divide_loops import divided, is_whole
from tirlite.rewrite.vectors.lanes import last_whole
from tirlite.schedules.handle import BufferName, LoopName, buffer_named, chain_to, loop_named
from tirlite.schedules.loop_facts import is_block_of
from tirlite.schedules.order import demand_any_order, demand_independent
from tirlite.schedules.step import ScheduleStep, demand_plain, does_not_fit, named, with_loop

_TAILS = ("short", "guarded", "masked", "peeled", "overlapped")


@record
class Split(ScheduleStep):
    """Splits `for j in range(a, b)` into `j.outer`, over blocks of `by` iterations, and `j.inner`, within a block.

    `j.inner` takes the values that `j` had, so indices stay as they are. Both loops keep the kind of `j`, except that
    the inner one of a parallel loop is a `range`. Never changes results.

    `tail` says how the last block ends:
    - short: it has fewer iterations;
    - guarded: every block is full, and a condition (a mask once vectorized) skips iterations beyond the end;
    - masked: only the last block, `j.rest`, has that condition;
    - peeled: the remainder loop `j.rest` runs the iterations left over;
    - overlapped: the last block is full and repeats iterations of the one before; a loop of fewer than `by` iterations
      runs as `j.rest`. Refused if an iteration touches what another one writes, or reads what it writes itself.
    """

    loop: LoopName
    by: int
    tail: str = "short"

    def rewritten(self, facts: Facts) -> PrimFunc:
        loop = loop_named(facts.func, self.loop)
        demand_plain(self, loop)
        if self.by < 1 or loop.kind in (ForKind.THREAD, ForKind.VECTORIZED):
            raise does_not_fit(self, "blocks are of one iteration or more, of a loop that is run one by one")
        if self.tail not in _TAILS:
            raise does_not_fit(self, f"a tail is one of {', '.join(_TAILS)}")
        if self.tail == "overlapped":
            self._demand_repeatable(facts, loop)
        return with_loop(facts, loop, (*self._split(loop),))

    def _split(self, loop: For) -> Iterator[Stmt]:
        """The loops over blocks, with the form of the last block that `tail` asks for."""
        outer, inner = Var(f"{loop.var.name}.outer"), Var(f"{loop.var.name}.inner")
        body = substitute(loop.body, {loop.var: inner})
        count = const(self.by, i64)

        def blocks(start: Expr, end: Expr, body: SeqStmt, *before: Stmt, stop: Expr = loop.stop) -> For:
            kind = ForKind.SERIAL if loop.kind is ForKind.PARALLEL else loop.kind
            block = For(inner, start, end, body, kind, span=loop.span)
            return loop.replaced(var=outer, stop=stop, step=self.by, body=SeqStmt((*before, block)))

        def guarded(body: SeqStmt, var: Var) -> SeqStmt:
            return SeqStmt((IfThenElse(LT(var, loop.stop), body, span=loop.span),))

        if self.tail == "guarded":
            yield blocks(outer, Add(outer, count), guarded(body, inner))
        elif self.tail in ("masked", "peeled"):
            found = loop.count
            whole = last_whole(loop, found, self.by)
            yield blocks(outer, Add(outer, count), body, stop=whole)
            if isinstance(found, IntImm) and found.value % self.by == 0:
                return
            if self.tail == "peeled":
                yield named(loop.replaced(start=whole), ".rest")
                return
            kind = ForKind.SERIAL if loop.kind is ForKind.PARALLEL else loop.kind
            last = loop.replaced(start=whole, stop=folded(Add(whole, count)), kind=kind)
            rest = named(last.replaced(body=guarded(loop.body, loop.var)), ".rest")
            yield IfThenElse(LT(whole, loop.stop), SeqStmt((rest,)), SeqStmt(), span=loop.span)
        elif self.tail == "overlapped":
            first = Var(f"{loop.var.name}.first")
            begin = Let(first, Min(outer, folded(Sub(loop.stop, count))), span=loop.span)
            overlapping = blocks(first, Add(first, count), body, begin)
            few = named(loop, ".rest")
            yield IfThenElse(GE(loop.count, count), SeqStmt((overlapping,)), SeqStmt((few,)), span=loop.span)
        else:
            yield blocks(outer, Min(Add(outer, count), loop.stop), body)

    def _demand_repeatable(self, facts: Facts, loop: For) -> None:
        """Raises KernelError, naming the accesses, if running an iteration twice may change results."""
        if loop.kind is not ForKind.SERIAL:
            raise does_not_fit(self, f"the loop over `{loop.var.name}` is no `range`")
        demand_any_order(self, loop)
        demand_independent(self, facts, loop)
        for touches in facts.touched_in(loop).values():
            for touch in touches if any(map(writes, touches)) else ():
                if not writes(touch):
                    raise does_not_fit(self, f"{touch} is read and written by an iteration, which may be done twice")


# Up to this step, `count + step - 1` cannot overflow for a loop that could ever end.
_SHORT = 1 << 16


@record
class Fuse(ScheduleStep):
    """Fuses two nested loops into `i.j`, with one iteration for each pair, in the same order.

    `j` is the whole body of `i`, its bounds do not depend on `i`, both go upwards, and both are parallel or neither is.
    Their variables become lets. Never changes results.

    With `flat`, the lets are inlined, and an access `x[c, i, j]` whose rows `j` covers whole becomes `x.flat[c, i.j]`,
    of a view in which consecutive iterations are consecutive elements across row ends.

    `rows_of` is a buffer that is read at windows, as `x[c, i + u, j + v]`, and has longer rows: the fused loop goes
    through these, `x.flat` is read in place, and iterations that lie between rows of `j` store nothing.
    """

    outer: LoopName
    inner: LoopName
    flat: bool = False
    rows_of: BufferName | None = None

    def rewritten(self, facts: Facts) -> PrimFunc:
        inner_chain = chain_to(facts.func, self.inner)
        outer, inner = loop_named(facts.func, self.outer), inner_chain[-1]
        if len(inner_chain) < 2 or inner_chain[-2] is not outer or outer.body.stmts != (inner,):
            raise does_not_fit(self, f"`{inner.var.name}` is not all there is in `{outer.var.name}`")
        if outer.kind is not inner.kind or outer.kind not in (ForKind.SERIAL, ForKind.PARALLEL):
            raise does_not_fit(self, "both loops are a `range`, or both are parallel")
        bounds = (outer.start, outer.stop, inner.start, inner.stop)
        if not is_steady(*bounds) or mentions(bounds, outer.var):
            raise does_not_fit(self, f"the bounds of the loop over `{inner.var.name}` are decided inside")
        for loop in (outer, inner):
            demand_plain(self, loop, by_blocks=True)
        rounds, turns = _rounds(facts, outer), _rounds(facts, inner)
        number = Var(f"{outer.var.name}.{inner.var.name}")
        is_once = is_constant(turns, 1)
        places = (number, const(0, i64)) if is_once else (FloorDiv(number, turns), FloorMod(number, turns))
        lets = [
            Let(each.var, _value(each, at), span=each.span) for each, at in zip((outer, inner), places, strict=True)
        ]
        stop: Expr = folded(Mul(rounds, turns))
        made, views = (*lets, *inner.body.stmts), tuple[View, ...]()
        if self.flat:
            from tirlite.schedules.inline import without_lets

            body, views = _flat(inner.body, outer, inner, number, stop)
            made = (*without_lets((*lets, *body.stmts)),)
        if self.rows_of is not None:
            from tirlite.schedules.rows_in_place import over_rows

            longer = buffer_named(facts.func, self.rows_of, inner)
            stop, body, view = over_rows(self, facts, inner_chain, longer, number)
            made, views = body.stmts, (view,)
        one = For(number, const(0, i64), stop, SeqStmt(made), outer.kind, span=outer.span)
        # Declare views as far out as their sources allow, so that the loops stay perfectly nested.
        of = {view.source for view in views}
        top = next(loop for loop in inner_chain if loop is outer or of.isdisjoint(defined_in(loop.body)))
        around = rewrite(top, {For: lambda loop: one if loop is outer else loop})
        return with_loop(facts, top, (*views, around))


def is_flat(node: Load | Store, outer: For, inner: For) -> bool:
    """Whether an access goes through whole rows, contiguous in memory, as the inner loop does."""
    buffer, none = node.buffer, const(0, i64)
    return (
        outer.step == inner.step == 1
        and not (buffer.strides or buffer.volatile)
        and node.indices[-2:] == (outer.var, inner.var)
        and are_equal((outer.start, inner.start, inner.stop), (none, none, buffer.shape[-1]))
    )


def _flat(body: SeqStmt, outer: For, inner: For, number: Var, count: Expr) -> tuple[SeqStmt, tuple[View, ...]]:
    """A body that indexes flattened views by the fused loop's variable `number`, and the views that it needs."""
    views: dict[Buffer, View] = {}

    def flat(node: Load | Store) -> Load | Store:
        if not is_flat(node, outer, inner):
            return node
        source = node.buffer
        if source not in views:
            *shape, rows, columns = source.shape
            # If the outer loop covers all rows, the size is the iteration count, which is known not to be negative.
            shape.append(count if are_equal((rows,), (outer.stop,)) else folded(Mul(rows, columns)))
            whole = Buffer(f"{source.name}.flat", source.dtype, (*shape,), source.scope)
            views[source] = View(whole, source, const(0, i64))
        return node.replaced(buffer=views[source].buffer, indices=(*node.indices[:-2], number))

    made = rewrite(body, {Load: flat, Store: flat})
    return made, (*views.values(),)


def _rounds(facts: Facts, loop: For) -> Expr:
    """The number of iterations of a loop."""
    if any(is_block_of(loop, each) and loop.step >= each.step for each in statements_of(facts.func.body, For)):
        return const(1, i64)
    count = loop.count
    if loop.step == 1:
        return count
    if isinstance(count, IntImm):
        return const(-(-count.value // loop.step), i64)
    whole = const(loop.step, i64)
    if loop.step <= _SHORT:
        return FloorDiv(Add(count, const(loop.step - 1, i64)), whole)
    rest = FloorDiv(Add(FloorMod(count, whole), const(loop.step - 1, i64)), whole)
    return Add(FloorDiv(count, whole), rest)


def _value(loop: For, number: Expr) -> Expr:
    """The value of a loop's variable in its iteration `number`."""
    return folded(Add(loop.start, folded(Mul(number, const(loop.step, i64)))))


@record
class Delinearise(ScheduleStep):
    """Splits `for i in range(n * 64)` into `i.outer`, over rows of 64, and `i.inner`, within a row.

    `i // 64` becomes `i.outer` and `i % 64` becomes `i.inner`, so quotients and remainders become plain indices. Never
    changes results. Refused unless the rows are proved to be whole. The pass `DivideLoops` does this wherever it pays.
    """

    loop: LoopName
    by: int

    def rewritten(self, facts: Facts) -> PrimFunc:
        loop = loop_named(facts.func, self.loop)
        demand_plain(self, loop)
        if self.by < 1 or loop.kind not in (ForKind.SERIAL, ForKind.PARALLEL, ForKind.REDUCE):
            raise does_not_fit(self, "rows are of one iteration or more, of a loop that is run one by one")
        if not is_constant(loop.start, 0):
            raise does_not_fit(self, f"the loop over `{loop.var.name}` does not begin at 0")
        if not is_whole(loop, self.by, facts):
            raise does_not_fit(self, f"the loop over `{loop.var.name}` is not proved to have whole rows of {self.by}")
        return with_loop(facts, loop, (divided(loop, self.by),))
