"""Scan makes the blocks of a running sum independent: each begins with the sum of all blocks before it."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.dependence import writes
from tirlite.analysis.loops.reductions import SPELLING, Update, neutral, update_of
from tirlite.ir.dtype import i64
from tirlite.ir.equal import structural_equal
from tirlite.ir.expr import LT, Add, Binary, Buffer, Expr, FloorDiv, Load, Max, Min, Sub, Var, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.rewrite import Rule, rewrite, substitute
from tirlite.ir.stmt import Allocate, AttrStmt, For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store
from tirlite.ir.walk import defined_in, is_steady, mentions, statements_of, walk
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.reductions import may_regroup
from tirlite.schedules.handle import LoopName, loop_named
from tirlite.schedules.loop_facts import trips
from tirlite.schedules.order import breaks_order, demand_any_order
from tirlite.schedules.step import ScheduleStep, demand_plain, does_not_fit, with_loop


@record
class Scan(ScheduleStep):
    """Splits the running sum `total += x[i]; y[i] = total` into independent blocks of `by` iterations.

    `i.sum` sums each block alone, `i.carry` accumulates the sums of the blocks before each, and `i`, inside of
    `i.block`, scans each block starting from there. Operands are computed twice. `y[i] = y[i - 1] + x[i]` is
    transformed too.

    Refused if the loop carries any other dependence, if an operand depends on what the loop writes, and for float sums
    and products unless `tl.allow("reassociate")` permits regrouping.
    """

    loop: LoopName
    by: int

    def rewritten(self, facts: Facts) -> PrimFunc:
        loop = loop_named(facts.func, self.loop)
        demand_plain(self, loop)
        if loop.kind is ForKind.SERIAL and (made := _in_scalar(facts, loop)) is not None:
            facts = Facts(with_loop(facts, loop, made))
            loop = next(each for each in statements_of(facts.func.body, For) if each.var is loop.var)
        demand_any_order(self, loop)
        count = trips(facts, loop)
        if loop.kind is not ForKind.SERIAL or self.by < 1 or count is None:
            raise does_not_fit(self, "it takes a `range` with a known bound of iterations, and blocks of one or more")
        update, operands = self._update(facts, loop)
        is_exact = not update.store.buffer.dtype.is_float or update.operation in (Min, Max)
        granted = (stmt for stmt in statements_of(facts.func.body, AttrStmt) if may_regroup(stmt))
        if not is_exact and not any(loop in {*statements_of(stmt.body, For)} for stmt in granted):
            reason = f"`{update.store.buffer.name}` would be summed up in another grouping, which rounds differently"
            raise does_not_fit(self, f'{reason}; grant tl.allow("reassociate")')
        return with_loop(facts, loop, _ScanLoops(loop, update, operands, self.by, count).statements())

    def _update(self, facts: Facts, loop: For) -> tuple[Update, tuple[Stmt, ...]]:
        """The update that carries the dependence, and the lets of its operand. Raises KernelError if none."""
        carried = [*facts.carried_by(loop)]
        if not carried:
            raise does_not_fit(self, f"the loop over `{loop.var.name}` passes nothing on")
        passed = {each.sink.stmt for each in carried}
        updates = [update_of(each) for each in loop.body.stmts if isinstance(each, Store) and each in passed]
        update = next((each for each in updates if each is not None and _is_steady(each, loop)), None)
        if update is None:
            raise breaks_order(self, carried[0])
        root = facts.definitions.root
        buffer = update.store.buffer
        stores = [each for each in statements_of(loop.body, Store) if root(each.buffer) is root(buffer)]
        if stores != [update.store]:
            raise does_not_fit(self, f"`{buffer.name}` is written by several statements")
        if update.store.value.dtype.lanes > 1:
            raise does_not_fit(self, f"`{buffer.name}` is combined by vectors")
        for each in carried:
            for touch in (each.source, each.sink):
                node = touch.node
                is_own = isinstance(node, Load | Store) and _is_same(node, update.store)
                if root(touch.buffer) is root(buffer) and not is_own:
                    raise breaks_order(self, each)
        return update, self._operands(facts, loop, update)

    def _operands(self, facts: Facts, loop: For, update: Update) -> tuple[Stmt, ...]:
        """The lets before an update. Raises KernelError if its operand depends on what the loop writes."""
        store = update.store
        defined = defined_in(loop.body)
        before = tuple(each for each in loop.body.stmts[: loop.body.stmts.index(store)] if isinstance(each, Let))
        named = {each.var for each in before}
        root = facts.definitions.root
        written = {root(each.buffer) for each in statements_of(loop.body, Store)}
        for expr in (update.operand, *(each.value for each in before)):
            for node in walk(expr):
                if isinstance(node, Load) and root(node.buffer) in written:
                    raise does_not_fit(self, f"what is combined is of `{node.buffer.name}`, which the loop writes")
                if node in defined - named:
                    raise does_not_fit(self, "what is combined is of what an iteration defines")
        return before


def _is_steady(update: Update, loop: For) -> bool:
    """Whether all iterations of a loop update the same element."""
    inside = defined_in(loop)
    return is_steady(*update.store.indices) and not mentions(update.store.indices, inside)


def _is_same(node: Load | Store, store: Store) -> bool:
    return node.buffer is store.buffer and all(map(structural_equal, node.indices, store.indices))


class _ScanLoops:
    """Generates the loops that replace a scan."""

    def __init__(self, loop: For, update: Update, before: tuple[Stmt, ...], by: int, count: Expr) -> None:
        self.loop, self.update, self.before, self.by = loop, update, before, by
        self.dtype = update.store.buffer.dtype
        name = update.store.buffer.name
        self.sums = Buffer(f"{name}.blocks", self.dtype, (self._block(Add(count, const(by - 1, i64))),))
        self.name = name

    def statements(self) -> tuple[Stmt, ...]:
        return (Allocate(self.sums, span=self.loop.span), self._summed(), self._carried(), self._scanned())

    def _block(self, passed: Expr) -> Expr:
        """The number of blocks that `passed` iterations fill."""
        return folded(FloorDiv(folded(passed), const(self.by, i64)))

    def _of_blocks(self, suffix: str) -> tuple[Var, Load]:
        """The variable of a loop over the blocks, and the element of `sums` for its block."""
        var = Var(self.loop.var.name + suffix)
        return var, self.sums[self._block(Sub(var, self.loop.start))]

    def _over(self, block: Var, *body: Stmt) -> For:
        return self.loop.replaced(var=block, step=self.by, body=SeqStmt(body))

    def _through(self, block: Var, var: Var, *body: Stmt) -> For:
        """The loop through a block."""
        end = Min(Add(block, const(self.by, i64)), self.loop.stop)
        return For(var, block, end, substitute(SeqStmt(body), {self.loop.var: var}), span=self.loop.span)

    def _summed(self) -> For:
        """Reduces each block alone."""
        block, kept = self._of_blocks(".blocks")
        own = Buffer(f"{self.name}.block", self.dtype, (), "local")
        taken = Store(own, (), self.update.operation(own[()], self.update.operand), span=self.update.store.span)
        return self._over(
            block,
            Allocate(own),
            Store(own, (), neutral(self.update.operation, self.dtype)),
            self._through(block, Var(f"{self.loop.var.name}.sum"), *self.before, taken),
            Store(kept.buffer, kept.indices, own[()]),
        )

    def _carried(self) -> For:
        """Replaces each block's sum by what comes before the block."""
        block, kept = self._of_blocks(".carry")
        sum_of_block, store = Var("block", self.dtype), self.update.store
        value = self.update.operation(self.update.element, sum_of_block)
        return self._over(
            block,
            Let(sum_of_block, kept),
            Store(kept.buffer, kept.indices, self.update.element),
            store.replaced(value=value),
        )

    def _scanned(self) -> For:
        """The original loop, block by block."""
        block, kept = self._of_blocks(".block")
        own = Buffer(self.name, self.dtype, (), "local")
        store = self.update.store

        def moved(node: Load | Store) -> Node:
            return node.replaced(buffer=own, indices=()) if _is_same(node, store) else node

        rules: dict[type[Node], Rule] = {Load: moved, Store: moved}
        body = rewrite(self.loop.body, rules)
        begun = Store(own, (), kept)
        return self._over(block, Allocate(own), begun, self._through(block, Var(self.loop.var.name), *body.stmts))


