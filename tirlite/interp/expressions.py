"""Adds the steps that compute an expression to the program, and gives the register of its value."""

from __future__ import annotations

from collections.abc import Callable
from math import isinf, isnan
from typing import Any

import numpy as np

from tirlite.interp.addressing import Locate, located, position
from tirlite.interp.bfloat import in_bfloat, is_bfloat, item_type, lanewise, to_bfloat
from tirlite.interp.code import Code, Rule
from tirlite.interp.iterations import watch_iterations
from tirlite.interp.math_functions import converted, math_function
from tirlite.interp.memory import Poison, merged, refuse
from tirlite.interp.program import BasicBlock, Marks, Values
from tirlite.interp.threads import barrier, watch
from tirlite.ir import (
    And,
    Binary,
    Broadcast,
    Buffer,
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
    Op,
    Or,
    Ramp,
    Select,
    Steps,
    Store,
    StringImm,
    TypeCode,
    Unary,
    Var,
)
from tirlite.ir.arithmetic import FUNCTIONS, Function
from tirlite.ir.checked import mask_of, unmasked
from tirlite.ir.faults import SHIFTS, Trap, trap_of
from tirlite.ir.op import INTERLEAVES
from tirlite.ir.trampoline import in_turn


def expression(code: Code, node: Expr) -> Steps[int]:
    """Translate `node` to the end of `code`."""
    leaf = LEAVES.get(type(node))
    if leaf is not None:
        return leaf(code, node)
    register: int = yield RULES[type(node)](code, node)
    return register


def _item(code: Code, dtype: DType) -> Any:
    """The NumPy type of a lane."""
    if dtype.code is TypeCode.HANDLE:
        raise code.cannot(f"values of type {dtype}")
    return item_type(dtype).type


def _constant(code: Code, node: IntImm | FloatImm) -> int:
    return code.program.new_register(_item(code, node.dtype)(node.value))


def _var(code: Code, node: Var) -> int:
    return code.program.register_of(node)


def _opaque(code: Code, node: StringImm | BufferRef) -> int:
    raise code.cannot("a text as a value" if isinstance(node, StringImm) else f"a bare mention of `{node.buffer.name}`")


def _apply(code: Code, function: Callable[..., Any], *arguments: int) -> int:
    """Emit a function of registers, lane by lane."""
    result = code.program.new_register()

    def unary(values: Values, marks: Marks) -> None:
        values[result] = function(values[a])
        marks[result] = marks[a]

    def binary(values: Values, marks: Marks) -> None:
        values[result] = function(values[a], values[b])
        marks[result] = None if marks[a] is marks[b] is None else merged(marks[a], marks[b])

    def nary(values: Values, marks: Marks) -> None:
        values[result] = function(*(values[each] for each in arguments))
        marks[result] = merged(*(marks[each] for each in arguments))

    a, b = arguments[0], arguments[-1]
    code.emit(unary if len(arguments) == 1 else binary if len(arguments) == 2 else nary)
    return result


def _cast(code: Code, node: Cast) -> Steps[int]:
    value = yield expression(code, node.value)
    _item(code, node.dtype)
    return _apply(code, conversion(node.value.dtype, node.dtype), value)


def _unary(code: Code, node: Unary) -> Steps[int]:
    a = yield expression(code, node.a)
    return _apply(code, _operation(type(node), node.dtype), a)


def _binary(code: Code, node: Binary | Compare) -> Steps[int]:
    a = yield expression(code, node.a)
    b = yield expression(code, node.b)
    if isinstance(node, Binary):
        trap = trap_of(type(node), node.dtype)
        if trap is not None and not (isinstance(node.b, IntImm) and _never_fails(type(node), node.b)):
            _check(code, trap, a, b)
    return _apply(code, _operation(type(node), node.a.dtype), a, b)


def _never_fails(kind: type[Binary], b: IntImm) -> bool:
    """Whether an integer operation is right on any first operand where `b` is the second one."""
    return 0 <= b.value < b.dtype.bits if kind in SHIFTS else b.value not in (0, -1)


