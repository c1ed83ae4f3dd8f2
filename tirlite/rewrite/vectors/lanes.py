"""Lanes writes several iterations of a loop as statements on vectors, with one lane for each iteration.

If a condition holds for some lanes only, its statements access memory under a mask, and operations that may fault get
harmless operands in the other lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Mapping
from math import prod
from typing import TYPE_CHECKING

from tirlite.ir.checked import masked
from tirlite.ir.dot import dot
from tirlite.ir.dtype import bool_, i8, i16, i32, i64
from tirlite.ir.equal import are_equal
from tirlite.ir.expr import (
    LT,
    Add,
    Binary,
    BitAnd,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    Expr,
    FloorDiv,
    IntImm,
    LetExpr,
    Load,
    Mul,
    Not,
    Or,
    Ramp,
    Select,
    Sub,
    Unary,
    Var,
    const,
)
from tirlite.ir.faults import SHIFTS, trap_of
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.shapes import constant_shape
from tirlite.ir.stmt import Allocate, For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store, While
from tirlite.ir.trampoline import Steps, run
from tirlite.ir.walk import is_constant, is_steady, may_skip_parts, mentions, statements, walk
from tirlite.record import replace
from tirlite.rewrite.affine_exprs import folded

if TYPE_CHECKING:
    from tirlite.analysis.access import Touch

# Loads with strides up to this become as many vector loads, and shuffles.
MOST_APART = 4
# The type of a mask's comparison, by the bytes of an element.
_FLAGS = {1: i8, 2: i16, 4: i32, 8: i64}
# The most elements of a buffer that is given an element per lane.
_MOST_ELEMENTS = 16


class NotVector(Exception):
    """An expression has no vector form."""


class Lanes:
    """Writes statements for `lanes` iterations at once; `values` maps variables that differ between lanes to vectors.

    `neighbours`: lanes must access adjacent elements.
    `is_inside`: whether a load is in bounds in every iteration, whatever branches around it test.
    `uniform`: scalars with the same value in all lanes, see `uniform.py`.
    `wide`: for each buffer that an iteration allocates, the buffer with an element per lane.
    `on`: the mask of active lanes; `some`: a mask with at least one lane on, under which uniform loads are allowed.
    """

    def __init__(
        self,
        lanes: int,
        values: Mapping[Var, Expr],
        *,
        neighbours: bool = False,
        is_inside: Callable[[Load], bool] = lambda load: False,
        uniform: Container[Buffer] = (),
    ) -> None:
        self.lanes = lanes
        self.uniform = uniform
        self.values = dict(values)
        self.neighbours = neighbours
        self.is_inside = is_inside
        self.wide: dict[Buffer, Buffer] = {}
        self.begun: set[Buffer] = set()  # the buffers in `wide` that all lanes have stored to
        self.doubtful: set[Var] = set()  # values that may be uninitialized in lanes that are off
        self.on: Expr | None = None
        self.some: Expr | None = None
        # What every iteration has accessed, at indices not read from memory: all lanes may load it.
        self.accessed: list[Load | Store] = []
        self.is_certain = True
        self.is_lazy = False  # whether some lanes may not need what is computed

    def block(self, body: SeqStmt) -> SeqStmt:
        """The statements of a body for all iterations at once, one after the other. Raises NotVector."""
        return SeqStmt(tuple(self.statement(stmt) for stmt in body.stmts))

    def statement(self, stmt: Stmt) -> Stmt:
        """One statement for all iterations at once; what follows sees the vector of a let. Raises NotVector.

        An inner loop stays a loop, if all iterations run it alike, and so does a branch.
        """
        if isinstance(stmt, Allocate | Store) and stmt.buffer in self.uniform:
            return stmt
        if isinstance(stmt, IfThenElse):
            return self._branch(stmt)
        if isinstance(stmt, While):
            return self._while(stmt)
        if isinstance(stmt, For) and stmt.kind in (ForKind.SERIAL, ForKind.REDUCE, ForKind.UNROLLED):
            is_alike = self.of(stmt.start) is stmt.start and self.of(stmt.stop) is stmt.stop
            if not is_alike or self.on not in (None, self.some):
                raise NotVector
            return stmt.replaced(body=self._uncertain(stmt.body))
        if isinstance(stmt, Allocate):
            return self._widened(stmt)
        if not isinstance(stmt, Let | Store):
            raise NotVector
        if isinstance(stmt, Let):
            value = self.of(stmt.value)
            if value is stmt.value:
                return stmt
            if isinstance(value, Ramp) and value.base.dtype == i64:
                # An index: only as a ramp does it show that accesses are contiguous.
                first = Var(stmt.var.name, i64)
                self.values[stmt.var] = Ramp(first, value.stride, value.lanes)
                return Let(first, value.base, span=stmt.span)
            var = Var(stmt.var.name, value.dtype)
            self.values[stmt.var] = var
            return self._named(var, value, stmt)
        indices = self.indices(stmt.buffer, stmt.indices)
        if indices is stmt.indices:
            # All iterations write one element, and the order of lanes is not defined.
            raise NotVector
        if self.neighbours and stmt.buffer not in self.wide and not _is_dense(indices[-1], either=True):
            raise NotVector
        value, wide = self.spread(self.of(stmt.value)), self.wide.get(stmt.buffer)
        self._note(stmt)
        if wide is not None:
            if self.on is None and self.is_certain and not stmt.buffer.shape:
                self.begun.add(wide)
            # Lanes that are off keep their value by a select: a masked store would keep the buffer out of registers.
            # Lanes that are never on may get anything.
            kept = value if self.on in (None, self.some) else Select(self.on, value, Load(wide, indices))
            return stmt.replaced(buffer=wide, indices=indices, value=kept)
        if self.on is not None:
            indices = self._masked(stmt.buffer, indices)
        return stmt.replaced(indices=indices, value=value)

    def _branch(self, stmt: IfThenElse) -> Stmt:
        """A branch that all lanes take alike, or else both sides, each under its mask."""
        condition = self.of(stmt.condition)
        if condition is stmt.condition:
            then_body, else_body = self._uncertain(stmt.then_body), self._uncertain(stmt.else_body)
            return stmt.replaced(then_body=then_body, else_body=else_body)
        if any(isinstance(each, Store) and each.buffer in self.uniform for each in statements(stmt)):
            raise NotVector
        around, vector = self.on, self.spread(condition)
        holds = Var("holds", vector.dtype)
        made: list[Stmt] = [self._named(holds, vector, stmt)]
        for body, own in ((stmt.then_body, holds), (stmt.else_body, Not(holds))):
            if body.stmts:
                self.on = holds
                if own is not holds or around is not None:
                    self.on = Var("on", vector.dtype)
                    made.append(Let(self.on, self._within(around, own), span=stmt.span))
                inside = self._uncertain(body)
                if any(isinstance(node, Call) and node.op.takes_fast for node in walk(body)):
                    # Skip expensive functions if no lane needs them.
                    inside = SeqStmt((IfThenElse(Call(bool_, Op.ANY, (self.on,)), inside, SeqStmt(), span=stmt.span),))
                made.append(inside)
        self.on = around
        return SeqStmt((*made,))

    def _while(self, stmt: While) -> Stmt:
        """A loop that all lanes run alike, or that runs while the condition holds in any lane.

        Lanes in which it has failed keep their values, so it stays false there.
        """
        condition = self.of(stmt.condition)
        if condition is stmt.condition and self.on is None:
            return stmt.replaced(body=self._uncertain(stmt.body))
        around, holds = self.on, self._within(self.on, self.spread(condition))
        self.on = Var("holds", holds.dtype)
        body = SeqStmt((Let(self.on, holds, span=stmt.span), self._uncertain(stmt.body)))
        self.on = around
        return stmt.replaced(condition=Call(bool_, Op.ANY, (holds,)), body=body)

    def _named(self, var: Var, value: Expr, stmt: Stmt) -> Let:
        self._doubt(var, value)
        return Let(var, value, span=stmt.span)

    def _doubt(self, var: Var, value: Expr) -> None:
        if self._is_of(value, {*self.wide.values()} - self.begun):
            self.doubtful.add(var)

    def _is_of(self, value: Expr, buffers: Container[Buffer]) -> bool:
        """Whether a value depends on elements of these buffers, or on doubtful values."""
        return any(n in self.doubtful or (isinstance(n, Load) and n.buffer in buffers) for n in walk(value))

    def _within(self, around: Expr | None, own: Expr) -> Expr:
        """The lanes of `own` that are also on in the mask `around`; where that is off, `own` may be uninitialized."""
        if around is not None and self._is_of(own, self.wide.values()):
            return Select(around, own, self.spread(const(False, bool_)))
        return own if around is None else BitAnd(around, own)

    def _uncertain(self, body: SeqStmt) -> SeqStmt:
        """The statements of a body that some iterations may not reach."""
        was, self.is_certain = self.is_certain, False
        made = self.block(body)
        self.is_certain = was
        return made

    def _note(self, node: Load | Store) -> None:
        """Records what every iteration accesses."""
        if self.is_certain and self.on is None and not _is_from_memory(node):
            self.accessed.append(node)

    def is_there(self, load: Load) -> bool:
        """Whether lanes that are off may load it too: it is in bounds for them."""
        if load.buffer.volatile:
            return False
        known = not _is_from_memory(load) and any(is_at(load, each) for each in self.accessed)
        return known or self.is_inside(load)

    def _masked(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The indices of an access by the active lanes. Raises NotVector if there is no masked form."""
        if self.on is None or buffer.volatile or buffer.dtype.lanes > 1 or not indices or indices[-1].dtype.lanes == 1:
            raise NotVector
        if self.neighbours and not _is_dense(indices[-1]):
            raise NotVector
        return (*indices[:-1], masked(indices[-1], self.on))

    def _widened(self, stmt: Allocate) -> Stmt:
        """The allocation with an element for each lane."""
        buffer = stmt.buffer
        shape = constant_shape(buffer)
        if shape is None or prod(shape) > _MOST_ELEMENTS or buffer.dtype.lanes > 1 or buffer.volatile:
            raise NotVector
        self.wide[buffer] = replace(buffer, shape=(*buffer.shape, const(self.lanes, i64)))
        return stmt.replaced(buffer=self.wide[buffer])

    def moved(self, load: Load) -> Expr | None:
        """The vector that replaces a load; None for a load that stays."""
        return None

    def of(self, expr: Expr) -> Expr:
        """The vector of the values of `expr`; `expr` itself if it is uniform. Raises NotVector."""
        return run(self._of(expr))

    def spread(self, expr: Expr) -> Expr:
        """The expression as a vector: itself, or a broadcast."""
        return expr if expr.dtype.lanes > 1 else Broadcast(expr, self.lanes)

    def differs(self, expr: Expr) -> bool:
        """Whether an expression mentions a name that differs between lanes."""
        return mentions(expr, self.values)

    def indices(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The indices of an access. Raises NotVector if more than the last differs between lanes."""
        return run(self._indices(buffer, indices))

    def reaches(self, index: Expr) -> bool:
        """Whether lanes load adjacent elements, in either order, or few elements apart."""
        stride = _stride(index) if isinstance(index, Ramp) else None
        return stride is not None and (stride == -1 or 1 <= stride <= MOST_APART)

    def _indices(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Steps[tuple[Expr, ...]]:
        found: list[Expr] = []
        for index in indices:
            vector: Expr = yield self._of(index)
            found.append(vector)
        if buffer in self.wide:
            if any(index.dtype.lanes != 1 for index in found):
                raise NotVector
            return (*found, Ramp.unit(0, self.lanes))
        if _are_same(found, indices):
            return indices
        if self.neighbours and found[-1].dtype.lanes > 1 and not self.reaches(found[-1]):
            raise NotVector
        was_scalar = buffer.dtype.lanes == 1 and all(index.dtype.lanes == 1 for index in indices)
        if not was_scalar or any(index.dtype.lanes != 1 for index in found[:-1]):
            raise NotVector
        return tuple(found)

    def _of(self, expr: Expr) -> Steps[Expr]:
        if isinstance(expr, Var):
            return self.values.get(expr, expr)
        if isinstance(expr, Load):
            if expr.buffer in self.uniform:
                return expr
            moved = self.moved(expr)
            if moved is not None:
                return moved
            indices: tuple[Expr, ...] = yield self._indices(expr.buffer, expr.indices)
            if expr.buffer in self.wide:
                return Load(self.wide[expr.buffer], indices)
            self._note(expr)
            is_asked = self.on is self.some and indices is expr.indices and not expr.buffer.volatile
            if self.on is not None and not is_asked and not self.is_there(expr):
                return Load(expr.buffer, self._masked(expr.buffer, indices))
            return expr if indices is expr.indices else Load(expr.buffer, indices)
        if may_skip_parts(expr):
            chosen: Expr = yield self._lazy(expr)
            return chosen
        if isinstance(expr, Call) and expr.op is Op.DOT:
            summed: Expr = yield self._dot(expr)
            return summed
        if isinstance(expr, LetExpr):
            with_name: Expr = yield self._let(expr)
            return with_name
        children: list[Expr] = []
        for child in expr.children():
            vector: Expr = yield self._of(child)
            children.append(vector)
        is_same = _are_same(children, expr.children()) and (self.on is None or not may_fault(expr))
        return expr if is_same else self._combined(expr, children)

    def _let(self, expr: LetExpr) -> Steps[Expr]:
        """A let expression, like a let statement."""
        value: Expr = yield self._of(expr.value)
        var = expr.var
        if value is not expr.value:
            var = Var(var.name, value.dtype)
            self.values[expr.var] = var
            self._doubt(var, value)
        body: Expr = yield self._of(expr.body)
        return expr if value is expr.value and body is expr.body else LetExpr(var, value, body)

    def _dot(self, expr: Call) -> Steps[Expr]:
        """A dot product per lane: of adjacent groups, one of which may be common to all lanes."""
        total, a, b = expr.args
        if total.dtype.lanes != 1 or self.on is not None:
            raise NotVector
        vector: Expr = yield self._of(total)
        first: Expr = yield self._group(a)
        second: Expr = yield self._group(b)
        if _are_same((vector, first, second), expr.args):
            return expr
        if second is b:  # the common group must be the first operand
            if first is a:
                raise NotVector
            first, second = second, first
        return dot(self.spread(vector), first, second)

    def _group(self, expr: Expr) -> Steps[Expr]:
        """The groups of all lanes, adjacent in memory; `expr` itself if one is common to all. Raises NotVector."""
        last = expr.indices[-1] if isinstance(expr, Load) and expr.indices else None
        if not isinstance(expr, Load) or not isinstance(last, Ramp):
            if self.differs(expr):
                raise NotVector
            return expr
        found: list[Expr] = []
        for index in (*expr.indices[:-1], last.base):
            vector: Expr = yield self._of(index)
            found.append(vector)
        *row, base = found
        if _are_same(found, (*expr.indices[:-1], last.base)):
            return expr
        if not isinstance(base, Ramp) or _stride(base) != last.lanes or _stride(last) != 1:
            raise NotVector
        if any(index.dtype.lanes > 1 for index in row):
            raise NotVector
        return Load(expr.buffer, (*row, Ramp(base.base, last.stride, last.lanes * self.lanes)))

    def _lazy(self, expr: Expr) -> Steps[Expr]:
        """`and`, `or` or a conditional expression: operands that some lanes do not need are computed under a mask."""
        first, *sides = expr.children()
        test: Expr = yield self._of(first)
        vector, around, was = self.spread(test), self.on, self.is_certain
        is_either, was_lazy = isinstance(expr, Call), self.is_lazy
        self.is_certain, self.is_lazy = False, True
        values: list[Expr] = []
        for side, wanted in zip(sides, (Not(vector) if isinstance(expr, Or) else vector, Not(vector)), strict=False):
            value: Expr = side
            if around is None and test is first:
                # All lanes need it or none: it stays a branch, unless the right side of `and` or `or` differs between
                # lanes.
                value = yield self._of(side)
            if around is not None or test is not first or (value is not side and not is_either):
                self.on = self._within(around, wanted)
                value = yield self._of(side)
                self.on = around
            values.append(value)
        self.is_certain, self.is_lazy = was, was_lazy
        if test is first and _are_same(values, tuple(sides)):
            return expr
        if is_either and test is first and around is None:
            return Call(expr.dtype.with_lanes(self.lanes), Op.IF_THEN_ELSE, (test, *map(self.spread, values)))
        if not is_either:
            decided = const(isinstance(expr, Or), bool_)
            values = [decided, *values] if isinstance(expr, Or) else [*values, decided]
        return Select(vector, *map(self.spread, values))

    def _combined(self, expr: Expr, children: list[Expr]) -> Expr:
        if expr.dtype.lanes != 1:
            raise NotVector
        if isinstance(expr, Add | Sub | Mul) and (moved := _moved_ramp(expr, *children)) is not None:
            return moved
        if isinstance(expr, Binary) and self.on is not None and may_fault(expr):
            a, b = map(self.spread, children)
            harmless = self.spread(const(int(type(expr) not in SHIFTS), expr.dtype))
            return type(expr)(a, Select(self.on, b, harmless))
        if isinstance(expr, Binary | Compare):
            return type(expr)(*map(self.spread, children))
        if isinstance(expr, Unary):
            return type(expr)(self.spread(children[0]))
        if isinstance(expr, Cast):
            return Cast(expr.dtype.with_lanes(self.lanes), self.spread(children[0]))
        if isinstance(expr, Select):
            condition, if_true, if_false = children
            return Select(condition, self.spread(if_true), self.spread(if_false))
        if isinstance(expr, Call) and (expr.op.is_math or expr.op is Op.CHECKED):
            return Call(expr.dtype.with_lanes(self.lanes), expr.op, tuple(map(self.spread, children)))
        raise NotVector


def _are_same(new: list[Expr] | tuple[Expr, ...], old: tuple[Node, ...]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))


def may_fault(expr: Expr) -> bool:
    """Whether an integer operation traps for some operands, which lanes that are off may hold."""
    if not isinstance(expr, Binary) or trap_of(type(expr), expr.dtype) is None:
        return False
    divisor = expr.b.value if isinstance(expr.b, IntImm) else None
    if divisor is None or type(expr) in SHIFTS:
        return divisor is None or not 0 <= divisor < expr.dtype.bits
    return divisor in (0, -1)


def _is_from_memory(node: Load | Store) -> bool:
    """Whether an index of an access is read from memory, so that it may change."""
    return not is_steady(*node.indices)


def is_at(load: Load | Store, other: Load | Store) -> bool:
    """Whether two accesses have equal indices."""
    return load.buffer is other.buffer and are_equal(load.indices, other.indices)


def is_same_element(store: Store, touch: Touch) -> bool:
    """Whether an access touches the element that a store writes: equal indices, which are not read from memory."""
    node = touch.node
    return isinstance(node, Load | Store) and not _is_from_memory(store) and is_at(store, node)


def _is_dense(index: Expr, *, either: bool = False) -> bool:
    """Whether lanes are adjacent, in their order or in the reverse order."""
    return isinstance(index, Ramp) and _stride(index) in ((1, -1) if either else (1,))


def _stride(ramp: Ramp) -> int | None:
    return ramp.stride.value if isinstance(ramp.stride, IntImm) else None


def _moved_ramp(expr: Add | Sub | Mul, a: Expr, b: Expr) -> Expr | None:
    """A ramp plus, minus or times a scalar, as a ramp, so that accesses by it are seen to be contiguous."""
    if expr.dtype != i64:
        return None
    if isinstance(a, Ramp) and b.dtype.lanes == 1:
        stride = Mul(a.stride, b) if isinstance(expr, Mul) else a.stride
        return Ramp(folded(type(expr)(a.base, b)), folded(stride), a.lanes)
    if isinstance(b, Ramp) and a.dtype.lanes == 1:
        strides = {Add: b.stride, Sub: Mul(b.stride, const(-1, i64)), Mul: Mul(a, b.stride)}
        return Ramp(folded(type(expr)(a, b.base)), folded(strides[type(expr)]), b.lanes)
    return None


def held(value: Expr, name: str, loop: For) -> Generator[Stmt, None, Expr]:
    """Yields the Let before `loop` that holds a value, and returns its name; constants and names need no Let."""
    if isinstance(value, IntImm | Var):
        return value
    var = Var(name, value.dtype)
    yield Let(var, value, span=loop.span)
    return var


def first_lanes(left: Expr, lanes: int, width: int) -> Expr:
    """The mask of the first `left` lanes, computed in integers as wide as elements of `width` bytes if possible.

    Masks and values then take equally many registers.
    """
    kind = next(each for size, each in _FLAGS.items() if size >= width and each.max >= lanes)
    least = left if kind == i64 else folded(Cast(kind, left))
    return LT(Ramp.unit(const(0, kind), lanes), Broadcast(least, lanes))


def last_whole(loop: For, count: Expr, lanes: int) -> Expr:
    """The end of the last whole vector of `lanes` iterations, for a loop with `count` iterations."""
    if isinstance(count, IntImm):
        return folded(Add(loop.start, const(count.value // lanes * lanes, i64)))
    covered = Mul(FloorDiv(count, const(lanes, i64)), const(lanes, i64))
    return covered if is_constant(loop.start, 0) else Add(loop.start, covered)