def _in_scalar(facts: Facts, loop: For) -> tuple[Stmt, ...] | None:
    """`y[i] = y[i - 1] + x[i]` rewritten to carry its value in a scalar; None if the loop has another form."""
    defined = defined_in(loop.body)
    for store in loop.body.stmts:
        value = store.value if isinstance(store, Store) else None
        if not isinstance(store, Store) or not isinstance(value, Binary) or type(value) not in SPELLING:
            continue
        touched = [touches for each, touches in facts.touches_in[loop].items() if store.buffer is each.buffer]
        if any(writes(touch) and touch.node is not store for touches in touched for touch in touches):
            continue
        for element, other in ((value.a, value.b), (value.b, value.a)):
            if not isinstance(element, Load) or element.buffer is not store.buffer or mentions(element, defined):
                continue  # also if each iteration allocates the buffer for itself
            if store.buffer not in defined and _is_before(facts, element, store, loop):
                total = Buffer(store.buffer.name, store.buffer.dtype, (), "local")
                first = substitute(element, {loop.var: loop.start})
                own = Store(total, (), type(value)(total[()], other), span=store.span)
                stmts = [
                    each if each is not store else SeqStmt((own, store.replaced(value=total[()])))
                    for each in loop.body.stmts
                ]
                begun = IfThenElse(LT(loop.start, loop.stop), SeqStmt((Store(total, (), first),)))
                return Allocate(total, span=loop.span), begun, loop.replaced(body=SeqStmt(tuple(stmts)))
    return None


def _is_before(facts: Facts, element: Load, store: Store, loop: For) -> bool:
    """Whether an element is the one that the previous iteration has stored."""
    earlier = substitute(store, {loop.var: Sub(loop.var, const(1, i64))})
    space = facts.space
    return mentions(store.indices, loop.var) and all(
        space.size(mine) == space.size(other) for mine, other in zip(element.indices, earlier.indices, strict=True)
    )