def _operation(kind: type[Unary] | type[Binary] | type[Compare], dtype: DType) -> Function:
    """What `kind` does to operands of type `dtype`."""
    return in_bfloat(FUNCTIONS[kind]) if is_bfloat(dtype) else FUNCTIONS[kind]


def _check(code: Code, trap: Trap, a: int, b: int) -> None:
    """Emit the check of an integer operation. What is poisoned has no value that could be wrong."""
    span = code.span

    def step(values: Values, marks: Marks) -> None:
        mark = merged(marks[a], marks[b])
        left, right = values[a].tolist(), values[b].tolist()
        for lane, (x, y) in enumerate(zip(left, right, strict=True) if values[a].ndim else ((left, right),)):
            fault = None if mark is not None and mark.lanes[lane] else trap(x, y, span)
            if fault is not None:
                raise fault.error()

    code.emit(step)


def _short_circuit(code: Code, node: And | Or) -> Steps[int]:
    result = code.program.new_register()
    second, after = BasicBlock(), BasicBlock()
    a = yield expression(code, node.a)
    code.copy(a, result)
    use = "the left side of `and`" if isinstance(node, And) else "the left side of `or`"
    code.branch(a, use, *((second, after) if isinstance(node, And) else (after, second)))
    code.block = second
    b = yield expression(code, node.b)
    code.copy(b, result)
    code.goto(after)
    code.block = after
    return result


def _if_then_else(code: Code, node: Call) -> Steps[int]:
    result = code.program.new_register()
    after, sides = BasicBlock(), (BasicBlock(), BasicBlock())
    condition = yield expression(code, node.args[0])
    code.branch(condition, "the condition of a conditional expression", *sides)
    for side, value in zip(sides, node.args[1:], strict=True):
        code.block = side
        register = yield expression(code, value)
        code.copy(register, result)
        code.goto(after)
    code.block = after
    return result


def _select(code: Code, node: Select) -> Steps[int]:
    condition = yield expression(code, node.condition)
    if_true = yield expression(code, node.if_true)
    if_false = yield expression(code, node.if_false)
    result = code.program.new_register()
    lanes = node.dtype.lanes

    def step(values: Values, marks: Marks) -> None:
        chosen = values[condition]
        if not chosen.ndim:
            side = if_true if chosen else if_false
            values[result] = values[side]
            mark = marks[condition]
            marks[result] = marks[side] if mark is None else mark.spread(lanes)
            return
        values[result] = np.where(chosen, values[if_true], values[if_false])
        marks[result] = merged(
            marks[condition],
            _where(marks[if_true], chosen),
            _where(marks[if_false], ~chosen),
        )

    code.emit(step)
    return result


def _where(mark: Poison | None, lanes: Any) -> Poison | None:
    return None if mark is None else mark.on(mark.lanes & lanes)


def indices_of(code: Code, node: Load | Store) -> Steps[tuple[tuple[int, ...], int | None]]:
    """Translate the indices of an access: their registers, those of lanes that are off left out; and the mask's."""
    plain = (*node.indices[:-1], *map(unmasked, node.indices[-1:]))
    registers: list[int] = yield in_turn(expression(code, index) for index in plain)
    mask = mask_of(node.indices)
    if mask is None:
        return (*registers,), None
    on: int = yield expression(code, mask)
    return (*registers[:-1], only(code, registers[-1], on, node.buffer.name)), on


def accessed(code: Code, buffer: Buffer, indices: tuple[int, ...], *, writes: bool) -> Locate:
    """What gives the flat index of an access, and sees whether it conflicts with others."""
    locate = watch(code, located(indices, code.site), writes=writes)
    return watch_iterations(code, buffer, locate, writes=writes)


def only(code: Code, vector: int, on: int, name: str) -> int:
    """Emit what keeps of a vector the lanes that are on."""
    result, span = code.program.new_register(), code.span

    def step(values: Values, marks: Marks) -> None:
        mask, mark = marks[on], marks[vector]
        if mask is not None:
            raise refuse(mask, f"the mask of `{name}`", span).error()
        values[result] = values[vector][values[on]]
        lanes = values[on]
        marks[result] = None if mark is None else mark.on(np.broadcast_to(mark.lanes, lanes.shape)[lanes])

    code.emit(step)
    return result


