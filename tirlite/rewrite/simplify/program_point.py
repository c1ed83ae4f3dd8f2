"""The sizes of integer expressions at one point of a function, under the conditions that hold there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tirlite.analysis.integers.definitions import Definition
from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Binary, Buffer, Call, Expr, IntImm, LetExpr, Load, Max, Min, ShiftLeft, ShiftRight, Var
from tirlite.ir.faults import trap_of
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.stmt import For
from tirlite.ir.trampoline import Steps, run
from tirlite.ir.walk import walk
from tirlite.record import record
from tirlite.sizes import Size, maximum, minimum, substitute
from tirlite.sizes.division import divisor_of
from tirlite.sizes.extrema import Maximum, Minimum
from tirlite.sizes.poly import Atom, inside_out, terms_of, varies
from tirlite.sizes.unknown import Unknown, ends, follows, is_nonnegative, is_positive_beside, narrower, unknowns_in

# The number of innermost facts that proofs use.
_MOST_FACTS = 16


@record
class Written:
    """An expression and its cost, in nodes."""

    expr: Expr
    cost: int


NO_RISK: frozenset[object] = frozenset()


class ProgramPoint(IndexSpace):
    """A point in a function that moves as the function is walked: through its definitions, into bodies and branches.

    `exprs` is the spelling of each atom here. The `risks` of a node are the operations in it that may fault or have no
    value; an expression with risks may not be dropped. A node's costs and risks are known once it was `noted`.
    """

    def __init__(self, func: PrimFunc) -> None:
        super().__init__(func)
        self.exprs: dict[Atom, Expr] = dict(self.extents.variables.items())
        self.starts: dict[For, tuple[Size, Unknown]] = {}
        self.costs: dict[Node, int] = {}
        self.risks: dict[Node, frozenset[object]] = {}
        self._tainted: set[Var] = set()
        self._loading: set[Expr] = set()
        self._facts: list[Size] = []
        self._narrowed: dict[Atom, Size] = {}
        self._memo: dict[Expr, Size] = {}
        self.written: dict[Size, Written | None] = {}
        self._steady: dict[object, Unknown] = {}
        self._passing: dict[object, Unknown] = {}

    def begin(self) -> None:
        """Moves to another statement, in which loads may give other values."""
        self._passing, self._memo, self.written = {}, {}, {}

    def size(self, expr: Expr, lane: Unknown | None = None) -> Size:
        """The value of an integer expression here, given what is assumed."""
        return run(self._size(expr, lane, None))

    def proves(self, goal: Size) -> bool:
        """Whether a size is proved not to be negative here."""
        return goal >= 0 if isinstance(goal, int) else follows(goal, self._facts) or is_nonnegative(goal)

    def define(self, var: Var, value: Expr) -> None:
        """Moves past the definition of a variable."""
        if self.risks[value]:
            self._tainted.add(var)
        self.size(var)

    def enter(self, loop: For) -> None:
        """Moves into the body of a loop whose bounds were noted."""
        value = self.size(loop.var)
        counter = self.counter(loop)
        start = value - loop.step * counter
        shown = self.unknown(loop.var.name, *ends(value), divisor=divisor_of(terms_of(value)) or 1)
        self.exprs[shown] = loop.var
        self.starts[loop] = start, shown
        stop = self.size(loop.stop)
        # The counter's last value does not tell which operand an extremum in the start takes.
        is_told = not varies(stop) and not any(isinstance(each, Maximum | Minimum) for each in inside_out(start))
        if abs(loop.step) == 1 and not is_told and self.is_exact(stop):
            self._facts = [*self._facts, loop.step * (stop - value) - 1][-_MOST_FACTS:]

    def note(self, node: Expr) -> None:
        """Records the cost and risks of a node."""
        below = node.children()
        self.costs[node] = 1 + sum(self.costs[child] for child in below)
        if _is_loading(node) or any(child in self._loading for child in below):
            self._loading.add(node)
        found = NO_RISK.union(*(self.risks[child] for child in below))
        self.risks[node] = found | {self._key(node)} if self._is_risk(node) else found

    def note_all(self, root: Expr) -> None:
        """Records the costs and risks of the nodes of a new expression."""
        for node in reversed([node for node in walk(root) if isinstance(node, Expr) and node not in self.costs]):
            self.note(node)

    def covers(self, size: Size, risks: frozenset[object]) -> bool:
        """Whether the spelling of a size has all of these risks, so that none is lost."""
        if not risks:
            return True
        written = [self.exprs[unknown] for unknown in unknowns_in(size) if unknown in self.exprs]
        return risks <= NO_RISK.union(*(self.risks.get(expr, NO_RISK) for expr in written))

    @contextmanager
    def inside(self) -> Iterator[None]:
        """A context after which assumptions made in it are dropped."""
        kept = self._facts, self._narrowed, self._memo, self.written
        self._memo, self.written = dict(self._memo), dict(self.written)
        try:
            yield
        finally:
            self._facts, self._narrowed, self._memo, self.written = kept

    def assume(self, condition: Expr, *, holds: bool = True) -> None:
        """Assumes that a condition holds, or that it does not."""
        for fact in self.implied(condition, holds=holds):
            self._learn(fact)

    def _learn(self, fact: Size) -> None:
        """Adds a size that is not negative; if it bounds an atom, a narrower atom replaces that."""
        if isinstance(fact, int):
            return
        fact = substitute(fact, self._narrowed) if self._narrowed else fact
        found = narrower(fact)
        if found is not None:
            atom, new = found
            if atom in self.exprs:
                self.exprs[new] = self.exprs[atom]
            change: dict[Atom, Size] = {atom: new + 0}
            self._narrowed = {old: substitute(size, change) for old, size in self._narrowed.items()} | change
            self._facts = [substitute(each, change) for each in self._facts]
            fact = substitute(fact, change)
        self._facts = [*self._facts, fact][-_MOST_FACTS:]
        self._memo, self.written = {}, {}

    def extremum(self, kind: type[Min | Max], a: Size, b: Size) -> Size:
        if self._facts:
            if self.proves(b - a):
                return a if kind is Min else b
            if self.proves(a - b):
                return b if kind is Min else a
        return minimum(a, b) if kind is Min else maximum(a, b)

    def _size(self, expr: Expr, lane: Unknown | None, owner: Definition | None) -> Steps[Size]:
        if isinstance(expr, IntImm):
            return expr.value
        if expr not in self._memo:
            self._memo[expr] = yield super()._size(expr, lane, owner)
        return self._memo[expr]

    def _variable(self, var: Var) -> Steps[Size]:
        size: Size = yield super()._variable(var)
        return substitute(size, self._narrowed) if self._narrowed else size

    def _new_variable(self, var: Var) -> Steps[Size]:
        definition = self.definitions.of(var)
        if definition is None or definition.value is None or not var.dtype.is_integer:
            size: Size = yield super()._new_variable(var)
            if definition is None or definition.loop is None:
                for unknown in unknowns_in(size):
                    self.exprs[unknown] = var
            return size
        value: Size = yield self._size(definition.value, None, None)
        if self.is_exact(value):
            if var not in self._tainted and (isinstance(value, int) or value in self.extents.variables):
                return value
            found = self.unknown(var.name, *ends(value), divisor=divisor_of(terms_of(value)) or 1)
        else:
            found = self.unknown(var.name, var.dtype.min, var.dtype.max)
        self.exprs[found] = var
        return found + 0

    def opaque(self, expr: Expr, owner: Definition | None) -> Size:
        """An unknown spelled as `expr`; equal expressions share it as long as what they load does not change."""
        key = self._key(expr)
        known = self._steady.get(key) or self._passing.get(key)
        if known is None:
            low, high = (expr.dtype.min, expr.dtype.max) if expr.dtype.is_integer else (None, None)
            is_steady = expr not in self._loading and (expr in self.costs or not any(map(_is_loading, walk(expr))))
            known = self.unknown("a value", low, high, steady=is_steady)
            self.exprs[known] = expr
            (self._steady if is_steady else self._passing)[key] = known
        return known + 0

    def _key(self, expr: Expr, depth: int = 8) -> object:
        """A key that is equal for equal spellings over variables of equal value."""
        if isinstance(expr, IntImm):
            return expr.dtype, expr.value
        if isinstance(expr, Var | LetExpr) or depth == 0:
            return expr
        if isinstance(expr, Call) and expr.op is not Op.IF_THEN_ELSE and not expr.op.is_math:
            return expr
        if isinstance(expr, Load) and expr.buffer.volatile:
            return expr
        what: Buffer | Op | None = (
            expr.buffer if isinstance(expr, Load) else expr.op if isinstance(expr, Call) else None
        )
        children = tuple(self._key(child, depth - 1) for child in expr.children())
        return type(expr), expr.dtype, what, children

    def _is_risk(self, node: Expr) -> bool:
        """Whether a node itself may fault, or have no value."""
        if isinstance(node, Var):
            return node in self._tainted
        if isinstance(node, Load):
            return True
        if isinstance(node, Call):
            return not (node.op.is_math or node.op is Op.IF_THEN_ELSE)
        trap = trap_of(type(node), node.dtype) if isinstance(node, Binary) else None
        if trap is None or not isinstance(node, Binary):
            return False
        if isinstance(node.b, IntImm):
            return trap(node.dtype.scalar.min, node.b.value, None) is not None
        if node.dtype != i64 or isinstance(node, ShiftLeft | ShiftRight):
            return True
        size = self.size(node.b)
        is_positive = self.proves(size - 1) or is_positive_beside(size, self.size(node.a))
        return not (self.is_exact(size) and is_positive)


def _is_loading(node: Node) -> bool:
    return isinstance(node, Load | Call)
