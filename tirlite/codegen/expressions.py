"""Emits the value of an expression, at any depth."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tirlite.codegen import memory
from tirlite.codegen.arithmetic import binary, compare, convert, to_index, unary
from tirlite.codegen.faults import require_inside
from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import FALSE, TRUE, Value, constant, is_half, register_type
from tirlite.codegen.memory import Environment, Place
from tirlite.codegen.refused import Refused
from tirlite.ir.checked import bare, checked, has_check, is_checked, mask_of, masked as masked_index, unmasked
from tirlite.ir.dtype import DType, i64
from tirlite.ir.expr import (
    And,
    Binary,
    Broadcast,
    Buffer,
    BufferRef,
    Call,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IntImm,
    LetExpr,
    Load,
    Max,
    Min,
    Or,
    Ramp,
    Select,
    StringImm,
    Unary,
    Var,
)
from tirlite.ir.op import Op
from tirlite.ir.stmt import For, While
from tirlite.ir.trampoline import Steps, run
from tirlite.ir.walk import is_constant
from tirlite.late import LateModule
from tirlite.record import record

if TYPE_CHECKING:
    from tirlite.analysis.facts import Facts
    from tirlite.codegen import gathers
else:
    gathers = LateModule("tirlite.codegen.gathers")  # only for loads at a vector of indices


@record
class Side:
    """A value that is computed in a basic block of its own, a fact about it, and the block."""

    value: Value
    fact: object
    block: str


class Expressions:
    """Emits expressions to `out`; `environment` has the values of variables and the places of buffers.

    `is_alone`: no vectorized loop contains what is emitted. `innermost`: the innermost loop around it.
    `facts`: facts of the function, by which loads are proved in bounds whatever conditions surround them.
    """

    def __init__(self, out: FunctionText, environment: Environment, facts: Facts | None = None) -> None:
        self.joins_rows = True  # a nest over whole rows may become one loop over all their elements
        self.out = out
        self.environment = environment
        self.is_alone = False
        self.innermost: For | While | None = None
        self.facts = facts

    def _may_be_speculated(self, expr: Expr) -> bool:
        """Whether the expression may be evaluated even if the program would skip it."""
        from tirlite.codegen.speculation import may_be_speculated

        return may_be_speculated(expr, None if self.facts is None else self.facts.bounds)

    def value(self, expr: Expr) -> Value:
        return self._leaf(expr) or run(self.steps(expr))

    def kept(self, expr: Expr) -> Value:
        """The value to be stored or bound; in a minimum or maximum, values carried by `innermost` come last."""
        if self.innermost is not None and expr.dtype.is_integer:
            from tirlite.codegen.loops.carried import carried_last

            expr = carried_last(expr, self.innermost)
        return self.value(expr)

    def steps(self, expr: Expr) -> Steps[Value]:
        """`value` as a coroutine, for use in coroutines."""
        rule: Steps[Value] = getattr(self, RULES[type(expr)])(expr)
        return rule

    def good(self, expr: Expr, use: str) -> Value:
        """The value of an expression that must not be poison; `use` tells messages what for."""
        value = self.value(expr)
        self.demand_good(value, use)
        return value

    def demand_good(self, value: Value, use: str) -> None:
        """Stops if the value is poison. Only debug code checks this."""

    def computed(self, value: Value, *_operands: Value) -> Value:
        """A value computed lane by lane from operands; debug code gives it their poison marks."""
        return value

    def exposed(self, buffer: Buffer) -> None:
        """Called where the buffer's address escapes: others may write it from here on."""

    def bind(self, var: Var, value: Value) -> None:
        self.environment.variables[var] = value

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
        if isinstance(expr, Min | Max) and expr.dtype.is_integer:
            from tirlite.analysis.integers.float_ends import rounded_between

            if (found := rounded_between(expr)) is not None:
                from tirlite.codegen.arithmetic import to_integer_between

                cast, low, high = found
                value = self._leaf(cast.value) or (yield self.steps(cast.value))
                return self.computed(to_integer_between(self.out, value, expr.dtype, low, high), value)
        a = self._leaf(expr.a) or (yield self.steps(expr.a))
        b = self._leaf(expr.b) or (yield self.steps(expr.b))
        return self.computed(binary(self.out, type(expr), a, b), a, b)

    def compare(self, expr: Compare) -> Steps[Value]:
        a = self._leaf(expr.a) or (yield self.steps(expr.a))
        b = self._leaf(expr.b) or (yield self.steps(expr.b))
        return self.computed(compare(self.out, type(expr), a, b), a, b)

    def unary(self, expr: Unary) -> Steps[Value]:
        a = self._leaf(expr.a) or (yield self.steps(expr.a))
        return self.computed(unary(self.out, type(expr), a), a)

    def cast(self, expr: Cast) -> Steps[Value]:
        value = self._leaf(expr.value) or (yield self.steps(expr.value))
        if expr.value.dtype.is_float and expr.dtype.is_integer and not is_half(value.dtype):
            from tirlite.analysis.integers.float_ends import is_within
            from tirlite.codegen.arithmetic import to_integer

            fits = is_within(expr.value, expr.dtype)
            is_alone = self.is_alone or (self.innermost is not None and has_check(self.innermost))
            found = to_integer(self.out, value, expr.dtype, is_within=fits, is_alone=is_alone)
            return self.computed(found, value)
        return self.computed(convert(self.out, value, expr.dtype), value)

    def short_circuit(self, expr: Binary) -> Steps[Value]:
        """`and`, `or`: the second operand gets a block of its own unless it may be speculated."""

        return self.binary(expr) if self._may_be_speculated(expr.b) else self._lazy(expr)

    def _lazy(self, expr: Binary) -> Steps[Value]:
        out, is_and = self.out, type(expr) is And
        a = self._leaf(expr.a) or (yield self.steps(expr.a))
        self.demand_good(a, f"the left side of `{'and' if is_and else 'or'}`")
        before, more, done = out.block, out.label("more"), out.label("done")
        out.branch_if(a, *((more, done) if is_and else (done, more)))
        out.start(more)
        side = yield self._side(expr.b, done)
        out.start(done)
        return self.merged(expr.dtype, Side(FALSE if is_and else TRUE, None, before), side)

    def _side(self, expr: Expr, done: str) -> Steps[Side]:
        """Emits an expression in the current block, which is left for `done`."""
        self.out.conditions += 1
        value = self._leaf(expr) or (yield self.steps(expr))
        side = Side(value, self.fact_of(value), self.out.block)
        self.out.conditions -= 1
        self.out.branch(done)
        return side

    def fact_of(self, _value: Value) -> object:
        """A fact about the value that must be known behind its block; subclasses define it."""
        return None

    def merged(self, dtype: DType, *sides: Side) -> Value:
        """The phi of the sides' values."""
        return self.out.phi(dtype, *((side.value, side.block) for side in sides))

    def picked(self, condition: Value, yes: Value, no: Value) -> Value:
        """The select between two values that are both computed."""
        return self.out.select(condition, yes, no)

    def select(self, expr: Select) -> Steps[Value]:
        condition = self._leaf(expr.condition) or (yield self.steps(expr.condition))
        yes = self._leaf(expr.if_true) or (yield self.steps(expr.if_true))
        no = self._leaf(expr.if_false) or (yield self.steps(expr.if_false))
        return self.picked(condition, yes, no)

    def if_then_else(self, expr: Call) -> Steps[Value]:
        condition, *sides = expr.args
        test = self._leaf(condition) or (yield self.steps(condition))
        if all(map(self._may_be_speculated, sides)):
            yes, no = self._leaf(sides[0]) or (yield self.steps(sides[0])), self._leaf(sides[1])
            return self.out.select(test, yes, no or (yield self.steps(sides[1])))
        self.demand_good(test, "the condition of a conditional expression")
        out = self.out
        labels, done = (out.label("then"), out.label("else")), out.label("done")
        found: list[Side] = []
        out.branch_if(test, *labels)
        for label, side in zip(labels, sides, strict=True):
            out.start(label)
            found.append((yield self._side(side, done)))
        out.start(done)
        return self.merged(expr.dtype, *found)

    def call(self, expr: Call) -> Steps[Value]:
        rule: Steps[Value] = getattr(self, _CALLS.get(expr.op, "math"))(expr)
        return rule

    def math(self, expr: Call) -> Steps[Value]:
        if not expr.op.is_math:
            raise Refused(f"`{expr.op.label}`", "make it a statement of its own")
        from tirlite.codegen.arithmetic.functions import math

        operands = []
        for arg in expr.args:
            operands.append(self._leaf(arg) or (yield self.steps(arg)))
        return self.computed(math(self.out, expr.op, operands), *operands)

    def any_lane(self, expr: Call) -> Steps[Value]:
        flags = self._leaf(expr.args[0]) or (yield self.steps(expr.args[0]))
        return self.out.any_lane(flags)

    def interleave(self, expr: Call) -> Steps[Value]:
        """Alternates the lanes of the lower or of the upper halves of two vectors."""
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
        """An index that is marked for a check or masked, used elsewhere than in an access: its plain value."""
        index = expr.args[0]
        return self._leaf(index) or (yield self.steps(index))

    def extern(self, expr: Call) -> Steps[Value]:
        """A call by the C calling convention; buffers and addresses are passed as pointers."""
        name, *args = expr.args
        symbol = name.value if isinstance(name, StringImm) else self._symbol_of(name)
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", symbol):
            raise Refused(f"the extern function {symbol!r}", "name it as in C")
        if any(is_half(each.dtype) for each in (expr, *args)):
            raise Refused("an extern call with a value of 16-bit floating point", "pass it as f32")
        operands, texts = [], []
        told = f"`{symbol}`" if isinstance(name, StringImm) else "an extern function"
        for number, arg in enumerate(args):
            if isinstance(arg, BufferRef):
                self.exposed(arg.buffer)
            value = self._leaf(arg) or (yield self.steps(arg))
            self.demand_good(value, f"argument {number} of {told}")
            extension = ("signext " if arg.dtype.is_signed else "zeroext ") if _is_small(arg.dtype) else ""
            operands.append(value)
            texts.append(f"{register_type(arg.dtype)} {extension}{value.text}")
        if isinstance(name, StringImm):
            self.out.module.externs[symbol] = None
        self.out.declare(register_type(expr.dtype), symbol, operands)
        return self.out.value(expr.dtype, f"call {register_type(expr.dtype)} @{symbol}({', '.join(texts)})", *operands)

    def _symbol_of(self, address: Expr) -> str:
        """The symbol of a function that is given by its address; the linker binds it."""
        assert isinstance(address, IntImm)
        symbol = f"extern_at_{address.value:x}"
        self.out.module.addresses[symbol] = address.value
        return symbol

    def address_of(self, expr: Call) -> Steps[Value]:
        element = expr.args[0]
        assert isinstance(element, Load)
        self.exposed(element.buffer)
        return self.address(self.environment.places[element.buffer], element.indices)

    def access_pointer(self, expr: Call) -> Steps[Value]:
        """The address of the element at an offset; extent and access mode do not matter to the code."""
        mention, offset = expr.args[:2]
        assert isinstance(mention, BufferRef)
        self.exposed(mention.buffer)
        value = to_index(self.out, self._leaf(offset) or (yield self.steps(offset)))
        return memory.address(self.out, self.environment.places[mention.buffer], value)

    def load(self, expr: Load) -> Steps[Value]:
        place, indices = self.environment.places[expr.buffer], expr.indices
        note = self.environment.notes.get(expr.buffer, "")
        if mask_of(indices) is not None:
            pointer, on = yield self.masked_pointer(place, indices, memory.apart_under_mask(self.out, place, indices))
            return memory.load_masked(self.out, place, indices, pointer, on, expr.dtype, note)
        if indices and indices[-1].dtype.lanes > 1:
            if gathers.is_gathered(self.out, place, indices[-1]):
                lanes: Value = yield self._from_lanes(place, expr)
                return lanes
            if (stride := memory.stride_between(place, indices[-1])) is not None:
                assert isinstance(indices[-1], Ramp)
                phase, begin = self.environment.phases.get(expr, (None, indices[-1].base))
                first = yield self.address(place, (*indices[:-1], begin))
                return memory.load_strided(self.out, place, first, stride, expr.dtype, note, phase)
            if memory.is_reversed(place, indices[-1]):
                assert isinstance(indices[-1], Ramp)
                first = yield self.address(place, (*indices[:-1], indices[-1].base))
                return memory.load_reversed(self.out, place, first, expr.dtype, note)
            first, *others = yield self.pointers(place, indices)
            if others:
                return memory.gather(self.out, place, [first, *others], expr.dtype)
        else:
            first = yield self.address(place, indices)
        found = memory.load(self.out, place, first, expr.dtype, self.environment.notes.get(place.buffer, ""))
        # Without the freeze, LLVM turns the store of a select into a masked store of the changed lanes.
        return self.out.unary("freeze", found) if expr.buffer in self.environment.mixed else found

    def _from_lanes(self, place: Place, load: Load) -> Steps[Value]:
        """The elements at an unchecked vector of indices, by a gather instruction if there is one."""
        values: list[Value] = []
        for index in (*load.indices[:-1], gathers.narrowest(load.indices[-1])):
            values.append(self._leaf(index) or (yield self.steps(index)))
        return gathers.gathered(self.out, place, values, load.dtype, self.environment.notes.get(place.buffer, ""))

    def pointers(self, place: Place, indices: tuple[Expr, ...]) -> Steps[list[Value]]:
        """The address of the element, or of the first of adjacent elements; else one address for each lane."""
        last = indices[-1] if indices else None
        if last is None or last.dtype.lanes == 1:
            return [(yield self.address(place, indices))]
        if isinstance(last, Ramp) and are_neighbours(place, last):
            return [(yield self.address(place, (*indices[:-1], last.base)))]
        if isinstance(last, Ramp) and (apart := memory.stride_between(place, last)) is not None:
            first = yield self.address(place, (*indices[:-1], last.base))
            return memory.pointers_apart(self.out, place, first, apart, last.lanes)
        lanes: list[Value] = yield self._lane_addresses(place, indices[:-1], last)
        return lanes

    def computed_index(self, index: Expr) -> Expr:
        """The index with its checks and mask kept, but its parts replaced by variables that hold their values."""
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
        """A new variable that holds the value of an expression, computed here."""
        var = Var("index", expr.dtype)
        self.environment.variables[var] = self.value(expr)
        return var

    def masked_pointer(self, place: Place, indices: tuple[Expr, ...], apart: int = 1) -> Steps[tuple[Value, Value]]:
        """The address of the first of elements `apart` or adjacent, or those of all lanes, and the mask."""
        given, mask = [], mask_of(indices)
        assert mask is not None
        for index in indices:
            inner = unmasked(index)
            if index is indices[-1] and not is_checked(index) and (apart > 1 or are_neighbours(place, inner)):
                assert isinstance(inner, Ramp)
                inner = inner.base
            value = self._leaf(inner) or (yield self.steps(inner))
            given.append(frozen(self.out, value) if is_checked(index) else value)
        on: Value = self._leaf(mask) or (yield self.steps(mask))
        values = [to_index(self.out, each) for each in given]
        marked = {axis: (values[axis], given[axis]) for axis, index in enumerate(indices) if is_checked(index)}
        if marked:
            require_inside(self.out, place, marked, self.environment.counted(), on)
        return memory.lane_addresses(self.out, place, values), on

    def address(self, place: Place, indices: tuple[Expr, ...]) -> Steps[Value]:
        """The address of the element at scalar indices, after the checks of indices marked for one."""
        if self.out.by_vectors and (parts := memory.apart_in(place, indices)) is not None:
            rests, far = parts
            found: list[Value] = []
            for rest in rests:
                found.append(to_index(self.out, self._leaf(rest) or (yield self.steps(rest))))
            return memory.beside(self.out, place, found, far)
        given, axes = [], []
        for axis, index in enumerate(indices):
            if type(index) is Call and index.op is Op.CHECKED:
                axes.append(axis)
                value = self._leaf(index.args[0]) or (yield self.steps(index.args[0]))
                given.append(frozen(self.out, value))
                continue
            given.append(self._leaf(index) or (yield self.steps(index)))
        values = [each if each.dtype is i64 else to_index(self.out, each) for each in given]
        if axes:
            marked = {axis: (values[axis], given[axis]) for axis in axes}
            require_inside(self.out, place, marked, self.environment.counted())
        return memory.address(self.out, place, memory.offset_in(self.out, place, values))

    def _lane_addresses(self, place: Place, row: tuple[Expr, ...], last: Expr) -> Steps[list[Value]]:
        """The address of each lane of a vector access; only that of the first lane if the elements are adjacent."""
        start = yield self.address(place, (*row, IntImm(i64, 0)))
        index = bare(last)
        given = self._leaf(index) or (yield self.steps(index))
        given = frozen(self.out, given) if is_checked(last) else given
        vector = to_index(self.out, given)
        if is_checked(last):
            require_inside(self.out, place, {len(row): (vector, given)}, self.environment.counted())
        lanes = 1 if are_neighbours(place, index) else last.dtype.lanes
        moved = Place(place.buffer, start, place.strides[-1:], place.align, place.extents[-1:])
        offsets = [memory.offset_in(self.out, moved, [self.out.extract(vector, lane)]) for lane in range(lanes)]
        return [memory.address(self.out, moved, offset) for offset in offsets]

    def ramp(self, expr: Ramp) -> Steps[Value]:
        base = self._leaf(expr.base) or (yield self.steps(expr.base))
        stride = self._leaf(expr.stride) or (yield self.steps(expr.stride))
        return self.computed(ramp(self.out, base, stride, expr.lanes), base, stride)

    def broadcast(self, expr: Broadcast) -> Steps[Value]:
        value = self._leaf(expr.value) or (yield self.steps(expr.value))
        return self.computed(self.out.splat(value, expr.lanes), value)

    def let(self, expr: LetExpr) -> Steps[Value]:
        self.bind(expr.var, self._leaf(expr.value) or (yield self.steps(expr.value)))
        return self._leaf(expr.body) or (yield self.steps(expr.body))