def _load(code: Code, node: Load) -> Steps[int]:
    indices, on = yield indices_of(code, node)
    return _emit_load(code, node, indices, on)


def _emit_load(code: Code, node: Load, indices: tuple[int, ...], on: int | None) -> int:
    source, result, dtype = code.program.register_of(node.buffer), code.program.new_register(), node.buffer.dtype
    if on is not None and dtype.lanes > 1:
        raise code.cannot("a masked access of vector elements")
    locate = accessed(code, node.buffer, indices, writes=False)

    def step(values: Values, marks: Marks) -> None:
        memory = values[source]
        values[result], bad = memory.load(locate(memory, values, marks))
        marks[result] = None if bad is None else Poison(bad, node.buffer, position(indices, values))

    def plain(values: Values, marks: Marks) -> None:
        memory = values[source]
        flat = locate(memory, values, marks)
        values[result] = memory.data[flat]
        marks[result] = None
        if memory.shadow is not None and memory.shadow[flat] != memory.owner:
            marks[result] = Poison(np.ones(1, np.bool_), node.buffer, position(indices, values))

    is_plain = dtype.lanes == node.dtype.lanes == 1 and not dtype.is_bool and not is_bfloat(dtype)
    code.emit(plain if is_plain else step)
    return result if on is None else _spread_out(code, result, on)


def _spread_out(code: Code, found: int, on: int) -> int:
    """Emit the vector of what was loaded in the lanes that are on, with 0 in the others."""
    result = code.program.new_register()

    def step(values: Values, marks: Marks) -> None:
        lanes, mark = values[on], marks[found]
        values[result] = np.zeros(lanes.size, values[found].dtype)
        values[result][lanes] = values[found]
        marks[result] = None
        if mark is not None:
            bad = np.zeros(lanes.size, np.bool_)
            bad[lanes] = mark.lanes
            marks[result] = mark.on(bad)

    code.emit(step)
    return result


def _ramp(code: Code, node: Ramp) -> Steps[int]:
    base = yield expression(code, node.base)
    stride = yield expression(code, node.stride)
    steps = np.arange(node.lanes).astype(node.dtype.numpy)
    result = _apply(code, lambda start, step: start + step * steps, base, stride)
    _spread(code, result, node.lanes)
    return result


def _broadcast(code: Code, node: Broadcast) -> Steps[int]:
    value = yield expression(code, node.value)
    result = _apply(code, lambda scalar: np.full(node.lanes, scalar), value)
    _spread(code, result, node.lanes)
    return result


def _spread(code: Code, register: int, lanes: int) -> None:
    """Emit what gives the mark of a scalar to all lanes of the vector made from it."""

    def step(_values: Values, marks: Marks) -> None:
        mark = marks[register]
        if mark is not None:
            marks[register] = mark.spread(lanes)

    code.emit(step)


def _call(code: Code, node: Call) -> Steps[int]:
    if node.op is Op.BARRIER:
        return barrier(code)
    if (rule := _CALLS.get(node.op)) is not None:
        found: int = yield rule(code, node)
        return found
    if not node.op.is_math:
        raise code.cannot(f"`tl.{node.op.label}`")
    arguments = yield in_turn(expression(code, argument) for argument in node.args)
    return _apply(code, math_function(node.op, node.args[0].dtype), *arguments)


def _index(code: Code, node: Call) -> Steps[int]:
    """What is marked as an index, or has a mask, is like any other number where it is that of no access."""
    return expression(code, node.args[0])


def _any(code: Code, node: Call) -> Steps[int]:
    """Emit whether any lane is set; poisoned where a lane is."""
    flags = yield expression(code, node.args[0])
    result = code.program.new_register()

    def step(values: Values, marks: Marks) -> None:
        values[result], mark = values[flags].any(), marks[flags]
        marks[result] = None if mark is None else mark.on(np.ones(1, np.bool_))

    code.emit(step)
    return result


