"""Edges finds the range of a loop's iterations in which all tests of the counter, as for borders, have one result."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.analysis.integers.index_space import SWAPPED
from tirlite.ir.dtype import i64
from tirlite.ir.equal import structural_equal
from tirlite.ir.expr import (
    EQ,
    GT,
    LE,
    NE,
    Add,
    Binary,
    Compare,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mul,
    Neg,
    Sub,
    TruncDiv,
    TruncMod,
    Var,
    const,
)
from tirlite.ir.node import Node
from tirlite.ir.rewrite import Rule
from tirlite.ir.stmt import For, ForKind, Let
from tirlite.ir.walk import defined_in, statements, walk
from tirlite.sizes.unknown import ends

# At most this many iterations at either end are split off.
_MOST_AT_AN_END = 32
_QUOTIENTS = (FloorDiv, FloorMod, TruncDiv, TruncMod)
# Operations that can be computed anywhere.
_ARITHMETIC = (Add, Sub, Mul, Neg, Min, Max, IntImm, Var)


class Edges:
    """Finds the iterations at the ends of a loop in which tests of its counter differ from those in the middle."""

    def __init__(self, loop: For, facts: Facts) -> None:
        self.loop = loop
        self.space = facts.space
        self.begins: list[Expr] = []
        self.ends: list[Expr] = []
        self.ranges: dict[Var, range] = {}
        self.values: dict[Var, Expr] = {}
        for stmt in statements(loop.body):
            if isinstance(stmt, For):
                if stmt.values:
                    self.ranges[stmt.var] = stmt.values
            elif isinstance(stmt, Let):
                self.values[stmt.var] = stmt.value
        self.inside = defined_in(loop)
        from tirlite.ir.rewrite import rewrite

        rules: dict[type[Node], Rule] = {Min: self._extremum, Max: self._extremum}
        rules |= dict.fromkeys(SWAPPED, self._comparison) | dict.fromkeys(_QUOTIENTS, self._quotient)
        rewrite(loop.body, rules)

    def partition(self) -> tuple[For | None, For, For | None]:
        """The loops that replace it: before the middle, if there is such a part, the middle, and after it."""
        loop = self.loop
        begin, end = loop.start, loop.stop
        for each in self.begins:
            begin = Max(begin, each)
        for each in self.ends:
            end = Min(end, each)
        first = loop.replaced(stop=Min(begin, loop.stop), kind=ForKind.SERIAL)
        last = loop.replaced(start=Max(begin, end), kind=ForKind.SERIAL)
        return first if self.begins else None, loop.replaced(start=begin, stop=end), last if self.ends else None

    def _extremum(self, node: Min | Max) -> Expr:
        """The operand that all iterations in the middle take; `node` if there is none."""
        moving, fixed = node.a, node.b
        if not self._is_steady(fixed):
            moving, fixed = fixed, moving
        if isinstance(node, Max):
            return moving if self._from(moving, fixed) else fixed if self._up_to(moving, fixed) else node
        return moving if self._up_to(moving, fixed, 1) else fixed if self._from(moving, fixed) else node

    def _comparison(self, node: Compare) -> Expr:
        kind, moving, fixed = type(node), node.a, node.b
        if not self._is_steady(fixed):
            kind, moving, fixed = SWAPPED[kind], fixed, moving
        further = int(kind in (LE, GT, EQ, NE))
        # The comparison changes at one iteration: near the start, or else near the end.
        if not self._from(moving, fixed, further):
            self._up_to(moving, fixed, int(kind in (LE, GT)))
        return node

    def _quotient(self, node: Binary) -> Expr:
        """Notes where the dividend reaches 0, the divisor and its double: the simplified form changes there."""
        if not isinstance(node.b, IntImm):
            for border in (const(0, i64), node.b, Add(node.b, node.b)):
                if not self._from(node.a, border):
                    self._up_to(node.a, border)
        return node

    def _from(self, moving: Expr, fixed: Expr, further: int = 0) -> bool:
        """Whether `moving >= fixed + further` holds from an iteration near the start on; if so, notes it."""
        parts = self._parts(moving, fixed)
        if parts is None:
            return False
        rest, moved = parts
        at = _plus(rest, further - moved.start)
        return self._noted(self.begins, self.loop.start, at)

    def _up_to(self, moving: Expr, fixed: Expr, further: int = 0) -> bool:
        """Whether `moving < fixed + further` holds up to an iteration near the end; if so, notes it."""
        parts = self._parts(moving, fixed)
        if parts is None:
            return False
        rest, moved = parts
        at = _plus(rest, further - moved[-1])
        return self._noted(self.ends, at, self.loop.stop)

    def _noted(self, noted: list[Expr], before: Expr, after: Expr) -> bool:
        """Whether `after` is proved to be at most a few iterations behind `before`; if so, notes the cut."""
        _, high = ends(self.space.size(after) - self.space.size(before))
        if not isinstance(high, int) or high > _MOST_AT_AN_END:
            return False
        cut = after if noted is self.begins else before
        if high > 0 and not any(structural_equal(cut, each) for each in noted):
            noted.append(cut)
        return True

    def _parts(self, moving: Expr, fixed: Expr) -> tuple[Expr, range] | None:
        """For `moving` of the form counter + rest + inner: `fixed - rest`, and the range of `inner`; else None.

        `inner` are terms in the variables of inner loops, and constants.
        """
        if moving.dtype != i64 or not self._is_steady(fixed):
            return None
        rest, low, high, steps = fixed, 0, 0, 0
        todo: list[tuple[Expr, int]] = [(moving, 1)]
        while todo:
            term, sign = todo.pop()
            factor, var = _scaled(term)
            if isinstance(term, Add | Sub):
                todo += ((term.a, sign), (term.b, sign if isinstance(term, Add) else -sign))
            elif var is self.loop.var:
                steps += sign * factor
            elif var in self.ranges:
                reached = sorted(sign * factor * each for each in (self.ranges[var][0], self.ranges[var][-1]))
                low, high = low + reached[0], high + reached[1]
            elif var in self.values and factor == 1:
                todo.append((self.values[var], sign))
            elif isinstance(term, IntImm):
                low, high = low + sign * term.value, high + sign * term.value
            elif self._is_steady(term):
                rest = Sub(rest, term) if sign > 0 else Add(rest, term)
            else:
                return None
        return (rest, range(low, high + 1)) if steps == 1 else None

    def _is_steady(self, expr: Expr) -> bool:
        """Whether an expression is the same in all iterations and can be computed before the loop."""
        return all(isinstance(node, _ARITHMETIC) and node not in self.inside for node in walk(expr))


def _scaled(term: Expr) -> tuple[int, Var | None]:
    """A term as a constant factor and a variable."""
    if isinstance(term, Mul) and isinstance(term.a, IntImm) != isinstance(term.b, IntImm):
        factor, var = (term.a, term.b) if isinstance(term.a, IntImm) else (term.b, term.a)
        assert isinstance(factor, IntImm)
        return factor.value, var if isinstance(var, Var) else None
    return 1, term if isinstance(term, Var) else None


def _plus(expr: Expr, by: int) -> Expr:
    return Add(expr, const(by, i64)) if by >= 0 else Sub(expr, const(-by, i64))
