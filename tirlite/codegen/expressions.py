"""Emits the value of an expression, at any depth."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from tirlite.analysis.integers.clamped import is_within
from tirlite.codegen import masked, memory, strided
from tirlite.codegen.arithmetic.operators import binary, compare, convert, to_index, unary
from tirlite.codegen.faults import any_of, require_inside
from tirlite.codegen.in_vain import is_harmless
from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import FALSE, TRUE, Value, constant, is_half, register_type
from tirlite.codegen.memory import Environment, Place
from tirlite.codegen.refused import Refused
from tirlite.ir import (
    Add,
    And,
    Binary,
    Broadcast,
    BufferRef,
    Call,
    Cast,
    Compare,
    DType,
    Expr,
    FloatImm,
    IntImm,
    LetExpr,
    Load,
    Mul,
    Op,
    Or,
    Ramp,
    Select,
    Steps,
    StringImm,
    Sub,
    Unary,
    Var,
    bool_,
    i64,
    run,
)
from tirlite.ir.checked import bare, checked, is_checked
from tirlite.ir.masked import mask_of, masked as masked_index, unmasked
from tirlite.record import cached_property

if TYPE_CHECKING:
    from tirlite.analysis.bounds import Bounds
    from tirlite.analysis.facts import Facts

_CHECKED: dict[type[Expr], str] = {Add: "sadd", Sub: "ssub", Mul: "smul"}


class Expressions:
    """Writes the instructions of expressions to `out`, with what `environment` says of variables and buffers.

    With `checked`, the flags of all 64-bit sums, differences and products that wrap are collected in `overflows`.
    What `is_alone` is in no loop that goes by vectors. By `facts` of the function, loads are known that are in bounds
    whatever is tested around them.
    """

    def __init__(
        self, out: FunctionText, environment: Environment, *, checked: bool = False, facts: Facts | None = None
    ) -> None:
        self.out = out
        self.environment = environment
        self.checked = checked
        self.is_alone = False
        self.facts = facts
        self.overflows: list[Value] = []

    @cached_property
    def _bounds(self) -> Bounds | None:
        from tirlite.analysis.bounds import Bounds

        return None if self.facts is None else Bounds(self.facts.space)

    def _is_harmless(self, expr: Expr) -> bool:
        """Whether an expression may be evaluated in vain: flags that are collected tell of what is asked for alone."""
        return not self.checked and is_harmless(expr, self._bounds)

    def value(self, expr: Expr) -> Value:
        """The value of `expr`."""
        return self._leaf(expr) or run(self.steps(expr))

    def steps(self, expr: Expr) -> Steps[Value]:
        """The coroutine of `value`, for coroutines."""
        return RULES[type(expr)](self, expr)

    def _leaf(self, expr: Expr) -> Value | None:
        kind = type(expr)
        if kind is Var:
            return self.environment.variables[expr]  # type: ignore[index]
        if kind is IntImm or kind is FloatImm:
            return constant(expr.value, expr.dtype)  # type: ignore[attr-defined]
        if kind is BufferRef:
            return self.environment.places[expr.buffer].pointer  # type: ignore[attr-defined]
        return None

    def binary(self, expr: Binary) -> Steps[Value]:
        a = self._leaf(expr.a) or (yield self.steps(expr.a))
        b = self._leaf(expr.b) or (yield self.steps(expr.b))
        if self.checked and expr.dtype == i64 and type(expr) in _CHECKED:
            value, wraps = self.out.overflowing(_CHECKED[type(expr)], a, b)
            self.overflows.append(wraps)
            return value
        return binary(self.out, type(expr), a, b)

    def compare(self, expr: Compare) -> Steps[Value]:
        a = self._leaf(expr.a) or (yield self.steps(expr.a))
        b = self._leaf(expr.b) or (yield self.steps(expr.b))
        return compare(self.out, type(expr), a, b)

    def unary(self, expr: Unary) -> Steps[Value]:
        a = self._leaf(expr.a) or (yield self.steps(expr.a))
        return unary(self.out, type(expr), a)

    def cast(self, expr: Cast) -> Steps[Value]:
        value = self._leaf(expr.value) or (yield self.steps(expr.value))
        if expr.value.dtype.is_float and expr.dtype.is_integer and not is_half(value.dtype):
            from tirlite.codegen.arithmetic.saturation import to_integer

            fits = is_within(expr.value, expr.dtype)
            return to_integer(self.out, value, expr.dtype, is_within=fits, is_alone=self.is_alone)
        return convert(self.out, value, expr.dtype)

    def short_circuit(self, expr: Binary) -> Steps[Value]:
        """`and`, `or`: the second operand stands in a block of its own unless evaluating it in vain is harmless."""

        return self.binary(expr) if self._is_harmless(expr.b) else self._lazy(expr)

    def _lazy(self, expr: Binary) -> Steps[Value]:
        out = self.out
        a = self._leaf(expr.a) or (yield self.steps(expr.a))
        before, more, done = out.block, out.label("more"), out.label("done")
        decided = FALSE if type(expr) is And else TRUE
        out.branch_if(a, *((more, done) if type(expr) is And else (done, more)))
        out.start(more)
        out.conditions += 1
        known = len(self.overflows)
        b = self._leaf(expr.b) or (yield self.steps(expr.b))
        wraps = self._wraps_since(known)
        out.conditions -= 1
        after = out.block
        out.branch(done)
        out.start(done)
        self._note_wraps((FALSE, before), (wraps, after))
        return out.phi(expr.dtype, (decided, before), (b, after))

    def _wraps_since(self, known: int) -> Value:
        """One flag in the place of those beyond the first `known`: for what is computed on a condition."""
        flags = self.overflows[known:]
        del self.overflows[known:]
        return any_of(self.out, flags) if flags else FALSE

    def _note_wraps(self, *incoming: tuple[Value, str]) -> None:
        """Collects flags out of blocks of which one has run, where these meet."""
        if any(flag is not FALSE for flag, _ in incoming):
            self.overflows.append(self.out.phi(bool_, *incoming))

    def select(self, expr: Select) -> Steps[Value]:
        condition = self._leaf(expr.condition) or (yield self.steps(expr.condition))
        yes = self._leaf(expr.if_true) or (yield self.steps(expr.if_true))
        no = self._leaf(expr.if_false) or (yield self.steps(expr.if_false))
        return self.out.select(condition, yes, no)

    def if_then_else(self, expr: Call) -> Steps[Value]:

        condition, if_true, if_false = expr.args
        test = self._leaf(condition) or (yield self.steps(condition))
        if self._is_harmless(if_true) and self._is_harmless(if_false):
            yes, no = self._leaf(if_true) or (yield self.steps(if_true)), self._leaf(if_false)
            return self.out.select(test, yes, no or (yield self.steps(if_false)))
        out = self.out
        then, otherwise, done = out.label("then"), out.label("else"), out.label("done")
        incoming, wraps = [], []
        out.branch_if(test, then, otherwise)
        out.conditions += 1
        for label, side in ((then, if_true), (otherwise, if_false)):
            out.start(label)
            known = len(self.overflows)
            value = self._leaf(side) or (yield self.steps(side))
            wraps.append((self._wraps_since(known), out.block))
            incoming.append((value, out.block))
            out.branch(done)
        out.conditions -= 1
        out.start(done)
        self._note_wraps(*wraps)
        return out.phi(expr.dtype, *incoming)

    def call(self, expr: Call) -> Steps[Value]:
        return _CALLS.get(expr.op, Expressions.math)(self, expr)

    def math(self, expr: Call) -> Steps[Value]:
        if not expr.op.is_math:
            raise Refused(f"`{expr.op.label}`", "make it a statement of its own")
        from tirlite.codegen.arithmetic.functions import math

        operands = []
        for arg in expr.args:
            operands.append(self._leaf(arg) or (yield self.steps(arg)))
        return math(self.out, expr.op, operands)

    def any_lane(self, expr: Call) -> Steps[Value]:
        flags = self._leaf(expr.args[0]) or (yield self.steps(expr.args[0]))
        return self.out.any_lane(flags)

    def interleave(self, expr: Call) -> Steps[Value]:
        """Lanes of the lower or the upper halves of two vectors in turn."""
        a = self._leaf(expr.args[0]) or (yield self.steps(expr.args[0]))
        b = self._leaf(expr.args[1]) or (yield self.steps(expr.args[1]))
        return self.out.interleaved(a, b, is_high=expr.op is Op.INTERLEAVE_HIGH)

    def dot(self, expr: Call) -> Steps[Value]:
        from tirlite.codegen.arithmetic.dots import dot

        operands = []
        for arg in expr.args:
            operands.append(self._leaf(arg) or (yield self.steps(arg)))
        return dot(self.out, *operands)

    def marked_index(self, expr: Call) -> Steps[Value]:
        """What is marked as an index, or has a mask, elsewhere than in an access: a number like any other."""
        index = expr.args[0]
        return self._leaf(index) or (yield self.steps(index))

    def extern(self, expr: Call) -> Steps[Value]:
        """A call by C's conventions; buffers and addresses are passed as pointers."""
        name, *args = expr.args
        symbol = name.value if isinstance(name, StringImm) else self._symbol_of(name)
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", symbol):
            raise Refused(f"the extern function {symbol!r}", "name it as in C")
        if any(is_half(each.dtype) for each in (expr, *args)):
            raise Refused("an extern call with a value of 16-bit floating point", "pass it as f32")
        operands, texts = [], []
        for arg in args:
            value = self._leaf(arg) or (yield self.steps(arg))
            extension = ("signext " if arg.dtype.is_signed else "zeroext ") if _is_small(arg.dtype) else ""
            operands.append(value)
            texts.append(f"{register_type(arg.dtype)} {extension}{value.text}")
        if isinstance(name, StringImm):
            self.out.module.externs[symbol] = None
        self.out.declare(register_type(expr.dtype), symbol, operands)
        return self.out.value(expr.dtype, f"call {register_type(expr.dtype)} @{symbol}({', '.join(texts)})", *operands)

    def _symbol_of(self, address: Expr) -> str:
        """A symbol for a function that is known by its address, bound to it when the code is linked."""
        assert isinstance(address, IntImm)
        symbol = f"extern_at_{address.value:x}"
        self.out.module.addresses[symbol] = address.value
        return symbol

    def address_of(self, expr: Call) -> Steps[Value]:
        element = expr.args[0]
        assert isinstance(element, Load)
        return self.address(self.environment.places[element.buffer], element.indices)

    def access_pointer(self, expr: Call) -> Steps[Value]:
        """The address of the element at an offset; extent and mask say what the callee does with it."""
        mention, offset = expr.args[:2]
        assert isinstance(mention, BufferRef)
        value = to_index(self.out, self._leaf(offset) or (yield self.steps(offset)))
        return memory.address(self.out, self.environment.places[mention.buffer], value)

    def load(self, expr: Load) -> Steps[Value]:
        place, indices = self.environment.places[expr.buffer], expr.indices
        if mask_of(indices) is not None:
            pointer, on = yield self.masked_pointer(place, indices)
            return masked.load(self.out, place, pointer, on, expr.dtype, self.environment.notes.get(place.buffer, ""))
        if indices and indices[-1].dtype.lanes > 1:
            if masked.is_gather(place, indices[-1]):
                gathered: Value = yield self._from_lanes(place, expr)
                return gathered
            if (stride := strided.stride_of(place, indices[-1])) is not None:
                assert isinstance(indices[-1], Ramp)
                first = yield self.address(place, (*indices[:-1], indices[-1].base))
                note = self.environment.notes.get(place.buffer, "")
                return strided.load(self.out, place, first, stride, expr.dtype, note)
            first, *others = yield self.pointers(place, indices)
            if others:
                return memory.gather(self.out, place, [first, *others], expr.dtype)
        else:
            first = yield self.address(place, indices)
        return memory.load(self.out, place, first, expr.dtype, self.environment.notes.get(place.buffer, ""))

    def _from_lanes(self, place: Place, load: Load) -> Steps[Value]:
        """The elements at a vector of indices, which are not checked here, by one instruction where there is one."""
        values: list[Value] = []
        for index in load.indices:
            value = self._leaf(index) or (yield self.steps(index))
            values.append(to_index(self.out, value))
        note = self.environment.notes.get(place.buffer, "")
        pointers = masked.address(self.out, place, values)
        return masked.load(self.out, place, pointers, masked.all_lanes(load.dtype.lanes), load.dtype, note)

    def pointers(self, place: Place, indices: tuple[Expr, ...]) -> Steps[list[Value]]:
        """The address of an element, or of the first of neighbours; else that of each lane."""
        last = indices[-1] if indices else None
        if last is None or last.dtype.lanes == 1:
            return [(yield self.address(place, indices))]
        if isinstance(last, Ramp) and are_neighbours(place, last):
            return [(yield self.address(place, (*indices[:-1], last.base)))]
        lanes: list[Value] = yield self._lane_addresses(place, indices[:-1], last)
        return lanes

    def computed_index(self, index: Expr) -> Expr:
        """An index with the same marks that has its value already."""
        inner, mask = bare(index), mask_of((index,))
        computed: Expr
        if mask is not None:
            computed = masked_index(self.computed_index(unmasked(index)), self._named(mask))
        elif isinstance(inner, Ramp):
            computed = Ramp(self.computed_index(inner.base), inner.stride, inner.lanes)
        else:
            computed = self._named(inner)
        return checked(computed) if is_checked(index) else computed

    def _named(self, expr: Expr) -> Var:
        """A variable that has the value of an expression, computed here."""
        var = Var("index", expr.dtype)
        self.environment.variables[var] = self.value(expr)
        return var

    def masked_pointer(self, place: Place, indices: tuple[Expr, ...]) -> Steps[tuple[Value, Value]]:
        """The address of the first of neighbours, or the addresses of all lanes; and which lanes are on."""
        given, mask = [], mask_of(indices)
        assert mask is not None
        for index in indices:
            inner = unmasked(index)
            if index is indices[-1] and not is_checked(index) and are_neighbours(place, inner):
                assert isinstance(inner, Ramp)
                inner = inner.base  # the first lane, wherever the others are
            value = self._leaf(inner) or (yield self.steps(inner))
            given.append(settled(self.out, value) if is_checked(index) else value)
        on: Value = self._leaf(mask) or (yield self.steps(mask))
        values = [to_index(self.out, each) for each in given]
        axes = [axis for axis, index in enumerate(indices) if is_checked(index)]
        if axes:
            own = [values[axis] for axis in axes], [given[axis] for axis in axes]
            require_inside(self.out, place, axes, *own, self.environment.counted(), on)
        return masked.address(self.out, place, values), on

    def address(self, place: Place, indices: tuple[Expr, ...]) -> Steps[Value]:
        """The address of the element at scalar indices."""
        given, axes = [], []
        for axis, index in enumerate(indices):
            if type(index) is Call and index.op is Op.CHECKED:
                axes.append(axis)
                value = self._leaf(index.args[0]) or (yield self.steps(index.args[0]))
                given.append(settled(self.out, value))
                continue
            given.append(self._leaf(index) or (yield self.steps(index)))
        values = [each if each.dtype is i64 else to_index(self.out, each) for each in given]
        if axes:
            own = [values[axis] for axis in axes], [given[axis] for axis in axes]
            require_inside(self.out, place, axes, *own, self.environment.counted())
        return memory.address(self.out, place, memory.offset_in(self.out, place, values))

    def _lane_addresses(self, place: Place, row: tuple[Expr, ...], last: Expr) -> Steps[list[Value]]:
        """The address of each lane of a vector access; that of the first alone, if they are neighbours."""
        start = yield self.address(place, (*row, IntImm(i64, 0)))
        index = bare(last)
        given = self._leaf(index) or (yield self.steps(index))
        given = settled(self.out, given) if is_checked(last) else given
        vector = to_index(self.out, given)
        if is_checked(last):
            require_inside(self.out, place, [len(row)], [vector], [given], self.environment.counted())
        lanes = 1 if are_neighbours(place, index) else last.dtype.lanes
        moved = Place(place.buffer, start, place.strides[-1:], place.align, place.extents[-1:])
        offsets = [memory.offset_in(self.out, moved, [self.out.extract(vector, lane)]) for lane in range(lanes)]
        return [memory.address(self.out, moved, offset) for offset in offsets]

    def ramp(self, expr: Ramp) -> Steps[Value]:
        base = self._leaf(expr.base) or (yield self.steps(expr.base))
        stride = self._leaf(expr.stride) or (yield self.steps(expr.stride))
        return ramp(self.out, base, stride, expr.lanes)

    def broadcast(self, expr: Broadcast) -> Steps[Value]:
        value = self._leaf(expr.value) or (yield self.steps(expr.value))
        return self.out.splat(value, expr.lanes)

    def let(self, expr: LetExpr) -> Steps[Value]:
        self.environment.variables[expr.var] = self._leaf(expr.value) or (yield self.steps(expr.value))
        return self._leaf(expr.body) or (yield self.steps(expr.body))


