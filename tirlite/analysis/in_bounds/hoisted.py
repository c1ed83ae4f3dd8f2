"""Finds accesses that a condition before an innermost loop decides: only that loop changes their index."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import islice

from tirlite.analysis.in_bounds.bounds import Bounds
from tirlite.analysis.in_bounds.guarded import Access
from tirlite.analysis.integers.array_bounds import is_exact_size
from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.ir.dtype import i64
from tirlite.ir.expr import (
    LE,
    LT,
    Add,
    And,
    Cast,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    LetExpr,
    Load,
    Max,
    Min,
    Mul,
    Neg,
    Sub,
    Var,
    const,
)
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.stmt import Allocate, For, ForKind, Let, Stmt, Store, View, While
from tirlite.ir.walk import aliased_in, allocated_in, is_constant, statements, stored_in, walk
from tirlite.record import cached_method, record
from tirlite.sizes import Size
from tirlite.sizes.unknown import ends

# What can be computed in front of a loop as well as in it: nothing here faults or takes long.
_PLAIN: tuple[type[Node], ...] = (Var, IntImm, Add, Sub, Mul, Neg, Min, Max, Cast, Load)
_MOST_NODES = 32


@record(eq=False)
class Hoisted:
    """A loop, and a condition in front of it under which an access in it is in bounds along an axis."""

    loop: For
    condition: Expr


@record(eq=False)
class _Term:
    """A term of an index, which may be subtracted, and may be the same in all iterations of a loop."""

    expr: Expr
    is_added: bool
    stays: bool


@record(eq=False)
class _Inside:
    """What a loop defines and stores."""

    variables: dict[Var, Expr | None]
    buffers: set[object]


class Hoisting:
    """Conditions in front of the loops of a function."""

    def __init__(self, func: PrimFunc, space: IndexSpace) -> None:
        self.space = space
        self._bounds = Bounds(space)
        stored = stored_in(func.body)
        self._aliased = aliased_in(func.body)
        self._unwritten = {*func.arrays} - stored - self._aliased
        self._local = allocated_in(func.body) - self._aliased

    def condition(self, access: Access, axis: int) -> Hoisted | None:
        """What decides about an access along one axis, if its innermost loop has no other loop in it."""
        node = access.node
        if isinstance(node, View) or not access.around.loops or node.indices[axis].dtype != i64:
            return None
        loop = access.around.loops[-1]
        inside = self._of(loop)
        extent = self.space.extents.size(node.buffer.shape[axis])
        if inside is None or extent is None:
            return None
        index = node.indices[axis]
        if index is loop.var:
            return self._along(loop, extent, inside)
        terms = self._terms(index, inside)
        has_sizes = all(self.space.extents.size(end) is not None for end in (loop.start, loop.stop))
        if not has_sizes and (turning := self._turning(terms, loop, extent, inside)) is not None:
            return turning
        if (counted := self._counted(access, index, loop, extent)) is not None:
            return counted
        return self._shifted(terms, loop, extent) or self._turning(terms, loop, extent, inside)

    def _along(self, loop: For, extent: Size, inside: _Inside) -> Hoisted | None:
        """The same for an index that is the variable of the loop: its own ends decide, whatever they are."""
        ends_stay = self._stays(loop.start, inside) and self._stays(loop.stop, inside)
        if not ends_stay or not is_exact_size(extent, self.space.extents.arrays):
            return None
        length = self.space.extents.expr(extent)
        if loop.step < 0:
            return Hoisted(loop, And(LE(const(-1, i64), loop.stop), LT(loop.start, length)))
        within: Expr = LE(loop.stop, length)
        starts_inside = isinstance(loop.start, IntImm) and loop.start.value >= 0
        return Hoisted(loop, within if starts_inside else And(LE(const(0, i64), loop.start), within))

    def _shifted(self, terms: Sequence[_Term], loop: For, extent: Size) -> Hoisted | None:
        """The same for a sum of what stays, which may be any number, and of what has ends."""
        bases: list[Expr] = []
        moved: Size = 0
        for term in terms:
            if term.stays and not isinstance(term.expr, IntImm):
                bases.append(term.expr if term.is_added else Neg(term.expr))
                continue
            size = self.space.size(term.expr)
            if not self.space.is_exact(size):
                return None
            moved = moved + size if term.is_added else moved - size
        low, high = ends(moved)
        if not bases or low is None or high is None:
            return None
        least, most = -low, extent - high
        if not all(is_exact_size(each, self.space.extents.arrays) for each in (least, most)):
            return None
        base = reduce(Add, bases)
        expr = self.space.extents.expr
        return Hoisted(loop, And(LE(expr(least), base), LT(base, expr(most))))

    def _turning(self, terms: Sequence[_Term], loop: For, extent: Size, inside: _Inside) -> Hoisted | None:
        """The same for the variable and what stays, whatever the ends of the loop are: `i + j - k[i]`.

        Its values at both ends decide. Modulo 2**64 the others lie between them, if these are in order.
        """
        ends_stay = self._stays(loop.start, inside) and self._stays(loop.stop, inside)
        if not ends_stay or not is_exact_size(extent, self.space.extents.arrays):
            return None
        turning = [term for term in terms if not term.stays]
        if len(turning) != 1 or turning[0].expr is not loop.var:
            return None
        forward = turning[0].is_added
        one = const(1, i64)
        near, far = loop.start, Sub(loop.stop, one) if loop.step > 0 else Add(loop.stop, one)
        low, high = (near, far) if forward is (loop.step > 0) else (far, near)
        least, most = (_sum_at(terms, end) for end in (low, high))
        length = self.space.extents.expr(extent)
        return Hoisted(loop, And(And(LE(const(0, i64), least), LE(least, most)), LT(most, length)))

    def _counted(self, access: Access, index: Expr, loop: For, extent: Size) -> Hoisted | None:
        """The same for a local number that each iteration adds 1 to, at most, once it has been the index.

        What it is in front of the loop decides, and how often that runs.
        """
        if not isinstance(index, Load) or index.indices or index.buffer not in self._local or loop.step != 1:
            return None
        changes = [
            stmt for stmt in statements(loop.body) if isinstance(stmt, Store | Allocate) and stmt.buffer is index.buffer
        ]
        if len(changes) != 1 or not _counts_up(changes[0]) or not _comes_before(loop, access.stmt, changes[0]):
            return None
        is_plain = self._is_plain(loop.start) and self._is_plain(loop.stop)
        if not is_plain or not is_exact_size(extent, self.space.extents.arrays):
            return None
        none, length, start = const(0, i64), self.space.extents.expr(extent), loop.start
        begins = And(LE(none, index), LE(index, length))
        # Nothing wraps around, since all numbers that are subtracted lie between 0 and the length.
        count = loop.stop
        if not isinstance(start, IntImm) or start.value != 0:
            begins, count = And(LE(none, start), begins), Sub(Max(loop.stop, start), start)
        return Hoisted(loop, And(begins, LE(count, Sub(length, index))))

    @cached_method
    def _of(self, loop: For) -> _Inside | None:
        """None where a condition in front of a loop is not worth its code, or cannot stand there."""
        found = _Inside({loop.var: None}, set())
        found.variables.update((each.var, each.value) for each in walk(loop.body) if isinstance(each, LetExpr))
        for stmt in statements(loop.body):
            if isinstance(stmt, Let):
                found.variables[stmt.var] = stmt.value
            elif isinstance(stmt, Store | Allocate | View):
                found.buffers.add(stmt.buffer)
        is_innermost = not any(isinstance(stmt, For | While) for stmt in statements(loop.body))
        return found if is_innermost and loop.kind is not ForKind.THREAD else None

    def _stays(self, expr: Expr, inside: _Inside) -> bool:
        """Whether an expression can stand in front of a loop, and is there what it is in each iteration."""
        for number, node in enumerate(walk(expr)):
            if number > _MOST_NODES or not (isinstance(node, _PLAIN) or _divides(node)):
                return False
            if isinstance(node, Var) and node in inside.variables:
                return False
            if isinstance(node, Load) and (node.buffer.volatile or node.buffer in inside.buffers):
                return False
            if isinstance(node, Load) and (
                node.buffer in self._aliased or (node.indices and not self._is_steady(node))
            ):
                return False
        return True

    def _is_plain(self, end: Expr) -> bool:
        """Whether a bound of a loop can be computed again before it."""
        nodes = [*islice(walk(end), _MOST_NODES + 1)]
        plain = all(isinstance(node, _PLAIN) or _divides(node) for node in nodes)
        loads = [node for node in nodes if isinstance(node, Load)]
        return plain and len(nodes) <= _MOST_NODES and all(map(self._bounds.is_inside, loads))

    def _is_steady(self, load: Load) -> bool:
        """Whether an element of a parameter that nothing stores to is there, whatever is tested around it."""
        return load.buffer in self._unwritten and self._bounds.is_inside(load)

    def _terms(self, index: Expr, inside: _Inside) -> list[_Term]:
        """The terms that an index is the sum of; variables of a loop stand for their values."""
        terms: list[_Term] = []
        todo = [(index, True)]
        while todo:
            expr, is_added = todo.pop()
            if (stays := self._stays(expr, inside)) or not isinstance(expr, Add | Sub | Var):
                terms.append(_Term(expr, is_added=is_added, stays=stays))
            elif isinstance(expr, Add | Sub):
                todo += [(expr.b, is_added is isinstance(expr, Add)), (expr.a, is_added)]
            elif (value := inside.variables.get(expr)) is not None and expr.dtype == i64:
                todo.append((value, is_added))
            else:
                terms.append(_Term(expr, is_added=is_added, stays=False))
        return terms


def _sum_at(terms: Sequence[_Term], end: Expr) -> Expr:
    """The sum of terms in the iteration `end` of their loop."""
    total: Expr | None = None
    for term in terms:
        value = term.expr if term.stays else end
        if total is None:
            total = value if term.is_added else Neg(value)
        else:
            total = Add(total, value) if term.is_added else Sub(total, value)
    assert total is not None
    return total


def _divides(node: Node) -> bool:
    """Whether it is a division that always has a value."""
    return isinstance(node, FloorDiv | FloorMod) and isinstance(node.b, IntImm) and node.b.value > 0


def _counts_up(store: Stmt) -> bool:
    """Whether a statement adds 1 to a local number."""
    value = store.value if isinstance(store, Store) else None
    if not isinstance(store, Store) or not isinstance(value, Add) or store.buffer.volatile:
        return False
    old, by = value.a, value.b
    return isinstance(old, Load) and old.buffer is store.buffer and is_constant(by, 1)


def _comes_before(loop: For, stmt: Stmt, other: Stmt) -> bool:
    """Whether a statement of an innermost loop stands before another one."""
    order = {each: place for place, each in enumerate(statements(loop.body))}
    return stmt in order and order[stmt] < order[other]
