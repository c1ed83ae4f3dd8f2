"""Narrows the bounds of a loop by a condition on its counter that guards all of its body."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from tirlite.analysis.facts import Facts
from tirlite.analysis.integers.index_space import FLIPPED, SWAPPED
from tirlite.analysis.loops.patterns import only_branch
from tirlite.ir.dtype import i64
from tirlite.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Buffer,
    Cast,
    Compare,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Load,
    Max,
    Min,
    Mul,
    Neg,
    Not,
    Sub,
    Var,
    const,
)
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.rewrite import rewrite, substitute
from tirlite.ir.stmt import For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store
from tirlite.ir.walk import conjuncts, defined_in, mentions, statements, statements_of, walk
from tirlite.rewrite.affine_exprs import folded, shifted
from tirlite.rewrite.loops.partition_loops import MOST_INSIDE
from tirlite.rewrite.normalize import Normalize
from tirlite.rewrite.simplify.simplify import Simplify

# Operations that cannot fault and only depend on their operands.
_ARITHMETIC = (Add, Sub, Mul, Neg, Min, Max, IntImm, Var, Load, And, Not, Compare)
# Statements that only access memory by loads and stores.
_PLAIN = (Store, Let, For, IfThenElse, SeqStmt)


def rewritten(facts: Facts, *, called: bool) -> PrimFunc:
    """The function with loops over the iterations that meet their condition, see `TightenLoops`."""
    found = rewrite(facts.func, {For: Tightening(facts, called=called).tightened})
    return facts.func if found is facts.func else Simplify()(Normalize()(found))


class Tightening:
    """Tightens the loops of one function."""

    def __init__(self, facts: Facts, *, called: bool) -> None:
        self.facts = facts
        self.space = facts.space
        self.counters = {loop.var for loop in statements_of(facts.func.body, For)}
        nodes = [*statements(facts.func.body)]
        is_plain = all(isinstance(each, _PLAIN) for each in nodes) and not called
        stored = {facts.definitions.root(each.buffer) for each in nodes if isinstance(each, Store)}
        self.unwritten: set[Buffer] = set(facts.params) - stored if is_plain else set()

    def tightened(self, loop: For) -> Stmt | tuple[Stmt, ...]:
        """The loop over the iterations that meet the condition around its body, as far as that can be told."""
        branch = only_branch(loop)
        if branch is None:
            return loop
        values: dict[Var, Expr] = {}
        for stmt in loop.body.stmts[:-1]:
            assert isinstance(stmt, Let)
            values[stmt.var] = substitute(stmt.value, values)
        if not all(map(self._is_safe, values.values())):
            return loop
        inside = defined_in(loop)
        if branch.else_body.stmts:
            return self._parted(loop, branch, substitute(branch.condition, values), inside)
        narrow, before, kept = loop, list[Expr](), list[Expr]()
        ends_stay = self._is_safe(loop.start) and self._is_safe(loop.stop)
        for each in conjuncts(branch.condition):
            # A condition after one that may fault is not evaluated in all iterations.
            condition = substitute(each, values) if all(map(self._is_safe, kept)) else None
            found = self._narrowed(narrow, condition, inside) if condition is not None else None
            if found is not None:
                narrow = found
            elif condition is not None and ends_stay and self._is_of_counters(condition, inside):
                before.append(condition)
            else:
                kept.append(each)
        if narrow is loop and not before:
            return loop
        body = branch.then_body if not kept else SeqStmt((branch.replaced(condition=reduce(And, kept)),))
        narrow = narrow.replaced(body=SeqStmt((*loop.body.stmts[:-1], *body.stmts)))
        lets, narrow = _with_names(narrow, loop)
        return (*lets, IfThenElse(reduce(And, before), SeqStmt((narrow,)), span=branch.span) if before else narrow)

    def _parted(self, loop: For, branch: IfThenElse, condition: Expr, inside: set[object]) -> Stmt | tuple[Stmt, ...]:
        """Splits a loop into one over the iterations that meet a condition and one over the others, in order.

        Only serial loops: splitting a parallel one could hide that its iterations conflict.
        """
        if loop.kind is not ForKind.SERIAL or not self._stays(loop.start, inside) or not self._stays(loop.stop, inside):
            return loop
        parts: list[For] = []
        for each, body in ((condition, branch.then_body), (Not(condition), branch.else_body)):
            part = None if isinstance(condition, EQ) else self._narrowed(loop, each, inside)
            if part is None:
                return loop
            parts.append(part.replaced(body=SeqStmt((*loop.body.stmts[:-1], *body.stmts))))
        named = [_with_names(part, loop) for part in sorted(parts, key=lambda part: part.start is not loop.start)]
        again = [self.tightened(part) for _, part in named]
        stmts = [each if isinstance(each, tuple) else (each,) for each in again]
        return tuple(stmt for (lets, _), own in zip(named, stmts, strict=True) for stmt in (*lets, *own))

    def _narrowed(self, loop: For, condition: Expr, inside: set[object]) -> For | None:
        """The loop over the iterations that meet a condition; None unless that is proved exact."""
        while isinstance(condition, Not) and isinstance(condition.a, Not):
            condition = condition.a.a
        if isinstance(condition, Not) and isinstance(condition.a, Compare) and not isinstance(condition.a, EQ):
            condition = FLIPPED[type(condition.a)](condition.a.a, condition.a.b)
        if not isinstance(condition, Compare) or isinstance(condition, NE) or condition.a.dtype != i64:
            return None
        if loop.values is not None and len(loop.values) <= MOST_INSIDE and self._tells_of_two(condition, loop.var):
            # Keep constant bounds, which let the outer loop be vectorized after `PartitionLoops` has split its ends
            # off.
            return None
        if not all(self.space.is_exact(self.space.size(side)) for side in (condition.a, condition.b)):
            return None
        sides = self._sides(condition, loop.var, inside)
        if sides is None:
            return None
        rest, is_swapped = sides
        kind = SWAPPED[type(condition)] if is_swapped else type(condition)
        narrow: For | None = loop
        if kind in (GT, GE, EQ):
            narrow = self._from(loop, rest, int(kind is GT))
        if kind in (LT, LE, EQ) and narrow is not None:
            narrow = self._up_to(narrow, rest, int(kind is LT))
        return narrow

    def _tells_of_two(self, condition: Compare, var: Var) -> bool:
        """Whether a condition is on a counter and on those of loops around it."""
        return mentions(condition, var) and mentions(condition, self.counters - {var})

    def _from(self, loop: For, low: Expr, further: int) -> For | None:
        if loop.step < 0:
            stop = self._further(Max, loop.stop, low, further - 1)
            return None if stop is None else loop.replaced(stop=stop)
        start = self._nearer(loop, Max, low, further) if loop.step == 1 else None
        return None if start is None else loop.replaced(start=start)

    def _up_to(self, loop: For, high: Expr, before: int) -> For | None:
        """The loop up to `high - before` inclusive."""
        if loop.step > 0:
            stop = self._further(Min, loop.stop, high, 1 - before)
            return None if stop is None else loop.replaced(stop=stop)
        start = self._nearer(loop, Min, high, -before) if loop.step == -1 else None
        return None if start is None else loop.replaced(start=start)

    def _nearer(self, loop: For, kind: type[Min | Max], value: Expr, by: int) -> Expr | None:
        """The start of a loop, or `value + by` if that is further on, in a form without overflow, if any."""
        if not self._is_exact(moved := shifted(value, by)):
            # Starting at the end is enough for an empty loop.
            last = folded(Sub(loop.stop, const(by, i64)))
            moved = shifted((Min if kind is Max else Max)(value, last), by)
            if not self._is_exact(last):
                return None
        return kind(loop.start, moved)

    def _further(self, kind: type[Min | Max], stop: Expr, value: Expr, by: int) -> Expr | None:
        """The same for the end of a loop."""
        if self._is_exact(moved := shifted(value, by)):
            return kind(stop, moved)
        last = folded(Sub(stop, const(by, i64)))
        return shifted(kind(last, value), by) if self._is_exact(last) else None

    def _is_exact(self, expr: Expr) -> bool:
        return self.space.is_exact(self.space.size(expr))

    def _sides(self, condition: Compare, var: Var, inside: set[object]) -> tuple[Expr, bool] | None:
        """The rest of a comparison that is linear in `var`, and whether `var` is on its right side; None for others."""
        rest: list[tuple[Expr, bool]] = []  # terms of the left side minus the right, and whether they are added
        signs: list[bool] = []
        todo = [(condition.b, False), (condition.a, True)]
        while todo:
            term, is_added = todo.pop()
            if term is var:
                signs.append(is_added)
            elif isinstance(term, Add | Sub) and not self._stays(term, inside):
                todo += [(term.b, is_added is isinstance(term, Add)), (term.a, is_added)]
            elif self._stays(term, inside):
                rest.append((term, is_added))
            else:
                return None
        if len(signs) != 1:
            return None
        # `v + r >= 0` is `v >= -r`, and `-v + r >= 0` is `r >= v`.
        positive = [term for term, is_added in rest if is_added is not signs[0]]
        negative = [term for term, is_added in rest if is_added is signs[0]]
        total = reduce(Add, positive) if positive else const(0, i64)
        total = folded(reduce(Sub, negative, total))
        return (total, not signs[0]) if self._is_exact(total) else None

    def _stays(self, expr: Expr, inside: set[object]) -> bool:
        """Whether an expression can be computed before a loop, and equals its value in each iteration."""
        return self._is_safe(expr) and not mentions(expr, inside) and all(self._loads_stay(expr))

    def _loads_stay(self, expr: Expr) -> Iterator[bool]:
        return (
            node.buffer in self.unwritten and not node.buffer.volatile for node in walk(expr) if isinstance(node, Load)
        )

    def _is_safe(self, expr: Expr) -> bool:
        """Whether an expression cannot fault, whatever is tested around it."""
        loads = (node for node in walk(expr) if isinstance(node, Load))
        return all(map(_has_value, walk(expr))) and all(map(self.facts.bounds.is_inside, loads))

    def _is_of_counters(self, condition: Expr, inside: set[object]) -> bool:
        """Whether a condition is loop-invariant and compares integers by the counters of loops around."""
        if not isinstance(condition, Compare) or condition.a.dtype != i64 or not self._stays(condition, inside):
            return False
        return mentions(condition, self.counters)


def _with_names(loop: For, before: For) -> tuple[list[Let], For]:
    """A loop with lets for the loads in its new bounds, so that proofs see that its body loads the same."""
    from tirlite.ir import rewrite, structural_equal

    lets: list[Let] = []
    ends = [new for new, old in ((loop.start, before.start), (loop.stop, before.stop)) if new is not old]
    old = {*walk(before.start), *walk(before.stop)}
    for node in (each for each in walk(*ends) if each not in old):
        source = node.value if isinstance(node, Cast) else node
        is_new = not any(structural_equal(node, let.value) for let in lets)
        if isinstance(source, Load) and isinstance(node, Cast | Load) and node.dtype == i64 and is_new:
            lets.append(Let(Var(source.buffer.name, i64), node))

    def named(node: Cast | Load) -> Expr:
        return next((let.var for let in lets if structural_equal(node, let.value)), node)

    if lets:
        loop = loop.replaced(
            **{part: rewrite(getattr(loop, part), {Cast: named, Load: named}) for part in loop.CHILDREN}
        )
    return lets, loop


def _has_value(node: Node) -> bool:
    """Whether a node is a load, or an operation that cannot fault."""
    if isinstance(node, Cast):
        return node.value.dtype.is_integer
    if isinstance(node, FloorDiv | FloorMod):
        return isinstance(node.b, IntImm) and node.b.value > 0
    return isinstance(node, _ARITHMETIC)
