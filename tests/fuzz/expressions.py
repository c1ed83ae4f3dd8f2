"""Random expressions of a wanted type that have a value: no traps, indices in bounds, initialised elements."""

from __future__ import annotations

from random import Random

from fuzz.extents import Extent
from fuzz.scope import Scope, Slot

from tirlite.ir.dtype import DType, bf16, bool_, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
from tirlite.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Binary,
    BitAnd,
    BitNot,
    BitOr,
    BitXor,
    Broadcast,
    Call,
    Cast,
    Compare,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    LetExpr,
    Load,
    Max,
    Min,
    Mul,
    Neg,
    Not,
    Or,
    Ramp,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
    TruncDiv,
    TruncMod,
    Var,
    const,
)
from tirlite.ir.op import Op

TYPES = (f32, f32, f32, f64, f16, i32, i32, i64, i8, u8, i16, u16, u32, u64, bool_)
# NumPy has no arrays of bfloat16 to give.
INSIDE = (*TYPES, bf16)
COMPARISONS: tuple[type[Compare], ...] = (EQ, NE, LT, LE, GT, GE)
ROUNDINGS = (Op.FLOOR, Op.CEIL, Op.ROUND, Op.TRUNC)
# Elementary functions, by the number of their arguments.
FUNCTIONS = {
    1: tuple(op for op in Op if op.is_math and op.arity == 1 and op not in (*ROUNDINGS, Op.ABS, Op.SQRT, Op.ISNAN)),
    2: (Op.ATAN2, Op.FAST_ATAN2, Op.POW),
}


