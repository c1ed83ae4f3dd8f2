"""Emits the value of a formula: a function of the module, defined once and inlined where it is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import Value, constant, register_type, undefined
from tirlite.codegen.loops.loop_hints import SELDOM
from tirlite.ir import expr as e
from tirlite.ir.dtype import DType, f64, handle
from tirlite.ir.formula import Kind, Term
from tirlite.ir.op import Op
from tirlite.record import record

Formula: TypeAlias = Callable[..., Term]

# At most this many lines of formulas are inlined per function; LLVM takes minutes for long functions.
MOST_INLINED = 4000

_OPERATORS: dict[Kind, tuple[str, str]] = {  # on integers and bools, on floats
    e.Add: ("add", "fadd"),
    e.Sub: ("sub", "fsub"),
    e.Mul: ("mul", "fmul"),
    e.Div: ("", "fdiv"),
    e.BitAnd: ("and", ""),
    e.BitOr: ("or", ""),
    e.BitXor: ("xor", ""),
    e.ShiftLeft: ("shl", ""),
    e.EQ: ("icmp eq", "fcmp oeq"),
    e.NE: ("icmp ne", "fcmp une"),
    e.LT: ("icmp slt", "fcmp olt"),
    e.LE: ("icmp sle", "fcmp ole"),
    e.GT: ("icmp sgt", "fcmp ogt"),
    e.GE: ("icmp sge", "fcmp oge"),
}

_INTRINSICS = {Op.SQRT: "sqrt", Op.ABS: "fabs", Op.FLOOR: "floor", Op.ROUND: "roundeven"}


@record(eq=False)
class TextMachine:
    """Evaluates a formula by emitting its instructions, on vectors of `lanes` lanes."""

    out: FunctionText
    lanes: int

    def constant(self, value: int | float, dtype: DType) -> Value:
        return constant(value, dtype.with_lanes(self.lanes))

    def apply(self, kind: Kind, dtype: DType, *items: object) -> Value:
        a, *others = _values(*items)
        if kind is e.Neg:
            return self.out.unary("fneg", a)
        if kind is e.ShiftRight:
            name = "ashr" if dtype.is_signed else "lshr"
        else:
            name = _OPERATORS[kind][dtype.is_float]
        write = self.out.compare if issubclass(kind, e.Compare) else self.out.op
        return write(name, a, *others)

    def call(self, op: Op, dtype: DType, item: object) -> Value:
        return self.out.intrinsic(_INTRINSICS[op], *_values(item))

    def fused(self, a: object, b: object, c: object) -> Value:
        return self.out.intrinsic("fma", *_values(a, b, c))

    def select(self, dtype: DType, condition: object, yes: object, no: object) -> Value:
        return self.out.select(*_values(condition, yes, no))

    def select_rare(self, dtype: DType, condition: object, usual: object, rare: Callable[[], object]) -> Value:
        out, (holds, value) = self.out, _values(condition, usual)
        fails = out.op("xor", holds, constant(1, holds.dtype))
        before, seldom, done = out.block, out.label("rare"), out.label("done")
        out.branch_if(out.any_lane(fails), seldom, done, f", !prof {out.module.node(*SELDOM)}")
        out.start(seldom, follows=True)
        chosen = out.select(holds, value, *_values(rare()))
        out.follow(done)
        return out.phi(value.dtype, (value, before), (chosen, seldom))

    def convert(self, source: DType, target: DType, item: object) -> Value:
        if source.is_float:
            name = "fpext" if target.bits > source.bits else "fptrunc"
        elif target.bits < source.bits:
            name = "trunc"
        else:
            name = "sext" if source.is_signed else "zext"
        (value,) = _values(item)
        return self.out.cast(name, value, target.with_lanes(self.lanes))

    def lookup(self, table: tuple[float, ...], item: object) -> Value:
        out, (index,) = self.out, _values(item)
        name = out.module.table(", ".join(constant(value, f64).typed for value in table), len(table))
        found = Value(handle, name)
        if self.lanes == 1:
            return self._element(found, index)
        result = undefined(f64.with_lanes(self.lanes))
        for lane in range(self.lanes):
            result = out.insert(result, self._element(found, out.extract(index, lane)), lane)
        return result

    def _element(self, table: Value, index: Value) -> Value:
        return self.out.load(f64, self.out.move(table, index, "double"), ", align 8")

    def reinterpret(self, source: DType, target: DType, item: object) -> Value:
        (value,) = _values(item)
        wide = target.with_lanes(self.lanes)
        return (
            value.of(wide) if register_type(source) == register_type(target) else self.out.cast("bitcast", value, wide)
        )


def _values(*items: object) -> tuple[Value, ...]:
    """The items of terms, which are always Values with this machine."""
    return items  # type: ignore[return-value]


def call_formula(out: FunctionText, name: str, formula: Formula, result: DType, *operands: Value) -> Value:
    """Calls `formula` on operands with as many lanes as `result`; defines its function at the first call."""
    module, lanes = out.module, result.lanes
    attributes = "alwaysinline" if out.inlined_lines < MOST_INLINED else "noinline"
    full = f"tirlite.{name}" + (f".v{lanes}" if lanes > 1 else "") + (".far" if attributes == "noinline" else "")
    if full not in module.inlined:
        body = FunctionText(module)
        machine = TextMachine(body, lanes)
        parameters = [body.parameter(each.dtype, f"%x{number}") for number, each in enumerate(operands)]
        (value,) = _values(formula(*(Term(machine, each.dtype.scalar, each) for each in parameters)).item)
        body.effect(f"ret {register_type(result)} {value.text}")
        told = f"{attributes} nounwind willreturn memory(none)"
        module.inlined[full] = body.definition(full, told, result=register_type(result))
    out.inlined_lines += module.inlined[full].lines if attributes == "alwaysinline" else 0
    return out.invoke(result, full, operands)
