"""Split and Delinearise make two loops of one, over blocks and within a block; Fuse makes one loop of two."""

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
from tirlite.schedules.handle import LoopName, chain_to, loop_named
from tirlite.schedules.loop_facts import is_block_of
from tirlite.schedules.order import demand_any_order, demand_independent
from tirlite.schedules.step import Step, demand_plain, does_not_fit, named, with_loop

_TAILS = ("short", "guarded", "masked", "peeled", "overlapped")


@record
class Split(Step):
    """`for j in range(a, b)` as `j.outer`, from `a` by this many, and `j.inner`, from there up to the next, or to `b`.

    The inner loop's variable takes the values that the loop had, so indices stay as they are, and the last block may be
    shorter. Both loops are of the loop's kind, but that what is inside of a parallel one is a `range`. It never changes
    results.

    With another `tail` all blocks have so many iterations: `guarded`, those beyond the end do nothing (which is a mask
    where the loop goes by vectors); `masked`, that is so of the last block alone, in `j.rest`; `peeled`, what is
    left stands in a loop `j.rest` of as many iterations as that; `overlapped`, the last block goes back over some that
    were done before, where there are as many. That is refused where one iteration may touch what another one writes, or
    reads what it writes: it would be done twice.
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
        """Raises KernelError, with the accesses, where an iteration that is done twice changes results."""
        if loop.kind is not ForKind.SERIAL:
            raise does_not_fit(self, f"the loop over `{loop.var.name}` is no `range`")
        demand_any_order(self, loop)
        demand_independent(self, facts, loop)
        for touches in facts.touched_in(loop).values():
            for touch in touches if any(map(writes, touches)) else ():
                if not writes(touch):
                    raise does_not_fit(self, f"{touch} is read and written by an iteration, which may be done twice")


# No loop of such steps comes to an end where a number of iterations and one of them together wrap around.
_SHORT = 1 << 16


@record
class Fuse(Step):
    """`i.j`, with an iteration for each one of `j` in each one of `i`, in their order.

    `j` is all there is in `i`, its bounds do not depend on `i`, both ascend, and both are parallel or neither is. Their
    variables keep their values, as lets. It never changes results.

    With `flat` they are written out in place of lets, and of a buffer whose rows `j` goes through whole, `x[c, i, j]`
    is the element `x.flat[c, i.j]` of a view: neighbours are neighbours in memory over the ends of rows.
    """

    outer: LoopName
    inner: LoopName
    flat: bool = False

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
        stop = folded(Mul(rounds, turns))
        made, views = (*lets, *inner.body.stmts), tuple[View, ...]()
        if self.flat:
            from tirlite.schedules.inline import without_lets

            body, views = _flat(inner.body, outer, inner, number, stop)
            made = (*without_lets((*lets, *body.stmts)),)
        one = For(number, const(0, i64), stop, SeqStmt(made), outer.kind, span=outer.span)
        # Views stand before all loops that could stand around them, as a nest may hold nothing but loops.
        of = {view.source for view in views}
        top = next(loop for loop in inner_chain if loop is outer or of.isdisjoint(defined_in(loop.body)))
        around = rewrite(top, {For: lambda loop: one if loop is outer else loop})
        return with_loop(facts, top, (*views, around))


def is_flat(node: Load | Store, outer: For, inner: For) -> bool:
    """Whether an access goes through whole rows, which lie one after the other, as the inner loop does."""
    buffer, none = node.buffer, const(0, i64)
    return (
        outer.step == inner.step == 1
        and not (buffer.strides or buffer.volatile)
        and node.indices[-2:] == (outer.var, inner.var)
        and are_equal((outer.start, inner.start, inner.stop), (none, none, buffer.shape[-1]))
    )


def _flat(body: SeqStmt, outer: For, inner: For, number: Var, count: Expr) -> tuple[SeqStmt, tuple[View, ...]]:
    """A body with one index in place of those of both loops, where rows are whole; and the views that it takes."""
    views: dict[Buffer, View] = {}

    def flat(node: Load | Store) -> Load | Store:
        if not is_flat(node, outer, inner):
            return node
        source = node.buffer
        if source not in views:
            *shape, rows, columns = source.shape
            # All rows have as many elements as there are iterations, which are not below 0.
            shape.append(count if are_equal((rows,), (outer.stop,)) else folded(Mul(rows, columns)))
            whole = Buffer(f"{source.name}.flat", source.dtype, (*shape,), source.scope)
            views[source] = View(whole, source, const(0, i64))
        return node.replaced(buffer=views[source].buffer, indices=(*node.indices[:-2], number))

    made = rewrite(body, {Load: flat, Store: flat})
    return made, (*views.values(),)


def _rounds(facts: Facts, loop: For) -> Expr:
    """How often a loop runs."""
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
    """The variable of a loop in an iteration."""
    return folded(Add(loop.start, folded(Mul(number, const(loop.step, i64)))))


@record
class Delinearise(Step):
    """`for i in range(n * 64)` as `i.outer` over rows of 64, and `i.inner` through one.

    `i // 64` becomes `i.outer`, and `i % 64` becomes `i.inner`: indices that were quotients and remainders become those
    of axes. It never changes results. `DivideLoops` does so wherever that pays. Refused where the rows are not proved
    to be whole.
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
