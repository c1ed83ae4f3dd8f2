"""An expression in, the name of its value out, at any depth."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from tirlite.codegen import memory
from tirlite.codegen.casts import convert, to_index
from tirlite.codegen.environment import Environment
from tirlite.codegen.faults import any_of
from tirlite.codegen.memory import Place
from tirlite.codegen.operators import binary, compare, unary
from tirlite.codegen.refused import Refused
from tirlite.codegen.text import FunctionText
from tirlite.codegen.types import constant, is_half, register_type
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

_CHECKED: dict[type[Expr], str] = {Add: "sadd", Sub: "ssub", Mul: "smul"}


class Expressions:
    """Writes the instructions of expressions to `out`, with what `environment` says of variables and buffers.

    With `checked`, the flags of all 64-bit sums, differences and products that wrap are collected in `overflows`.
    """

    def __init__(self, out: FunctionText, environment: Environment, *, checked: bool = False) -> None:
        self.out = out
        self.environment = environment
        self.checked = checked
        self.overflows: list[str] = []
        self.externs: dict[str, None] = {}  # names of the extern functions that are called, in order
        self.addresses: dict[str, int] = {}  # symbols of those that are known by their addresses

    def value(self, expr: Expr) -> str:
        """The operand, without its type, that holds the value of `expr`."""
        return self._leaf(expr) or run(self.steps(expr))

    def steps(self, expr: Expr) -> Steps[str]:
        """The coroutine of `value`, for coroutines."""
        return RULES[type(expr)](self, expr)

    def _leaf(self, expr: Expr) -> str | None:
        kind = type(expr)
        if kind is Var:
            return self.environment.variables[expr]  # type: ignore[index]
        if kind is IntImm or kind is FloatImm:
            return constant(expr.value, expr.dtype)  # type: ignore[attr-defined]
        if kind is BufferRef:
            return self.environment.places[expr.buffer].pointer  # type: ignore[attr-defined]
        return None

    def binary(self, expr: Binary) -> Steps[str]:
        a = self._leaf(expr.a) or (yield self.steps(expr.a))
        b = self._leaf(expr.b) or (yield self.steps(expr.b))
        if self.checked and expr.dtype == i64 and type(expr) in _CHECKED:
            return self._checked(_CHECKED[type(expr)], a, b)
        return binary(self.out, type(expr), expr.dtype, a, b, known_integer(expr.b))

    def _checked(self, name: str, a: str, b: str) -> str:
        pair = self.out.call("{i64, i1}", f"llvm.{name}.with.overflow.i64", f"i64 {a}", f"i64 {b}")
        self.overflows.append(self.out.value(f"extractvalue {{i64, i1}} {pair}, 1"))
        return self.out.value(f"extractvalue {{i64, i1}} {pair}, 0")

    def compare(self, expr: Compare) -> Steps[str]:
        a = self._leaf(expr.a) or (yield self.steps(expr.a))
        b = self._leaf(expr.b) or (yield self.steps(expr.b))
        return compare(self.out, type(expr), expr.a.dtype, a, b)

    def unary(self, expr: Unary) -> Steps[str]:
        a = self._leaf(expr.a) or (yield self.steps(expr.a))
        return unary(self.out, type(expr), expr.dtype, a)

    def cast(self, expr: Cast) -> Steps[str]:
        value = self._leaf(expr.value) or (yield self.steps(expr.value))
        return convert(self.out, value, expr.value.dtype, expr.dtype)

    def short_circuit(self, expr: Binary) -> Steps[str]:
        """`and`, `or`: the second operand stands in a block of its own unless evaluating it in vain is harmless."""
        from tirlite.codegen.harmless import is_harmless

        return self.binary(expr) if is_harmless(expr.b) else self._lazy(expr)

    def _lazy(self, expr: Binary) -> Steps[str]:
        out = self.out
        a = self._leaf(expr.a) or (yield self.steps(expr.a))
        before, more, done = out.block, out.label("more"), out.label("done")
        decided = "false" if type(expr) is And else "true"
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
        self._note_wraps(("false", before), (wraps, after))
        return out.phi(expr.dtype, (decided, before), (b, after))

    def _wraps_since(self, known: int) -> str:
        """One flag in the place of those beyond the first `known`: for what is computed on a condition."""
        flags = self.overflows[known:]
        del self.overflows[known:]
        return any_of(self.out, flags) if flags else "false"

    def _note_wraps(self, *incoming: tuple[str, str]) -> None:
        """Collects flags out of blocks of which one has run, where these meet."""
        if any(flag != "false" for flag, _ in incoming):
            self.overflows.append(self.out.phi(bool_, *incoming))

    def select(self, expr: Select) -> Steps[str]:
        condition = self._leaf(expr.condition) or (yield self.steps(expr.condition))
        yes = self._leaf(expr.if_true) or (yield self.steps(expr.if_true))
        no = self._leaf(expr.if_false) or (yield self.steps(expr.if_false))
        return self._choose(expr.condition.dtype, condition, expr.dtype, yes, no)

    def _choose(self, flags: DType, condition: str, dtype: DType, yes: str, no: str) -> str:
        kind = register_type(dtype)
        return self.out.value(f"select {register_type(flags)} {condition}, {kind} {yes}, {kind} {no}")

    def if_then_else(self, expr: Call) -> Steps[str]:
        from tirlite.codegen.harmless import is_harmless

        condition, if_true, if_false = expr.args
        test = self._leaf(condition) or (yield self.steps(condition))
        if is_harmless(if_true) and is_harmless(if_false):
            yes, no = self._leaf(if_true) or (yield self.steps(if_true)), self._leaf(if_false)
            return self._choose(condition.dtype, test, expr.dtype, yes, no or (yield self.steps(if_false)))
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

    def call(self, expr: Call) -> Steps[str]:
        return _CALLS.get(expr.op, Expressions.math)(self, expr)

    def math(self, expr: Call) -> Steps[str]:
        if not expr.op.is_math:
            raise Refused(f"`{expr.op.label}`", "make it a statement of its own")
        from tirlite.codegen.functions import math

        operands = []
        for arg in expr.args:
            operands.append(self._leaf(arg) or (yield self.steps(arg)))
        return math(self.out, expr.op, expr.args[0].dtype, operands)

    def extern(self, expr: Call) -> Steps[str]:
        """A call by C's conventions; buffers and addresses are passed as pointers."""
        name, *args = expr.args
        symbol = name.value if isinstance(name, StringImm) else self._symbol_of(name)
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", symbol):
            raise Refused(f"the extern function {symbol!r}", "name it as in C")
        if any(is_half(each.dtype) for each in (expr, *args)):
            raise Refused("an extern call with a value of 16-bit floating point", "pass it as f32")
        operands = []
        for arg in args:
            value = self._leaf(arg) or (yield self.steps(arg))
            extension = ("signext " if arg.dtype.is_signed else "zeroext ") if _is_small(arg.dtype) else ""
            operands.append(f"{register_type(arg.dtype)} {extension}{value}")
        if isinstance(name, StringImm):
            self.externs[symbol] = None
        return self.out.call(register_type(expr.dtype), symbol, *operands)

    def _symbol_of(self, address: Expr) -> str:
        """A symbol for a function that is known by its address, bound to it when the code is linked."""
        assert isinstance(address, IntImm)
        symbol = f"extern_at_{address.value:x}"
        self.addresses[symbol] = address.value
        return symbol

    def address_of(self, expr: Call) -> Steps[str]:
        element = expr.args[0]
        assert isinstance(element, Load)
        return self.address(self.environment.places[element.buffer], element.indices)

    def access_pointer(self, expr: Call) -> Steps[str]:
        """The address of the element at an offset; extent and mask say what the callee does with it."""
        mention, offset = expr.args[:2]
        assert isinstance(mention, BufferRef)
        value = to_index(self.out, self._leaf(offset) or (yield self.steps(offset)), offset.dtype)
        return memory.address(self.out, self.environment.places[mention.buffer], value)

    def load(self, expr: Load) -> Steps[str]:
        place = self.environment.places[expr.buffer]
        if expr.indices and expr.indices[-1].dtype.lanes > 1:
            return self._load_vector(expr, place)
        return self._load_element(expr, place)

    def _load_element(self, expr: Load, place: Place) -> Steps[str]:
        pointer = yield self.address(place, expr.indices)
        return memory.load(self.out, place, pointer, expr.dtype, self.environment.notes.get(place.buffer, ""))

    def address(self, place: Place, indices: tuple[Expr, ...]) -> Steps[str]:
        """The address of the element at scalar indices."""
        values = []
        for index in indices:
            value = self._leaf(index) or (yield self.steps(index))
            values.append(value if index.dtype == i64 else to_index(self.out, value, index.dtype))
        return memory.address(self.out, place, memory.offset_in(self.out, place, values))

    def _load_vector(self, expr: Load, place: Place) -> Steps[str]:
        last = expr.indices[-1]
        if isinstance(last, Ramp) and is_unit_ramp(last):
            pointer = yield self.address(place, (*expr.indices[:-1], last.base))
            return memory.load(self.out, place, pointer, expr.dtype, self.environment.notes.get(place.buffer, ""))
        pointers = yield self.lane_addresses(place, expr.indices)
        return memory.gather(self.out, place, pointers, expr.dtype)

    def lane_addresses(self, place: Place, indices: tuple[Expr, ...]) -> Steps[list[str]]:
        """The address of each lane of a vector access."""
        last = indices[-1]
        row = yield self.address(place, (*indices[:-1], IntImm(i64, 0)))
        value = self._leaf(last) or (yield self.steps(last))
        vector = to_index(self.out, value, last.dtype)
        kind = register_type(i64.with_lanes(last.dtype.lanes))
        lanes = [self.out.value(f"extractelement {kind} {vector}, i64 {lane}") for lane in range(last.dtype.lanes)]
        moved = Place(place.buffer, row, ("1",), place.align, place.extents[-1:])
        return [memory.address(self.out, moved, lane) for lane in lanes]

    def ramp(self, expr: Ramp) -> Steps[str]:
        base = self._leaf(expr.base) or (yield self.steps(expr.base))
        stride = self._leaf(expr.stride) or (yield self.steps(expr.stride))
        kind, scalar = register_type(expr.dtype), register_type(expr.base.dtype)
        lanes = ", ".join(f"{scalar} {lane}" for lane in range(expr.lanes))
        steps = self.out.value(f"mul {kind} <{lanes}>, {self._splat(stride, expr.dtype)}")
        return self.out.value(f"add {kind} {steps}, {self._splat(base, expr.dtype)}")

    def broadcast(self, expr: Broadcast) -> Steps[str]:
        value = self._leaf(expr.value) or (yield self.steps(expr.value))
        return self._splat(value, expr.dtype)

    def _splat(self, value: str, dtype: DType) -> str:
        scalar = register_type(dtype.scalar)
        if not value.startswith("%"):
            return f"splat ({scalar} {value})"
        kind = register_type(dtype)
        first = self.out.value(f"insertelement {kind} poison, {scalar} {value}, i64 0")
        return self.out.value(f"shufflevector {kind} {first}, {kind} poison, <{dtype.lanes} x i32> zeroinitializer")

    def let(self, expr: LetExpr) -> Steps[str]:
        self.environment.bind(expr.var, self._leaf(expr.value) or (yield self.steps(expr.value)))
        return self._leaf(expr.body) or (yield self.steps(expr.body))


def is_unit_ramp(index: Expr) -> bool:
    """Whether `index` is a Ramp over neighbouring elements.

    A narrow unsigned one may go on at 0; any other that wraps around has an index outside of every buffer.
    """
    may_go_on = not index.dtype.is_signed and index.dtype.bits < 64
    is_unit = isinstance(index, Ramp) and isinstance(index.stride, IntImm) and index.stride.value == 1
    return is_unit and not may_go_on


def _is_small(dtype: DType) -> bool:
    return dtype.lanes == 1 and not dtype.is_float and dtype.bits < 32


def known_integer(expr: Expr) -> int | None:
    """The integer that `expr` is in every lane, where it is constant."""
    while isinstance(expr, Broadcast):
        expr = expr.value
    return expr.value if isinstance(expr, IntImm) else None


Rule: TypeAlias = Callable[[Expressions, Any], Steps[str]]

_CALLS: dict[Op, Rule] = {
    Op.IF_THEN_ELSE: Expressions.if_then_else,
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
