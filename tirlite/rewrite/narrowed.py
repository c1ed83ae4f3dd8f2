"""Narrows integer arithmetic: loops that compute with small integers in 32 or 64 bits use as few as values need."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from math import prod
from typing import NamedTuple

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.patterns import is_small, is_wide, widens_integers
from tirlite.ir.dtype import DType, f32, i16, u16
from tirlite.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    BitAnd,
    BitOr,
    BitXor,
    Buffer,
    BufferRef,
    Call,
    Cast,
    Compare,
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
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
    TruncDiv,
    TruncMod,
    Var,
    const,
)
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.rewrite import Rule, rewrite
from tirlite.ir.stmt import Allocate, For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store, nested
from tirlite.ir.walk import chain_from, composites, statements, statements_of, walk
from tirlite.record import replace
from tirlite.rewrite.normalize import exchanged
from tirlite.rewrite.vectors.local_elements import with_local_elements
from tirlite.rewrite.vectors.taps import count_of

_SUMS = (Add, Sub, Mul)
_EXTREMES = (Min, Max)
_QUOTIENTS = (FloorDiv, FloorMod)
_BY_CONSTANTS = (ShiftRight, BitAnd)
_COMPARISONS = (EQ, NE, LT, LE, GT, GE)
_OTHERS = (BitOr, BitXor, ShiftLeft, TruncDiv, TruncMod, Neg, Call, Select)
_COMPUTING = (*_SUMS, *_EXTREMES, *_QUOTIENTS, *_BY_CONSTANTS, *_COMPARISONS, *_OTHERS)
_STATEMENTS = (SeqStmt, For, Store, Let, Allocate, IfThenElse)
# Loops nested deeper stay as they are.
_DEEPEST = 8
_LOOPS = (ForKind.SERIAL, ForKind.PARALLEL, ForKind.REDUCE, ForKind.UNROLLED)


class _Narrow(NamedTuple):
    """A value of up to 16 bits, or a constant, that equals a wider integer, and its bounds."""

    value: Expr
    low: int
    high: int

    def fits(self, dtype: DType) -> bool:
        return dtype.min <= self.low and self.high <= dtype.max

    def of(self, dtype: DType) -> Expr:
        """The value in a 16-bit type, modulo 2**16 if that does not contain it."""
        if isinstance(self.value, IntImm):
            return const((self.value.value - dtype.min) % (1 << 16) + dtype.min, dtype)
        return self.value if self.value.dtype == dtype else Cast(dtype, self.value)


def rewritten(facts: Facts) -> PrimFunc:
    """The function with loops computing in 16 bits, see `NarrowIntegers`."""
    made: dict[For, tuple[Stmt, ...]] = {}
    work = [(facts.func.body, 0)]
    while work:
        body, depth = work.pop()
        for stmt in composites(body):
            if isinstance(stmt, For) and not widens_integers(stmt.body):
                continue
            if isinstance(stmt, For) and (narrow := narrowed(stmt) or _narrowed_apart(stmt, facts)) is not None:
                made[stmt] = (narrow,)
            elif depth < _DEEPEST:
                work += [(inside, depth + isinstance(stmt, For)) for inside in stmt.bodies]
    return exchanged(facts.func, made) if made else facts.func


def _narrowed_apart(loop: For, facts: Facts) -> For | None:
    """`narrowed` for a nest that accumulates in an array, after moving the sum to a scalar."""
    chain = chain_from(loop)
    inner, touches = chain[-1], facts.touches_in.get(chain[-1], {})
    if not isinstance(inner.body.stmts[0], Store) or not all(isinstance(each, For) for each in inner.body.stmts[1:]):
        return None
    body = with_local_elements(inner, touches)
    (apart,) = nested(chain, *body.stmts).stmts
    assert isinstance(apart, For)
    return narrowed(apart) if body is not inner.body else None


def narrowed(loop: For) -> For | None:
    """The loop with all its computations on data in 16 bits; None if that cannot be, or nothing is computed."""
    if not all(isinstance(stmt, _STATEMENTS) for stmt in statements(loop)) or not all(
        stmt.kind in _LOOPS for stmt in statements_of(loop, For)
    ):
        return None
    if any(isinstance(e, LetExpr | BufferRef) or _looks_up(e) for e in walk(loop)):
        return None
    values = _Values({node for stmt in statements_of(loop, Allocate) for node in walk(*stmt.buffer.shape)})
    body = values.applied(loop.body)
    scalars = dict(_small_scalars(body, values))
    if scalars:
        values.scalars = scalars
        body = values.applied(body)
    # A conversion to float needs 32 bits: widening for it costs as much as two narrow operations save.
    pays = values.count > 2 * values.floats
    return None if values.is_refused or not pays or _has_wide_data(body) else loop.replaced(body=body)


def _looks_up(node: Node) -> bool:
    """Whether a node has an index computed from data."""
    indices = node.indices if isinstance(node, Load | Store) else ()
    return any(isinstance(each, Load | Call) for each in walk(*indices))


class _Values:
    """Rewrites wide integers, bottom-up, as casts of narrow ones; names in `shapes` stay."""

    def __init__(self, shapes: Container[Node]) -> None:
        self.shapes = shapes
        self.ends: dict[Expr, tuple[int, int]] = {}
        self.variables: dict[Var, Expr] = {}
        self.scalars: Mapping[Buffer, tuple[Buffer, tuple[int, int]]] = {}
        self.count = 0
        self.floats = 0
        self.is_refused = False
        self.rules: dict[type[Node], Rule] = {
            **dict.fromkeys(_SUMS, self.sum),
            **dict.fromkeys(_EXTREMES, self.extreme),
            **dict.fromkeys(_QUOTIENTS, self.quotient),
            **dict.fromkeys(_BY_CONSTANTS, self.by_constant),
            **dict.fromkeys(_COMPARISONS, self.comparison),
            Neg: self.negative,
            Call: self.call,
            Select: self.chosen,
            Cast: self.cast,
            Var: self.variable,
            Let: self.let,
            Load: self.load,
            Store: self.store,
            Allocate: self.allocate,
        }

    def applied(self, body: SeqStmt) -> SeqStmt:
        return rewrite(body, self.rules)

    def part(self, expr: Expr) -> _Narrow | None:
        if isinstance(expr, IntImm):
            part = _Narrow(expr, expr.value, expr.value)
            return part if part.fits(i16) or part.fits(u16) else None
        if not isinstance(expr, Cast) or not is_wide(expr.dtype) or not is_small(expr.value.dtype):
            return None
        own = expr.value.dtype
        low, high = self.ends.get(expr.value, (own.min, own.max))
        # A negative value is another number in an unsigned wide type.
        return _Narrow(expr.value, low, high) if low >= expr.dtype.min else None

    def parts(self, *exprs: Expr) -> list[_Narrow] | None:
        """The narrow parts of all of these, if all are narrow and not all constant."""
        found = [part for expr in exprs if (part := self.part(expr)) is not None]
        is_computed = any(not isinstance(part.value, IntImm) for part in found)
        return found if len(found) == len(exprs) and is_computed else None

    def alike(self, wide: DType, *exprs: Expr) -> tuple[list[_Narrow], DType] | None:
        """The narrow parts of wide expressions, and the type that holds the values of all, if there is one."""
        parts = self.parts(*exprs) if is_wide(wide) else None
        dtype = _type_for(*parts) if parts else None
        return (parts, dtype) if parts and dtype is not None else None

    def made(self, wide: Expr, narrow: Expr, low: int, high: int) -> Expr:
        self.ends[narrow] = low, high
        self.count += 1
        return Cast(wide.dtype, narrow)

    def sum(self, expr: Add | Sub | Mul) -> Expr:
        parts = self.parts(expr.a, expr.b) if is_wide(expr.dtype) else None
        if parts is None:
            return expr
        a, b = parts
        low, high = _ends(expr, a, b)
        dtype = _type_of(low, high) if low >= expr.dtype.min else None
        return expr if dtype is None else self.made(expr, type(expr)(a.of(dtype), b.of(dtype)), low, high)

    def extreme(self, expr: Min | Max) -> Expr:
        if (found := self.alike(expr.dtype, expr.a, expr.b)) is None:
            return expr
        (a, b), dtype = found
        take = min if isinstance(expr, Min) else max
        narrow = type(expr)(a.of(dtype), b.of(dtype))
        return self.made(expr, narrow, take(a.low, b.low), take(a.high, b.high))

    def quotient(self, expr: FloorDiv | FloorMod) -> Expr:
        if (found := self.alike(expr.dtype, expr.a, expr.b)) is None or found[0][1].low < 0:
            return expr
        (a, by), dtype = found
        # Division by 0 gives 0 for both.
        low, high = (min(a.low, 0), max(a.high, 0)) if isinstance(expr, FloorDiv) else (0, max(by.high - 1, 0))
        if isinstance(expr, FloorDiv) and by.low > 0:
            low, high = min(a.low // by.low, a.low // by.high), max(a.high // by.low, a.high // by.high)
        return self.made(expr, type(expr)(a.of(dtype), by.of(dtype)), low, high)

    def by_constant(self, expr: ShiftRight | BitAnd) -> Expr:
        if (found := self.alike(expr.dtype, expr.a, expr.b)) is None:
            return expr
        (a, by), dtype = found
        if not isinstance(by.value, IntImm) or (number := by.value.value) < 0:
            return expr
        if isinstance(expr, BitAnd):
            low, high = 0, number
        elif number > 15:
            return expr
        else:
            low, high = a.low >> number, a.high >> number
        return self.made(expr, type(expr)(a.of(dtype), by.of(dtype)), low, high)

    def comparison(self, expr: Compare) -> Expr:
        if (found := self.alike(expr.a.dtype, expr.a, expr.b)) is None:
            return expr
        (a, b), dtype = found
        self.count += 1
        return type(expr)(a.of(dtype), b.of(dtype))

    def negative(self, expr: Neg) -> Expr:
        part = self.part(expr.a) if is_wide(expr.dtype) and expr.dtype.is_signed else None
        if part is None or not part.fits(i16) or part.low == i16.min or isinstance(part.value, IntImm):
            return expr
        return self.made(expr, Neg(part.of(i16)), -part.high, -part.low)

    def call(self, expr: Call) -> Expr:
        if not is_wide(expr.dtype):
            return expr
        if expr.op is Op.IF_THEN_ELSE and (found := self.alike(expr.dtype, *expr.args[1:])) is not None:
            (a, b), dtype = found
            narrow = Call(dtype, expr.op, (expr.args[0], a.of(dtype), b.of(dtype)))
            return self.made(expr, narrow, min(a.low, b.low), max(a.high, b.high))
        if expr.op is not Op.ABS or (part := self.part(expr.args[0])) is None or isinstance(part.value, IntImm):
            return expr
        if not part.fits(i16) or part.low == i16.min:
            return expr
        low = 0 if part.low <= 0 <= part.high else min(abs(part.low), abs(part.high))
        return self.made(expr, Call(i16, Op.ABS, (part.of(i16),)), low, max(abs(part.low), abs(part.high)))

    def chosen(self, expr: Select) -> Expr:
        if (found := self.alike(expr.dtype, expr.if_true, expr.if_false)) is None:
            return expr
        (a, b), dtype = found
        narrow = Select(expr.condition, a.of(dtype), b.of(dtype))
        return self.made(expr, narrow, min(a.low, b.low), max(a.high, b.high))

    def cast(self, expr: Cast) -> Expr:
        """Replaces a cast of a widened value by a cast of the narrow one."""
        part = self.part(expr.value) if is_wide(expr.value.dtype) and expr.dtype.lanes == 1 else None
        if part is None or isinstance(part.value, IntImm) or not expr.dtype.is_number:
            return expr
        self.floats += expr.dtype.is_float and expr.dtype.bits >= f32.bits and part.value in self.ends
        return part.value if part.value.dtype == expr.dtype else Cast(expr.dtype, part.value)

    def let(self, stmt: Let) -> Stmt:
        part = self.part(stmt.value)
        if part is None or isinstance(part.value, IntImm) or stmt.var in self.shapes:
            return stmt
        var = Var(stmt.var.name, part.value.dtype)
        self.ends[var] = part.low, part.high
        self.variables[stmt.var] = Cast(stmt.var.dtype, var)
        return stmt.replaced(var=var, value=part.value)

    def variable(self, var: Var) -> Expr:
        return self.variables.get(var, var)

    def load(self, expr: Load) -> Expr:
        if expr.buffer not in self.scalars:
            return expr
        buffer, (low, high) = self.scalars[expr.buffer]
        return self.made(expr, Load(buffer, expr.indices), low, high)

    def store(self, stmt: Store) -> Stmt:
        if stmt.buffer not in self.scalars:
            return stmt
        buffer, value = self.scalars[stmt.buffer][0], stmt.value
        part = self.part(value)
        if part is not None:
            return stmt.replaced(buffer=buffer, value=part.of(buffer.dtype))
        # The scalar's bounds include every partial sum.
        parts = self.parts(value.a, value.b) if isinstance(value, Add | Sub) else None
        if parts is None:
            self.is_refused = True
            return stmt
        assert isinstance(value, Add | Sub)
        return stmt.replaced(buffer=buffer, value=type(value)(*(each.of(buffer.dtype) for each in parts)))

    def allocate(self, stmt: Allocate) -> Stmt:
        return stmt.replaced(buffer=self.scalars[stmt.buffer][0]) if stmt.buffer in self.scalars else stmt


def _ends(expr: Add | Sub | Mul, a: _Narrow, b: _Narrow) -> tuple[int, int]:
    if isinstance(expr, Add):
        return a.low + b.low, a.high + b.high
    if isinstance(expr, Sub):
        return a.low - b.high, a.high - b.low
    corners = [first * second for first in (a.low, a.high) for second in (b.low, b.high)]
    return min(corners), max(corners)


def _type_of(low: int, high: int) -> DType | None:
    """The 16-bit type that holds all values between two numbers, if any."""
    return next((dtype for dtype in (i16, u16) if dtype.min <= low and high <= dtype.max), None)


def _type_for(*parts: _Narrow) -> DType | None:
    """The 16-bit type that holds all of these values, if any."""
    return _type_of(min(part.low for part in parts), max(part.high for part in parts))


def _small_scalars(body: SeqStmt, values: _Values) -> Iterator[tuple[Buffer, tuple[Buffer, tuple[int, int]]]]:
    """The wide local scalars of a body whose values always fit into 16 bits, each as a narrow one with its bounds."""
    loops: dict[Buffer, tuple[For, ...]] = {}
    stores: dict[Buffer, list[tuple[Store, tuple[For, ...]]]] = {}
    work: list[tuple[Stmt, tuple[For, ...]]] = [(body, ())]
    while work:
        stmt, around = work.pop()
        if isinstance(stmt, Allocate) and is_wide(stmt.buffer.dtype) and not stmt.buffer.shape:
            if stmt.buffer.scope == "local" and not stmt.buffer.volatile:
                loops[stmt.buffer] = around
        elif isinstance(stmt, Store):
            stores.setdefault(stmt.buffer, []).append((stmt, around))
        inner = (*around, stmt) if isinstance(stmt, For) else around
        work += [(child, inner) for child in stmt.children() if isinstance(child, Stmt)]
    for buffer, outer in loops.items():
        ends = _ends_of(buffer, [(each, at[len(outer) :]) for each, at in stores.get(buffer, [])], values)
        dtype = _type_of(*ends) if ends is not None and ends[0] >= buffer.dtype.min else None
        if ends is not None and dtype is not None:
            yield buffer, (replace(buffer, dtype=dtype), ends)


def _ends_of(buffer: Buffer, stores: list[tuple[Store, tuple[For, ...]]], values: _Values) -> tuple[int, int] | None:
    """The bounds of a scalar: those of all values stored, extended by what its sums can add over all iterations."""
    held: list[_Narrow] = []
    low = high = 0
    for store, loops in stores:
        value = store.value
        part = values.part(value)
        if part is not None:
            held.append(part)
            continue
        if not isinstance(value, Add | Sub | Min | Max) or not _is_load(value.a, buffer):
            return None
        part = values.part(value.b)
        counts = [count_of(loop) for loop in loops]
        if part is None or any(count is None for count in counts):
            return None
        if isinstance(value, Min | Max):
            held.append(part)
            continue
        turns = prod(count for count in counts if count is not None)
        least, most = (part.low, part.high) if isinstance(value, Add) else (-part.high, -part.low)
        low, high = low + turns * min(least, 0), high + turns * max(most, 0)
    return (min(p.low for p in held) + low, max(p.high for p in held) + high) if held else None


def _is_load(expr: Expr, buffer: Buffer) -> bool:
    return isinstance(expr, Load) and expr.buffer is buffer


def _has_wide_data(body: SeqStmt) -> bool:
    """Whether a body computes on data in more than 16 bits."""
    names = {stmt.var for stmt in statements_of(body, Let) if any(map(_is_data, walk(stmt.value)))}

    def is_wide_data(operand: Node) -> bool:
        return isinstance(operand, Expr) and is_wide(operand.dtype) and (_is_data(operand) or operand in names)

    return any(isinstance(node, _COMPUTING) and any(map(is_wide_data, node.children())) for node in walk(body))


def _is_data(node: Node) -> bool:
    return isinstance(node, Load | Cast)
