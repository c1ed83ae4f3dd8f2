"""Turns integer expressions of a function into sizes over loop counters and other unknowns in bounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tirlite.analysis.integers.array_bounds import is_exact_index, is_exact_size, stays_exact
from tirlite.analysis.integers.choices import Choice, branches_of, is_absolute
from tirlite.analysis.integers.definitions import Definition, Definitions, Loop
from tirlite.analysis.integers.extents import Extents
from tirlite.analysis.integers.float_ends import FloatEnds
from tirlite.analysis.integers.type_ends import fits, type_ends
from tirlite.ir.checked import bare as bare_index
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
    Binary,
    BitAnd,
    BitOr,
    Broadcast,
    Call,
    Cast,
    Compare,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mul,
    Neg,
    Not,
    Or,
    Ramp,
    ShiftLeft,
    ShiftRight,
    Sub,
    TruncDiv,
    TruncMod,
    Var,
)
from tirlite.ir.func import PrimFunc
from tirlite.ir.op import Op
from tirlite.ir.stmt import For, Stmt, While
from tirlite.ir.trampoline import Steps, run
from tirlite.record import cached_method
from tirlite.sizes import Size, maximum, minimum
from tirlite.sizes.poly import Atom, Composite, bare, terms_of, varies
from tirlite.sizes.terms import level_above, written
from tirlite.sizes.unknown import (
    Ends,
    Linear,
    Unknown,
    ends,
    ends_beside,
    forms_of,
    is_nonnegative,
    is_positive_beside,
    linear,
    quotient,
    remainder,
    terms_in,
    unknowns_in,
)

# A sum of more terms than this is taken as one unknown: no index that a proof can use is as long.
_MOST_TERMS = 32
# The same of the factors of a term, and of what is named in a size with all that its functions are of.
_MOST_FACTORS, _MOST_NAMES = 12, 500
# This many quotients, remainders and extrema are looked through, one inside of another.
_MOST_LEVELS = 8
# Shifts and masks of this many bits at most.
_BITS = 62
# What gives an integer of few bits that is known by those it is given.
_NARROW = (Add, Sub, Mul, FloorDiv, FloorMod, Min, Max, BitAnd, ShiftRight)
# This many operands of one extremum are told apart.
_MOST_OPERANDS = 8
# The comparison that holds where another one does not.
FLIPPED: dict[type[Compare], type[Compare]] = {LT: GE, GE: LT, LE: GT, GT: LE, EQ: NE, NE: EQ}
# What a comparison says with its operands in turn.
SWAPPED: dict[type[Compare], type[Compare]] = {LT: GT, GT: LT, LE: GE, GE: LE, EQ: EQ, NE: NE}


class IndexSpace:
    """What each integer expression of a function in normal form can be, as a size.

    A loop has a counter, an unknown from 0 to its last: `for v in range(s, e, k)` makes v equal to s + k * counter.
    What is not a sum, product, quotient, remainder or extremum becomes an unknown of its own, with what is known of it.
    The value is equal to the size modulo 2**64, and equal to it where `is_exact` says so.
    """

    def __init__(self, func: PrimFunc, extents: Extents | None = None, definitions: Definitions | None = None) -> None:
        self.extents = extents or Extents(func)
        self.definitions = definitions or Definitions(func)
        self._values: dict[Var, Size] = {}
        self._counters: dict[For, Unknown] = {}
        self._ahead: dict[Atom, Size] = {}
        self.choices: dict[Atom, Choice] = {}  # what some unknowns are one of two of
        self.wraps: dict[Atom, Size] = {}  # what some names stand for modulo 2**64

    def size(self, expr: Expr, lane: Unknown | None = None) -> Size:
        """The value of an integer expression. Of a vector it is the value in lane `lane`."""
        if type(expr) is IntImm:
            return expr.value
        if isinstance(expr, Var) and expr in self._values:
            return self._values[expr]
        return run(self._size(expr, lane, None))

    @cached_method
    def forms(self, size: Size) -> list[Linear]:
        """Sums over unknowns that are all equal to `size` (see `forms_of`); none where two unknowns multiply.

        One of them has the iterations that lie ahead in loops which begin at an extremum and end by one.
        """
        found = forms_of(size)
        if turned := [(factor, atom) for atom, factor in terms_in(size).items() if atom in self._ahead]:
            found = [*found, size + sum(factor * (self._ahead[atom] - atom) for factor, atom in turned)]
        return [form for each in found if (form := linear(each)) is not None]

    @cached_method
    def unknowns_of(self, atom: Atom) -> tuple[Unknown, ...]:
        """The unknowns that an atom is made of, each once."""
        return (*unknowns_in(atom + 0),)

    def counter(self, loop: For) -> Unknown:
        """How many iterations of `loop` lie behind."""
        if loop not in self._counters:
            self.size(loop.var)
        return self._counters[loop]

    def unknown(
        self,
        name: str,
        low: Size | None = None,
        high: Size | None = None,
        owner: Loop | None = None,
        *,
        steady: bool = True,
        counts: bool = False,
        divisor: int = 1,
    ) -> Unknown:
        """A new unknown of this function."""
        return Unknown(self.extents.origin, name, low, high, owner, counts, steady, divisor)

    def lane(self, lanes: int) -> Unknown | None:
        """Any one of the lanes of a vector; None for a scalar."""
        return self.unknown("a lane", 0, lanes - 1, steady=False) if lanes > 1 else None

    def operands(self, expr: Expr, kind: type[Min | Max]) -> Iterator[Expr]:
        """What an expression is the minimum or the maximum of, or what it names: `min(a, b) + 1` of `a + 1`."""
        stack = [expr]
        for _ in range(_MOST_OPERANDS):
            if not stack:
                return
            value = self.definitions.value(top := stack.pop())
            inner = value.a if isinstance(value, Add | Sub) and isinstance(value.b, IntImm) else value
            of = self.definitions.value(inner)
            if isinstance(value, kind):
                stack += (value.b, value.a)
            elif isinstance(of, kind):
                stack += (value.replaced(a=of.b), value.replaced(a=of.a))
            else:
                yield top
        yield from stack

    def implied(self, condition: Expr, *, holds: bool = True) -> Iterator[Size]:
        """Sizes that are 0 or more where a condition holds, or does not, and what it compares stays as it is."""
        todo = [(condition, holds)]
        while todo:
            each, is_so = todo.pop()
            if isinstance(each, Var):
                todo += [] if (named := self.definitions.value(each)) is each else [(named, is_so)]
            elif isinstance(each, Not):
                todo.append((each.a, not is_so))
            elif isinstance(each, And | BitAnd if is_so else Or | BitOr):
                todo += [(each.b, is_so), (each.a, is_so)]
            elif isinstance(each, Compare) and each.a.dtype.is_integer and each.a.dtype.lanes == 1:
                yield from self._compared(type(each) if is_so else FLIPPED[type(each)], each.a, each.b)

    def told(self, choice: Choice, *, holds: bool) -> Iterable[Size]:
        """Sizes that are 0 or more where the condition of a choice holds, or does not."""
        if choice.sign is None:
            return self.implied(choice.condition, holds=holds)
        return (-choice.sign - 1 if holds else choice.sign,)

    def surplus(self, condition: Expr, exact: Sequence[Size] = ()) -> Size | None:
        """What is 0 or more just where two integers compare as `<`, `<=`, `>` or `>=` says.

        None for other conditions, and where i64 may have wrapped around in what is not one of the sizes in `exact`.
        """
        if not isinstance(condition, LT | LE | GT | GE) or condition.a.dtype != i64:
            return None
        sides = self.size(condition.a), self.size(condition.b)
        return _surplus(type(condition), *sides) if all(s in exact or self.is_exact(s) for s in sides) else None

    def _compared(self, kind: type[Compare], first: Expr, second: Expr) -> list[Size]:
        a, b = self.size(first), self.size(second)
        if not (self.is_exact(a) and self.is_exact(b)):
            return []
        if any(not unknown.steady for size in (a, b) for unknown in unknowns_in(size)):
            return []
        if kind is EQ:
            return [b - a, a - b]
        if kind is NE:
            return [gap - 1 for gap in (a - b, b - a) if (low := ends(gap)[0]) is not None and is_nonnegative(low)]
        return [_surplus(kind, a, b)]

    def narrowed(self, stmt: Stmt, *, holds: bool) -> Mapping[Atom, Size]:
        """What takes the place of unknowns where the test of a statement holds, or does not."""
        return {}

    def moved(self, loop: For | While) -> list[Size]:
        """Sizes that are 0 or more in each iteration of a loop, beside what its bounds tell."""
        return []

    def is_exact(self, value: Size) -> bool:
        """Whether the i64 arithmetic that gave the value cannot have wrapped around."""
        if not varies(value):
            return is_exact_size(value, self.extents.arrays)
        atom = bare(value)
        # What divides 64-bit integers, takes remainders or picks one gives such an integer.
        if atom is not None and (not isinstance(atom, Composite) or all(map(self.is_exact, atom.operands))):
            return True
        low, high = ends(value)
        if low is None or high is None:
            return False
        arrays = self.extents.arrays
        return stays_exact(low, high) or (is_exact_size(low, arrays) and is_exact_size(high, arrays))

    def is_exact_at(self, index: Expr, value: Size, extent: Size | None) -> bool:
        """Whether an index is this value wherever it is in bounds of an axis, of this extent if that is known."""
        if isinstance(bare_index(index), Var):
            return True
        if not varies(value):
            return is_exact_index(value, self.extents.arrays)
        return stays_exact(*ends(value), extent)

    def _size(self, expr: Expr, lane: Unknown | None, owner: Definition | None) -> Steps[Size]:
        """`owner` is the let, if any, whose value the expression belongs to, so that it is evaluated once there."""
        if isinstance(expr, IntImm):
            return expr.value
        if isinstance(expr, Var):
            known: Size = yield self._variable(expr) if expr.dtype.lanes == 1 else self._vector(expr, lane)
            return known
        if isinstance(expr, Cast):
            cast: Size = yield self._cast(expr, lane, owner)
            return cast
        # Lanes that a mask leaves out count here: an access touches no more than all of them.
        if isinstance(expr, Call) and expr.op in (Op.CHECKED, Op.MASKED):
            index: Size = yield self._size(expr.args[0], lane, owner)
            return index
        if branches_of(expr):
            either: Size = yield self._either(expr, owner)
            return either
        if expr.dtype.scalar != i64:
            narrow: Size = yield self._narrow(expr, lane, owner)
            return narrow
        if isinstance(expr, Neg):
            a: Size = yield self._size(expr.a, lane, owner)
            return -a
        if isinstance(expr, Binary):
            a = yield self._size(expr.a, lane, owner)
            b: Size = yield self._size(expr.b, lane, owner)
            found = self._modular(expr, a, b)
            return self._picked(expr, a, b, owner) if found is None else found
        if isinstance(expr, Broadcast):
            scalar: Size = yield self._size(expr.value, lane, owner)
            return scalar
        if isinstance(expr, Ramp) and lane is not None:
            base: Size = yield self._size(expr.base, lane, owner)
            stride: Size = yield self._size(expr.stride, lane, owner)
            if not varies(stride):
                return base + stride * lane
        return self.opaque(expr, owner)

    def _narrow(self, expr: Expr, lane: Unknown | None, owner: Definition | None) -> Steps[Size]:
        """The value of an operation on integers of fewer bits, if it surely fits into them."""
        if not isinstance(expr, _NARROW) or not expr.dtype.is_integer or expr.dtype.bits >= _BITS:
            return self.opaque(expr, owner)
        a: Size = yield self._size(expr.a, lane, owner)
        b: Size = yield self._size(expr.b, lane, owner)
        found = self._modular(expr, a, b)
        value = self._picked(expr, a, b, owner) if found is None else found
        return value if fits(value, expr.dtype) else self.opaque(expr, owner)

    def _either(self, expr: Expr, owner: Definition | None) -> Steps[Size]:
        """One of two values: that which a constant picks, or anything between the ends of both."""
        condition, *branches = branches_of(expr)
        if isinstance(condition, IntImm):
            picked: Size = yield self._size(branches[0 if condition.value else 1], None, owner)
            return picked
        no: Size = yield self._size(branches[1], None, owner)
        yes: Size = -no if is_absolute(expr) else (yield self._size(branches[0], None, owner))
        if yes == no and self.is_exact(yes):
            return yes
        are_exact = self.is_exact(yes) and self.is_exact(no)
        choice = Choice(condition, yes, no, no if is_absolute(expr) and are_exact else None)
        first, last = self._hull(choice) if are_exact else (None, None)
        chosen = self._between(first, last, owner)
        self.choices[chosen] = choice
        return chosen + 0

    def _hull(self, choice: Choice) -> tuple[Size | None, Size | None]:
        """The ends of two values of which a condition picks one."""
        (low, high), (least, most) = (
            self._ends_where(choice, choice.yes, True),
            self._ends_where(choice, choice.no, False),
        )
        first = None if low is None or least is None else minimum(low, least)
        return first, None if high is None or most is None else maximum(high, most)

    def _ends_where(self, choice: Choice, value: Size, holds: bool) -> Ends:
        """The ends of a value where a condition holds, or does not; of two that are known the condition's own."""
        return ends_beside(ends(value), value, self.told(choice, holds=holds) if varies(value) else ())

    def opaque(self, expr: Expr, owner: Definition | None) -> Size:
        """A value of which no more is known: evaluated at each mention, or once where it is part of a definition."""
        return self._between(*type_ends(expr), owner) + 0

    def _between(self, low: Size | None, high: Size | None, owner: Definition | None) -> Unknown:
        loop: Loop | None = None if owner is None else owner.owner
        return self.unknown("a value", low, high, loop, steady=owner is not None and owner.is_statement)

    def _modular(self, expr: Binary, a: Size, b: Size) -> Size | None:
        """What is right modulo 2**64, whether or not operands have wrapped around; None where that is not enough."""
        match expr:
            case Add() | Sub() | Mul():
                terms = len(terms_of(a)), len(terms_of(b))
                if isinstance(expr, Mul):
                    fits = terms[0] * terms[1] <= _MOST_TERMS and sum(map(_degree, (a, b))) <= _MOST_FACTORS
                    return a * b if fits else None
                if sum(terms) <= _MOST_TERMS or not (varies(a) or varies(b)):
                    return a + b if isinstance(expr, Add) else a - b
            case ShiftLeft() if isinstance(b, int) and 0 <= b < _BITS:
                return a * (1 << b)
            case FloorMod() if isinstance(b, int) and 0 < b < 1 << _BITS and b & (b - 1) == 0:
                return remainder(a, b)
            case BitAnd() if isinstance(b, int) and 0 <= b < (1 << _BITS) - 1 and b & (b + 1) == 0:
                return remainder(a, b + 1)
        return None

    def _picked(self, expr: Binary, a: Size, b: Size, owner: Definition | None) -> Size:
        """The value of an operation that wants its operands as they are: what may have wrapped around is an unknown."""
        if not isinstance(expr, FloorDiv | FloorMod | Min | Max | TruncDiv | TruncMod | ShiftRight):
            return self.opaque(expr, owner)
        a, b = self._exactly(expr.a, a, owner), self._exactly(expr.b, b, owner)
        if isinstance(expr, Min | Max):
            return self.extremum(type(expr), a, b)
        if isinstance(expr, ShiftRight):
            return self._shifted(expr, a, b, owner)
        if not is_positive_beside(b, a) or (isinstance(expr, TruncDiv | TruncMod) and not is_nonnegative(a)):
            return self.opaque(expr, owner)
        return (quotient if isinstance(expr, FloorDiv | TruncDiv) else remainder)(a, b)

    def _shifted(self, expr: ShiftRight, a: Size, b: Size, owner: Definition | None) -> Size:
        low, high = ends(b)
        if not isinstance(low, int) or not isinstance(high, int) or not 0 <= low <= high < _BITS:
            return self.opaque(expr, owner)
        if low == high:
            return a // (1 << low)
        if not isinstance(a, int) or a < 0:
            return self.opaque(expr, owner)
        return self._between(a >> high, a >> low, owner) + 0

    def extremum(self, kind: type[Min | Max], a: Size, b: Size) -> Size:
        """The lesser or the greater of two values."""
        return minimum(a, b) if kind is Min else maximum(a, b)

    def _exactly(self, expr: Expr, value: Size, owner: Definition | None) -> Size:
        is_plain = (
            level_above([terms_of(value)]) <= _MOST_LEVELS
            and _operands(value) < _MOST_OPERANDS
            and (not varies(value) or written([terms_of(value)]) < _MOST_NAMES)
        )
        return value if is_plain and self.is_exact(value) else self.opaque(expr, owner)

    def _cast(self, expr: Cast, lane: Unknown | None, owner: Definition | None) -> Steps[Size]:
        source = expr.value.dtype.scalar
        if source.is_float and expr.dtype.is_integer:
            between: Ends = yield FloatEnds(self._exact_ends, self.definitions, self.extents.arrays).converted(expr)
            return self._between(*between, owner) + 0
        if source.is_bool and expr.dtype.is_integer:
            return self._between(0, 1, owner) + 0
        inner = expr.value
        if expr.dtype.scalar != i64 and expr.dtype.is_integer and source.is_integer and lane is None:
            narrow: Size = yield self._size(inner, lane, owner)
            return narrow if fits(narrow, expr.dtype) else self.opaque(expr, owner)
        if expr.dtype.scalar != i64 or not source.is_integer or source == i64:
            return self.opaque(expr, owner)
        if source.bits == i64.bits:
            value: Size = yield self._size(inner, lane, owner)
            return value if fits(value, i64) else self.opaque(expr, owner)
        if isinstance(inner, Cast) and inner.value.dtype.scalar == i64:
            value = yield self._size(inner.value, lane, owner)
            if fits(value, source) and self.is_exact(value):
                return value
        if isinstance(inner, (Var, IntImm, Cast, *_NARROW)):
            value = yield self._size(inner, lane, owner)
            return value
        return self.opaque(inner, owner)

    def _exact_ends(self, expr: Expr) -> Steps[Ends]:
        """The ends of an integer whose arithmetic has not wrapped around."""
        value: Size = yield self._size(expr, None, None)
        return ends(value) if self.is_exact(value) else (None, None)

    def _variable(self, var: Var) -> Steps[Size]:
        if var not in self._values:
            self._values[var] = yield self._new_variable(var)
        return self._values[var]

    def _vector(self, var: Var, lane: Unknown | None) -> Steps[Size]:
        definition = self.definitions.of(var)
        if lane is not None and definition is not None and definition.value is not None:
            value: Size = yield self._size(definition.value, lane, definition)
            if self.is_exact(value):
                return value
        return self.opaque(var, None)

    def _new_variable(self, var: Var) -> Steps[Size]:
        if var in self.extents.given:
            return self.extents.sizes[var]
        definition = self.definitions.of(var)
        if definition is None:
            return self.unknown(var.name, *type_ends(var)) + 0
        if definition.loop is not None:
            counted: Size = yield self._loop_variable(definition.loop, definition)
            return counted
        if var.dtype.is_integer and definition.value is not None:
            value: Size = yield self._size(definition.value, None, definition)
            if self.is_exact(value):
                return value
            if var.dtype != i64:
                return self.opaque(var, definition)
            self.wraps[named := self._between(*type_ends(var), definition)] = value
            return named + 0
        return self.opaque(var, definition)

    def _loop_variable(self, loop: For, definition: Definition) -> Steps[Size]:
        start: Size = yield self._size(loop.start, None, definition)
        if not self.is_exact(start):
            start = self.opaque(loop.start, definition)
        near, far = (loop.start, loop.stop) if loop.step > 0 else (loop.stop, loop.start)
        lows: list[Size] = yield self._alternatives(near, Max, definition)
        highs: list[Size] = yield self._alternatives(far, Min, definition)
        apart = [(high, high - low) for low in lows for high in highs]
        # The greatest value of the counter; below 0 where the loop never runs.
        last = [(most - 1) // abs(loop.step) for _, each in apart if (most := ends(each)[1]) is not None]
        counter = self.unknown(loop.var.name, 0, minimum(*last) if last else None, loop, counts=True)
        self._counters[loop] = counter
        for high, count in apart:
            if loop.step == 1 and len(lows) > 1 and isinstance(count, int):
                ahead = self.unknown(f"{loop.var.name} ahead", 0, count - 1, loop)
                self._ahead[counter] = high - 1 - ahead - start
        return start + loop.step * counter

    def _alternatives(self, expr: Expr, kind: type[Min] | type[Max], definition: Definition) -> Steps[list[Size]]:
        """Sizes that bound the value of `expr` from the side that `kind` picks it from."""
        found: list[Size] = []
        for operand in [expr] if expr in self.extents.sizes else self.operands(expr, kind):
            size: Size = yield self._size(operand, None, definition)
            if self.is_exact(size):
                found.append(size)
        return found


def _surplus(kind: type[Compare], a: Size, b: Size) -> Size:
    """What is 0 or more just where `a` is less than `b`, or as much, or greater."""
    # On integers `a < b` is `a + 1 <= b`.
    return (b - a if kind in (LT, LE) else a - b) - int(kind in (LT, GT))


def _degree(size: Size) -> int:
    return max(map(len, terms_of(size)), default=0)


def _operands(size: Size) -> int:
    """How many operands its functions have at most."""
    return max((len(atom.operands) for product in terms_of(size) for atom in product), default=0)