class Expressions:
    """Draws expressions for a scope."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._names = 0

    def value(self, scope: Scope, dtype: DType, depth: int) -> Expr:
        """An expression of type `dtype`, at most so deep."""
        draw = self._random.random()
        if depth <= 0 or draw < 0.2:
            return self._leaf(scope, dtype)
        if draw < 0.3:
            source = self._random.choice(INSIDE)
            return self.value(scope, source, depth - 1).astype(dtype)
        if draw < 0.45:
            return self._choice(scope, dtype, depth)
        if dtype.is_bool:
            return self._bool(scope, depth)
        return self._float(scope, dtype, depth) if dtype.is_float else self._integer(scope, dtype, depth)

    def _pair(self, scope: Scope, dtype: DType, depth: int) -> tuple[Expr, Expr]:
        return self.value(scope, dtype, depth - 1), self.value(scope, dtype, depth - 1)

    def _leaf(self, scope: Scope, dtype: DType) -> Expr:
        draw = self._random.random()
        if draw < 0.75:
            element = self.element(scope, dtype)
            if element is not None:
                return element.astype(dtype)
        if draw < 0.87:
            scalars = [*scope.scalars, *(counter.var for counter in scope.counters)]
            if scalars:
                return self._random.choice(scalars).astype(dtype)
        return self.constant(dtype)

    def constant(self, dtype: DType) -> Expr:
        if dtype.is_float:
            return const(self._random.choice((0.0, -0.0, 0.5, 1.0, -1.0, 3.0, 0.1, 1e10)), dtype)
        if dtype.is_bool:
            return const(self._random.random() < 0.5, dtype)
        return const(self._random.choice((0, 1, 2, 3, 7, dtype.max, dtype.min)), dtype)

    def _choice(self, scope: Scope, dtype: DType, depth: int) -> Expr:
        """A value that is chosen, or bound first."""
        draw = self._random.random()
        if draw < 0.2:
            self._names += 1
            bound = self.value(scope, self._random.choice(TYPES), depth - 1)
            var = Var(f"e{self._names}", bound.dtype)
            inner = scope.child()
            inner.scalars.append(var)
            return LetExpr(var, bound, self.value(inner, dtype, depth - 1))
        if draw < 0.5:
            guarded = self._guarded(scope, dtype, depth)
            if guarded is not None:
                return guarded
        condition = self.value(scope, bool_, depth - 1)
        a, b = self._pair(scope, dtype, depth)
        if draw < 0.75:
            return Select(condition, a, b)
        return Call(dtype, Op.IF_THEN_ELSE, (condition, a, b))

    def _guarded(self, scope: Scope, dtype: DType, depth: int) -> Expr | None:
        """A load whose index may be out of bounds, behind a condition that says where it is not."""
        slots = [slot for slot in scope.readable() if len(slot.extents) == 1 and slot not in scope.owned]
        if not slots or not scope.counters:
            return None
        slot = self._random.choice(slots)
        shift = self._random.choice((-2, -1, 1, 2))
        index = self._random.choice(scope.counters).var + shift
        inside = And(GE(index, const(0, i64)), LT(index, slot.extents[0].expr))
        element = slot.buffer[index].astype(dtype)
        return Call(dtype, Op.IF_THEN_ELSE, (inside, element, self.value(scope, dtype, depth - 1)))

    def _bool(self, scope: Scope, depth: int) -> Expr:
        draw = self._random.random()
        if draw < 0.6:
            return self._random.choice(COMPARISONS)(*self._pair(scope, self._random.choice(TYPES), depth))
        if draw < 0.65:
            return Not(self.value(scope, bool_, depth - 1))
        if draw < 0.7:
            return Call(bool_, Op.ISNAN, (self.value(scope, self._random.choice((f32, f64)), depth - 1),))
        kind = self._random.choice((And, Or, BitAnd, BitOr, BitXor))
        return kind(*self._pair(scope, bool_, depth))

    def _float(self, scope: Scope, dtype: DType, depth: int) -> Expr:
        draw = self._random.random()
        if draw < 0.75:
            kinds = (Add, Add, Sub, Mul, Mul, Div, Min, Max, FloorDiv, FloorMod)
            return self._random.choice(kinds)(*self._pair(scope, dtype, depth))
        a = self.value(scope, dtype, depth - 1)
        if draw < 0.8:
            return Neg(a)
        if draw < 0.83:
            return Call(dtype, Op.FMA, (a, *self._pair(scope, dtype, depth)))
        if draw < 0.87:
            return Call(dtype, self._random.choice(FUNCTIONS[1]), (a,))
        if draw < 0.88:
            return Call(dtype, self._random.choice(FUNCTIONS[2]), (a, self.value(scope, dtype, depth - 1)))
        return Call(dtype, self._random.choice((Op.SQRT, Op.ABS, *ROUNDINGS)), (a,))

    def _integer(self, scope: Scope, dtype: DType, depth: int) -> Expr:
        draw = self._random.random()
        a = self.value(scope, dtype, depth - 1)
        if draw < 0.1:
            return self._random.choice((Neg, BitNot))(a)
        b = self.value(scope, dtype, depth - 1)
        if draw < 0.2:
            # Between 1 and 8: neither zero nor -1.
            divisor = BitAnd(b, const(7, dtype)) + 1
            return self._random.choice((FloorDiv, FloorMod, TruncDiv, TruncMod))(a, divisor)
        if draw < 0.3:
            return self._random.choice((ShiftLeft, ShiftRight))(a, BitAnd(b, const(dtype.bits - 1, dtype)))
        kinds: tuple[type[Binary], ...] = (Add, Add, Sub, Mul, Min, Max, BitAnd, BitOr, BitXor)
        return self._random.choice(kinds)(a, b)

    def element(self, scope: Scope, dtype: DType) -> Load | None:
        """A load of something initialised: of type `dtype`, or what was declared of late."""
        points = [point for point in scope.points if scope.can_touch(point[0])]
        if points and self._random.random() < 0.4:
            slot, indices = self._random.choice(points)
            return Load(slot.buffer, indices)
        slots = scope.readable()
        if self._random.random() < 0.3:
            slots = [slot for slot in slots if slot.buffer.dtype == dtype] or slots
        else:
            slots = [slot for slot in slots if slot.storage not in scope.frozen][-4:] or slots
        for _ in range(3):
            if not slots:
                break
            slot = self._random.choice(slots)
            found = self.indices(scope, slot)
            if found is not None:
                return Load(slot.buffer, found)
        return None

    def indices(self, scope: Scope, slot: Slot) -> tuple[Expr, ...] | None:
        """Indices that are in bounds in each run of the block; None where there are none to be sure of."""
        fixed = scope.owned.get(slot)
        found = []
        for axis, extent in enumerate(slot.extents):
            index = fixed if axis == 0 and fixed is not None else self._index(scope, extent)
            if index is None:
                return None
            found.append(index)
        return tuple(found)

    def _index(self, scope: Scope, axis: Extent) -> Expr | None:
        plain = [counter.var for counter in scope.counters if counter.reaches(0, axis)]
        draw = self._random.random()
        if plain and draw < 0.6:
            return self._random.choice(plain)
        shifted = [counter.var + k for k in (-1, 1) for counter in scope.counters if counter.reaches(k, axis)]
        if shifted and draw < 0.75:
            return self._random.choice(shifted)
        options: list[Expr] = [*plain, *shifted]
        if axis.least > 0:
            options.append(const(self._random.randrange(axis.least), i64))
        if axis.least > 0 or any(counter.shows_nonempty(axis) for counter in scope.counters):
            options.append(self._wrapped(scope, axis))
            options += [axis.expr - 1 - var for var in plain]
        return self._random.choice(options) if options else None

    def _wrapped(self, scope: Scope, axis: Extent) -> Expr:
        """Any integer modulo the extent of an axis that is not empty: a name, or what memory holds."""
        if self._random.random() < 0.15:
            element = self.element(scope, i64)
            if element is not None and not element.dtype.is_float:
                return FloorMod(element.astype(i64), axis.expr)
        scalars = [*scope.scalars, *(counter.var for counter in scope.counters)]
        source: Expr = self._random.choice(scalars) if scalars else self.constant(i64)
        return FloorMod(source.astype(i64), axis.expr)

    def vector(self, scope: Scope, dtype: DType, lanes: int, depth: int) -> Expr:
        """A vector of type `dtype`: loads of neighbours, spread scalars, and arithmetic on them."""
        draw, wide = self._random.random(), dtype.with_lanes(lanes)
        if depth <= 0 or draw < 0.2:
            return self._vector_leaf(scope, dtype, lanes)
        a, b = self.vector(scope, dtype, lanes, depth - 1), self.vector(scope, dtype, lanes, depth - 1)
        if draw < 0.4:
            source = self._random.choice(TYPES)
            return Cast(wide, self.vector(scope, source, lanes, depth - 1)) if source != dtype else a
        if draw < 0.6:
            return Select(self._random.choice(COMPARISONS)(a, b), a, b)
        if dtype.is_bool:
            return self._random.choice((BitAnd, BitOr, BitXor))(a, b)
        if dtype.is_integer and draw < 0.7:
            divisor = BitAnd(b, const(7, wide)) + const(1, wide)
            return self._random.choice((FloorDiv, FloorMod, TruncDiv, TruncMod))(a, divisor)
        if dtype.is_float and draw < 0.66:
            return Call(wide, self._random.choice((*FUNCTIONS[1], Op.SQRT, *ROUNDINGS)), (a,))
        return self._random.choice((Add, Sub, Mul, Min, Max))(a, b)

    def _vector_leaf(self, scope: Scope, dtype: DType, lanes: int) -> Expr:
        slots = [slot for slot in scope.readable() if slot.extents and slot.extents[-1].least >= lanes]
        slots = [slot for slot in slots if slot not in scope.owned or len(slot.extents) > 1]
        if slots and self._random.random() < 0.7:
            slot = self._random.choice(slots)
            indices = self.indices(scope, slot)
            if indices is not None:
                start = self._random.randint(0, slot.extents[-1].least - lanes)
                ramp = Ramp(const(start, i64), const(1, i64), lanes)
                return Load(slot.buffer, (*indices[:-1], ramp)).astype(dtype.with_lanes(lanes))
        if dtype.is_integer and self._random.random() < 0.5:
            return Ramp(self.constant(dtype), self.value(scope, dtype, 1), lanes)
        return Broadcast(self.value(scope, dtype, 1), lanes)