def settled(out: FunctionText, index: Value) -> Value:
    """An index to be checked: to LLVM, memory that was never written may hold another number at each look."""
    return index if index.number is not None else out.unary("freeze", index)


def are_neighbours(place: Place, index: Expr) -> bool:
    """Whether a vector access at this last index touches elements that lie side by side."""
    return is_unit_ramp(index) and place.strides[-1].number == 1


def is_unit_ramp(index: Expr) -> bool:
    """Whether `index` is a Ramp over neighbouring indices.

    A narrow unsigned one may go on at 0; any other that wraps around has an index outside of every buffer.
    """
    may_go_on = not index.dtype.is_signed and index.dtype.bits < 64
    is_unit = isinstance(index, Ramp) and isinstance(index.stride, IntImm) and index.stride.value == 1
    return is_unit and not may_go_on


def _is_small(dtype: DType) -> bool:
    return dtype.lanes == 1 and not dtype.is_float and dtype.bits < 32


def ramp(out: FunctionText, base: Value, stride: Value, lanes: int) -> Value:
    """`base` plus 0, 1 and so on times `stride`."""
    numbers = ", ".join(f"{register_type(base.dtype)} {lane}" for lane in range(lanes))
    steps = out.op("mul", Value(base.dtype.with_lanes(lanes), f"<{numbers}>"), out.splat(stride, lanes))
    return out.op("add", steps, out.splat(base, lanes))


