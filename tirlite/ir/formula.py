"""Formulas: functions of Terms that both the interpreter and code generation evaluate.
Only the Machine knows what a Term's item is, the text of an instruction or an array. So the interpreter and the
compiled code run the same operations in the same order, and agree bit for bit. Formulas have no branches, so all lanes
of a vector take the same path; only values for rare lanes may be computed if there are any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from tirlite.ir import expr as e
from tirlite.ir.dtype import DType, TypeCode, bool_, f32, f64, rounded
from tirlite.ir.op import Op
from tirlite.record import record

Kind: TypeAlias = type[e.Binary] | type[e.Compare] | type[e.Neg]


class Machine(Protocol):
    """Carries out operations on items of its own kind. All types are scalar types, whatever the lanes."""

    def constant(self, value: int | float, dtype: DType) -> object: ...

    def apply(self, kind: Kind, dtype: DType, *items: object) -> object:
        """An operator on operands of type `dtype`."""

    def call(self, op: Op, dtype: DType, item: object) -> object:
        """A rounding function, square root or absolute value."""

    def fused(self, a: object, b: object, c: object) -> object:
        """`a * b + c` of f32, rounded once."""

    def select(self, dtype: DType, condition: object, yes: object, no: object) -> object: ...

    def select_rare(self, dtype: DType, condition: object, usual: object, rare: Callable[[], object]) -> object:
        """`usual` where the condition holds, else `rare`, which is computed if some lane needs it."""

    def convert(self, source: DType, target: DType, item: object) -> object: ...

    def lookup(self, table: tuple[float, ...], item: object) -> object:
        """The f64 in a table at an i64 index, which must be in range."""

    def reinterpret(self, source: DType, target: DType, item: object) -> object:
        """The same bits as another type of the same width."""


_Operator: TypeAlias = "Callable[[Term, Operand], Term]"


def _operators(kind: Kind) -> tuple[_Operator, _Operator]:
    """Python's operator for a kind of node, and its reflected form."""
    return lambda self, other: self._binary(kind, self, other), lambda self, other: self._binary(kind, other, self)


@record(eq=False)
class Term:
    """A value in a formula. Numbers combined with it take its type."""

    machine: Machine
    dtype: DType
    item: object

    def like(self, value: int | float) -> Term:
        """A constant of this type, rounded to it."""
        if self.dtype.is_float:
            value = rounded(float(value), self.dtype)
        return Term(self.machine, self.dtype, self.machine.constant(value, self.dtype))

    def _binary(self, kind: Kind, a: Operand, b: Operand) -> Term:
        left = a if isinstance(a, Term) else self.like(a)
        right = b if isinstance(b, Term) else self.like(b)
        assert left.dtype == right.dtype
        result = bool_ if issubclass(kind, e.Compare) else self.dtype
        return Term(self.machine, result, self.machine.apply(kind, self.dtype, left.item, right.item))

    __add__, __radd__ = _operators(e.Add)
    __sub__, __rsub__ = _operators(e.Sub)
    __mul__, __rmul__ = _operators(e.Mul)
    __truediv__, __rtruediv__ = _operators(e.Div)
    __and__, __or__, __xor__ = (_operators(kind)[0] for kind in (e.BitAnd, e.BitOr, e.BitXor))
    __lshift__, __rshift__ = (_operators(kind)[0] for kind in (e.ShiftLeft, e.ShiftRight))
    __lt__, __le__, __gt__, __ge__ = (_operators(kind)[0] for kind in (e.LT, e.LE, e.GT, e.GE))
    equals, differs = (_operators(kind)[0] for kind in (e.EQ, e.NE))

    def __neg__(self) -> Term:
        return Term(self.machine, self.dtype, self.machine.apply(e.Neg, self.dtype, self.item))

    def __abs__(self) -> Term:
        return self._call(Op.ABS)

    def round(self) -> Term:
        """The nearest integer, ties to even."""
        return self._call(Op.ROUND)

    def lookup(self, table: tuple[float, ...]) -> Term:
        """The f64 in a table at this index, which must be in range."""
        return Term(self.machine, f64, self.machine.lookup(table, self.item))

    def sqrt(self) -> Term:
        return self._call(Op.SQRT)

    def times_plus(self, factor: Operand, addend: Operand) -> Term:
        """`self * factor + addend`: fused for f32, otherwise a product and a sum."""
        if self.dtype != f32:
            return self * factor + addend
        items = [each.item if isinstance(each, Term) else self.like(each).item for each in (self, factor, addend)]
        return Term(self.machine, f32, self.machine.fused(*items))

    def _call(self, op: Op) -> Term:
        return Term(self.machine, self.dtype, self.machine.call(op, self.dtype, self.item))

    def where(self, yes: Operand, no: Operand) -> Term:
        """`yes` if this condition holds, else `no`; at least one of them is a Term."""
        sample = yes if isinstance(yes, Term) else no
        assert isinstance(sample, Term)
        left = yes if isinstance(yes, Term) else sample.like(yes)
        right = no if isinstance(no, Term) else sample.like(no)
        chosen = self.machine.select(sample.dtype, self.item, left.item, right.item)
        return Term(self.machine, sample.dtype, chosen)

    def unless(self, holds: Term, rare: Callable[[], Term]) -> Term:
        """This value where a condition holds, elsewhere another one, which few arguments need."""
        chosen = self.machine.select_rare(self.dtype, holds.item, self.item, lambda: rare().item)
        return Term(self.machine, self.dtype, chosen)

    def to(self, dtype: DType) -> Term:
        """The value converted."""
        if dtype == self.dtype:
            return self
        return Term(self.machine, dtype, self.machine.convert(self.dtype, dtype, self.item))

    def as_type(self, dtype: DType) -> Term:
        """The same bits as another type of the same width."""
        return Term(self.machine, dtype, self.machine.reinterpret(self.dtype, dtype, self.item))

    @property
    def bits(self) -> Term:
        """The bits of a float as a signed integer."""
        return self.as_type(DType(TypeCode.INT, self.dtype.bits))

    def with_sign_of(self, other: Term) -> Term:
        """This nonnegative number with the sign of another one."""
        return (self.bits | (other.bits & -(1 << (self.dtype.bits - 1)))).as_type(self.dtype)


Operand: TypeAlias = Term | int | float


def clamped(x: Term, low: float, high: float) -> Term:
    """The value limited to `low` .. `high`; nan stays nan."""
    x = (x > high).where(high, x)
    return (x < low).where(low, x)