def frozen(out: FunctionText, index: Value) -> Value:
    """The index, frozen before it is checked: LLVM may take another value for unwritten memory at each use."""
    return index if index.number is not None else out.unary("freeze", index)


def are_neighbours(place: Place, index: Expr) -> bool:
    """Whether a vector access with this last index touches adjacent elements."""
    return is_unit_ramp(index) and place.strides[-1].number == 1


def is_unit_ramp(index: Expr) -> bool:
    """Whether `index` is a Ramp with stride 1.

    A narrow unsigned ramp is excluded, as it may wrap around to 0; any other that overflows is out of bounds anyway.
    """
    may_go_on = not index.dtype.is_signed and index.dtype.bits < 64
    is_unit = isinstance(index, Ramp) and is_constant(index.stride, 1)
    return is_unit and not may_go_on


def _is_small(dtype: DType) -> bool:
    return dtype.lanes == 1 and not dtype.is_float and dtype.bits < 32


def ramp(out: FunctionText, base: Value, stride: Value, lanes: int) -> Value:
    """The vector `base + lane * stride`."""
    kind = register_type(base.dtype)
    numbers = ", ".join(f"{kind} {lane}" for lane in range(lanes))
    steps = out.op("mul", Value(base.dtype.with_lanes(lanes), f"<{numbers}>"), out.splat(stride, lanes))
    return out.op("add", steps, out.splat(base, lanes))


# The method that emits a call, by the call's operation.
_CALLS: dict[Op, str] = {
    Op.IF_THEN_ELSE: "if_then_else",
    Op.ANY: "any_lane",
    Op.INTERLEAVE_LOW: "interleave",
    Op.INTERLEAVE_HIGH: "interleave",
    Op.DOT: "dot",
    Op.CHECKED: "marked_index",
    Op.MASKED: "marked_index",
    Op.CALL_EXTERN: "extern",
    Op.ADDRESS_OF: "address_of",
    Op.ACCESS_PTR: "access_pointer",
}

# The method that emits each kind of expression. Leaves take no instruction and are not listed; a StringImm only occurs
# in calls, which read it there.
RULES: dict[type[Expr], str] = {
    **dict.fromkeys(Binary.__subclasses__(), "binary"),
    **dict.fromkeys(Compare.__subclasses__(), "compare"),
    **dict.fromkeys(Unary.__subclasses__(), "unary"),
    And: "short_circuit",
    Or: "short_circuit",
    Cast: "cast",
    Select: "select",
    Load: "load",
    Ramp: "ramp",
    Broadcast: "broadcast",
    Call: "call",
    LetExpr: "let",
}