Rule: TypeAlias = Callable[[Expressions, Any], Steps[Value]]

_CALLS: dict[Op, Rule] = {
    Op.IF_THEN_ELSE: Expressions.if_then_else,
    Op.ANY: Expressions.any_lane,
    Op.INTERLEAVE_LOW: Expressions.interleave,
    Op.INTERLEAVE_HIGH: Expressions.interleave,
    Op.DOT: Expressions.dot,
    Op.CHECKED: Expressions.marked_index,
    Op.MASKED: Expressions.marked_index,
    Op.CALL_EXTERN: Expressions.extern,
    Op.ADDRESS_OF: Expressions.address_of,
    Op.ACCESS_PTR: Expressions.access_pointer,
}

# Leaves are not here: they cost no instruction. A StringImm stands in calls alone, which read it there.
RULES: dict[type[Expr], Rule] = {
    **dict.fromkeys(Binary.__subclasses__(), Expressions.binary),
    **dict.fromkeys(Compare.__subclasses__(), Expressions.compare),
    **dict.fromkeys(Unary.__subclasses__(), Expressions.unary),
    And: Expressions.short_circuit,
    Or: Expressions.short_circuit,
    Cast: Expressions.cast,
    Select: Expressions.select,
    Load: Expressions.load,
    Ramp: Expressions.ramp,
    Broadcast: Expressions.broadcast,
    Call: Expressions.call,
    LetExpr: Expressions.let,
}