def _dot(code: Code, node: Call) -> Steps[int]:
    arguments = yield in_turn(expression(code, argument) for argument in node.args)
    result, lanes, kind = code.program.new_register(), node.dtype.lanes, node.dtype.scalar.numpy

    def step(values: Values, marks: Marks) -> None:
        total, a, b = (np.atleast_1d(values[each]).reshape(-1) for each in arguments)
        group = b.size // lanes
        products = a.astype(kind).reshape(-1, group) * b.astype(kind).reshape(-1, group)
        found = total + products.sum(axis=1, dtype=kind)
        values[result] = found if lanes > 1 else found[0]
        first, *others = (marks[each] for each in arguments)
        marks[result] = merged(first, *(_per_sum(mark, lanes, group) for mark in others))

    code.emit(step)
    return result


def _per_sum(mark: Poison | None, lanes: int, group: int) -> Poison | None:
    """The mark of a vector, as one of the sums that groups of its lanes go into; one group goes into all."""
    if mark is None:
        return None
    return mark.on(np.broadcast_to(mark.lanes.reshape(-1, group).any(axis=1), lanes))


def _interleave(code: Code, node: Call) -> Steps[int]:
    first = yield expression(code, node.args[0])
    second = yield expression(code, node.args[1])
    result, half = code.program.new_register(), node.dtype.lanes // 2
    part = slice(half) if node.op is Op.INTERLEAVE_LOW else slice(half, None)

    def step(values: Values, marks: Marks) -> None:
        values[result] = np.stack((values[first][part], values[second][part]), axis=1).reshape(-1)
        poison = [np.False_ if mark is None else mark.lanes for mark in (marks[first], marks[second])]
        bad = np.stack([np.broadcast_to(lanes, 2 * half)[part] for lanes in poison], axis=1).reshape(-1)
        mark = merged(marks[first], marks[second])
        marks[result] = None if mark is None else mark.on(bad)

    code.emit(step)
    return result


def _let(code: Code, node: LetExpr) -> Steps[int]:
    value = yield expression(code, node.value)
    code.copy(value, code.program.register_of(node.var))
    body = yield expression(code, node.body)
    # A register of its own, as the variable's is written again where this node stands a second time.
    result = code.program.new_register()
    code.copy(body, result)
    return result


_CALLS: dict[Op, Rule] = {
    Op.IF_THEN_ELSE: _if_then_else,
    Op.ANY: _any,
    Op.DOT: _dot,
    **dict.fromkeys((Op.CHECKED, Op.MASKED), _index),
    **dict.fromkeys(INTERLEAVES, _interleave),
}

LEAVES: dict[type[Expr], Callable[[Code, Any], int]] = {
    IntImm: _constant,
    FloatImm: _constant,
    StringImm: _opaque,
    BufferRef: _opaque,
    Var: _var,
}


RULES: dict[type[Expr], Rule] = {
    **{kind: _unary if issubclass(kind, Unary) else _binary for kind in FUNCTIONS},
    And: _short_circuit,
    Or: _short_circuit,
    Cast: _cast,
    Select: _select,
    Load: _load,
    Ramp: _ramp,
    Broadcast: _broadcast,
    Call: _call,
    LetExpr: _let,
}


def conversion(source: DType, target: DType) -> Function:
    """What takes a value of type `source` to type `target`.

    To bool: whether it differs from zero. Float to integer: towards zero, saturated, nan to 0. Integers wrap, and
    what becomes a float is rounded to nearest even.
    """
    if target.is_bool:
        return lambda value: value != 0
    if source.is_float and target.is_integer:
        least, most = target.min, target.max
        return lanewise(lambda value: saturated(value, least, most), target)
    if is_bfloat(target):
        return to_bfloat
    return converted(target.numpy)


def saturated(value: float, least: int, most: int) -> int:
    """The integer next to `value` towards zero, of those from `least` to `most`; 0 for nan."""
    if isnan(value):
        return 0
    if isinf(value):
        return most if value > 0 else least
    return min(max(int(value), least), most)
