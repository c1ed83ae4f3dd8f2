"""Integer expressions of a function in, sums of loop counters and other unknowns in bounds out."""

from __future__ import annotations

from tirlite.analysis.definitions import Definition, Definitions, Loop
from tirlite.analysis.exactness import is_exact_index, is_exact_size, stays_exact
from tirlite.analysis.extents import Extents
from tirlite.analysis.extrema import extremum, operand_forms, picked_operand
from tirlite.analysis.linear import Linear, Unknown, is_nonnegative, is_positive
from tirlite.ir import (
    Add,
    Binary,
    Broadcast,
    Cast,
    Expr,
    FloorDiv,
    FloorMod,
    For,
    IntImm,
    Max,
    Min,
    Mul,
    Neg,
    PrimFunc,
    Ramp,
    Steps,
    Sub,
    Var,
    i64,
    run,
)
from tirlite.sizes import Size, maximum, minimum

# A sum of more unknowns than this is taken as one unknown: no index that a proof can use is as long.
_MOST_TERMS = 32
_MOST_ALTERNATIVES = 8


class IndexSpace:
    """What each integer expression of a function in normal form can be.

    `linear` says it as a sum over loop counters, each from 0 to its last; `for v in range(s, e, k)` makes v equal to
    s + k * counter. What is no sum becomes an unknown of its own, with what is known of it; a quotient or remainder
    also leaves a relation: `relations[u]` is a sum that is always 0. A minimum or maximum leaves `forms`: sums that are
    equal to it.
    """

    def __init__(self, func: PrimFunc, extents: Extents | None = None) -> None:
        self.extents = extents or Extents(func)
        self.definitions = Definitions(func)
        self.relations: dict[Unknown, Linear] = {}
        self.forms: dict[Unknown, tuple[Linear, Linear]] = {}
        self._values: dict[Var, Linear] = {}
        self._counters: dict[For, Unknown] = {}
        self._quotients: dict[object, tuple[Unknown, Unknown]] = {}

    def linear(self, expr: Expr, lane: Unknown | None = None) -> Linear:
        """The value of an integer expression. Of a vector it is the value in lane `lane`."""
        if isinstance(expr, Var) and expr in self._values:
            return self._values[expr]
        return run(self._linear(expr, lane, None))

    def counter(self, loop: For) -> Unknown:
        """How many iterations of `loop` lie behind."""
        if loop not in self._counters:
            self.linear(loop.var)
        return self._counters[loop]

    def is_exact(self, value: Linear) -> bool:
        """Whether the i64 arithmetic that gave the value cannot have wrapped around."""
        if value.is_constant:
            return is_exact_size(value.constant, self.extents.arrays)
        if value.constant == 0 and len(value.terms) == 1:
            ((unknown, coefficient),) = value.terms.items()
            if coefficient == 1 and not unknown.depends:
                return True
        return stays_exact(*value.ends())

    def is_exact_at(self, index: Expr, value: Linear, extent: Size | None) -> bool:
        """Whether an index is this value wherever it is in bounds of an axis, of this extent if that is known."""
        if isinstance(index, Var):
            return True
        if value.is_constant:
            return is_exact_index(value.constant, self.extents.arrays)
        return stays_exact(*value.ends(), extent)

    def _linear(self, expr: Expr, lane: Unknown | None, owner: Definition | None) -> Steps[Linear]:
        """`owner` is the let, if any, whose value the expression belongs to, so that it is evaluated once there."""
        if isinstance(expr, IntImm):
            return Linear(expr.value)
        if isinstance(expr, Var):
            known: Linear = yield self._variable(expr) if expr.dtype.lanes == 1 else self._vector(expr, lane)
            return known
        if isinstance(expr, Cast):
            cast: Linear = yield self._cast(expr, lane, owner)
            return cast
        if expr.dtype.scalar != i64:
            return _opaque("a value", owner, *_type_ends(expr))
        if isinstance(expr, Neg):
            a: Linear = yield self._linear(expr.a, lane, owner)
            return a.times(-1)
        if isinstance(expr, Add | Sub | Mul | FloorDiv | FloorMod | Min | Max):
            a = yield self._linear(expr.a, lane, owner)
            b: Linear = yield self._linear(expr.b, lane, owner)
            return self._combined(expr, a, b, owner)
        if isinstance(expr, Broadcast):
            scalar: Linear = yield self._linear(expr.value, lane, owner)
            return scalar
        if isinstance(expr, Ramp) and lane is not None:
            base: Linear = yield self._linear(expr.base, lane, owner)
            stride: Linear = yield self._linear(expr.stride, lane, owner)
            if stride.is_constant:
                return base.plus(Linear(0, {lane: 1}), stride.constant) if stride.constant != 0 else base
        return _opaque("a value", owner)

    def _combined(self, expr: Binary, a: Linear, b: Linear, owner: Definition | None) -> Linear:
        if isinstance(expr, Add | Sub):
            if len(a.terms) + len(b.terms) > _MOST_TERMS:
                return _opaque("a long sum", owner)
            return a.plus(b, 1 if isinstance(expr, Add) else -1)
        if isinstance(expr, Mul):
            if b.is_constant or a.is_constant:
                return a.times(b.constant) if b.is_constant else b.times(a.constant)
            return _opaque("a product", owner)
        if not (self.is_exact(a) and self.is_exact(b)):
            return _opaque("a value that may wrap around", owner)
        if isinstance(expr, Min | Max):
            return self._extremum(type(expr), a, b)
        if not (b.is_constant and is_positive(b.constant)):
            return _opaque("a quotient", owner)
        return self._division(a, b.constant, wants_quotient=isinstance(expr, FloorDiv))

    def _extremum(self, kind: type[Min | Max], a: Linear, b: Linear) -> Linear:
        if a.is_constant and b.is_constant:
            return Linear((minimum if kind is Min else maximum)(a.constant, b.constant))
        operand = picked_operand(kind, a, b)
        if operand is not None:
            return operand
        unknown = extremum(kind, a, b)
        self.forms[unknown] = operand_forms(kind, a, b)
        return Linear(0, {unknown: 1})

    def _division(self, x: Linear, by: Size, *, wants_quotient: bool) -> Linear:
        """`x // by` or `x % by`: whole multiples of `by` come out, and of the rest both are unknowns, related to it."""
        if x.is_constant:
            return Linear(x.constant // by if wants_quotient else x.constant % by)
        whole = Linear(0, {u: part for u, c in x.terms.items() if (part := whole_times(c, by)) is not None})
        rest = x.plus(whole, -by)
        low, high = rest.ends()
        if low is not None and high is not None and is_nonnegative(low) and is_positive(by - high):
            return whole if wants_quotient else rest
        key = (frozenset(rest.terms.items()), rest.constant, by)
        if key not in self._quotients:
            depends = tuple(rest.terms)
            quotient = Unknown(
                "a quotient", None if low is None else low // by, None if high is None else high // by, depends=depends
            )
            remainder = Unknown("a remainder", 0, by - 1, depends=depends)
            relation = rest.plus(Linear(0, {quotient: by, remainder: 1}), -1)
            self.relations[quotient] = self.relations[remainder] = relation
            self._quotients[key] = quotient, remainder
        quotient, remainder = self._quotients[key]
        return whole.plus(Linear(0, {quotient: 1})) if wants_quotient else Linear(0, {remainder: 1})

    def _cast(self, expr: Cast, lane: Unknown | None, owner: Definition | None) -> Steps[Linear]:
        source = expr.value.dtype
        if expr.dtype.scalar != i64 or not source.is_integer or source.bits >= 64:
            return _opaque("a converted value", owner)
        if isinstance(expr.value, Var | IntImm):
            value: Linear = yield self._linear(expr.value, lane, owner)
            return value
        return _opaque("a converted value", owner, source.min, source.max)

    def _variable(self, var: Var) -> Steps[Linear]:
        if var not in self._values:
            self._values[var] = yield self._new_variable(var)
        return self._values[var]

    def _vector(self, var: Var, lane: Unknown | None) -> Steps[Linear]:
        definition = self.definitions.of(var)
        if lane is not None and definition is not None and definition.value is not None:
            value: Linear = yield self._linear(definition.value, lane, definition)
            if self.is_exact(value):
                return value
        return _opaque(var.name, None)

    def _new_variable(self, var: Var) -> Steps[Linear]:
        if var in self.extents.given:
            return Linear(self.extents.sizes[var])
        definition = self.definitions.of(var)
        low, high = _type_ends(var)
        if definition is None:
            return Linear(0, {Unknown(var.name, low, high): 1})
        if definition.loop is not None:
            counted: Linear = yield self._loop_variable(definition.loop, definition)
            return counted
        if var.dtype == i64 and definition.value is not None:
            value: Linear = yield self._linear(definition.value, None, definition)
            if self.is_exact(value):
                return value
        return _opaque(var.name, definition, low, high)

    def _loop_variable(self, loop: For, definition: Definition) -> Steps[Linear]:
        start: Linear = yield self._linear(loop.start, None, definition)
        if not self.is_exact(start):
            start = _opaque(f"the start of {loop.var.name}", definition)
        last = yield self._last(loop, definition)
        self._counters[loop] = Unknown(loop.var.name, 0, last, loop, counts=True)
        return start.plus(Linear(0, {self._counters[loop]: loop.step}))

    def _last(self, loop: For, definition: Definition) -> Steps[Size | None]:
        """The greatest value of the counter; below 0 where the loop never runs."""
        upward = loop.step > 0
        near, far = (loop.start, loop.stop) if upward else (loop.stop, loop.start)
        lows: list[Linear] = yield self._alternatives(near, Max, definition)
        highs: list[Linear] = yield self._alternatives(far, Min, definition)
        found = []
        for low in lows:
            for high in highs:
                most = high.plus(low, -1).ends()[1]
                if most is not None:
                    found.append((most - 1) // abs(loop.step))
        return minimum(*found) if found else None

    def _alternatives(self, expr: Expr, kind: type[Min] | type[Max], definition: Definition) -> Steps[list[Linear]]:
        """Sums that bound the value of `expr` from the side that `kind` picks it from."""
        found: list[Linear] = []
        stack = [expr]
        while stack:
            top = stack.pop()
            named = self.definitions.of(top) if isinstance(top, Var) and top not in self.extents.sizes else None
            if named is not None and named.value is not None and isinstance(named.value, kind):
                stack.append(named.value)
            elif isinstance(top, kind) and len(stack) < _MOST_ALTERNATIVES:
                stack += (top.b, top.a)
            else:
                linear: Linear = yield self._linear(top, None, definition)
                if self.is_exact(linear):
                    found.append(linear)
        return found


def index_range(expr: Expr, space: IndexSpace, extent: Size | None = None) -> tuple[Size, Size] | None:
    """The least and the greatest value that an i64 expression can have, both included; None where they are not known.

    They hold wherever the expression is evaluated, whatever is tested around it; a loop that never runs may make them
    cross. Where it is an index, the extent of its axis helps to rule out that it wraps around.
    """
    low, high = space.linear(expr).ends()
    return None if low is None or high is None or not stays_exact(low, high, extent) else (low, high)


def _opaque(name: str, definition: Definition | None, low: Size | None = None, high: Size | None = None) -> Linear:
    """A value of which no more is known: evaluated at each mention, or once where it is part of a definition."""
    loop: Loop | None = None if definition is None else definition.owner
    return Linear(0, {Unknown(name, low, high, loop, steady=definition is not None and definition.is_statement): 1})


def whole_times(coefficient: Size, by: Size) -> int | None:
    """How many times `by` the coefficient is, where it is a whole number."""
    if isinstance(coefficient, int) and isinstance(by, int):
        return coefficient // by if coefficient % by == 0 else None
    return next((k for k in (1, -1) if coefficient == by * k), None)


def _type_ends(expr: Expr) -> tuple[int | None, int | None]:
    """The range of a narrow integer type; 64-bit values are bounded by nothing that helps."""
    narrow = expr.dtype.is_integer and expr.dtype.bits < 64
    return (expr.dtype.min, expr.dtype.max) if narrow else (None, None)
