"""A formula and operands in, its value out: a function of the module, written once and inlined where it is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tirlite.codegen.text import FunctionText
from tirlite.codegen.types import constant, register_type
from tirlite.ir import (
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
    Div,
    DType,
    Mul,
    Neg,
    Op,
    ShiftLeft,
    ShiftRight,
    Sub,
    bool_,
    f64,
    i64,
)
from tirlite.ir.formula import Kind, Term
from tirlite.record import record

Formula: TypeAlias = Callable[..., Term]

# Lines of formulas in a function; its further ones are called, as LLVM takes minutes over long functions.
MOST_INLINED = 4000

_OPERATORS: dict[Kind, tuple[str, str]] = {  # on integers and bools, on floats
    Add: ("add", "fadd"),
    Sub: ("sub", "fsub"),
    Mul: ("mul", "fmul"),
    Div: ("", "fdiv"),
    BitAnd: ("and", ""),
    BitOr: ("or", ""),
    BitXor: ("xor", ""),
    ShiftLeft: ("shl", ""),
    EQ: ("icmp eq", "fcmp oeq"),
    NE: ("icmp ne", "fcmp une"),
    LT: ("icmp slt", "fcmp olt"),
    LE: ("icmp sle", "fcmp ole"),
    GT: ("icmp sgt", "fcmp ogt"),
    GE: ("icmp sge", "fcmp oge"),
}
_INTRINSICS = {Op.SQRT: "sqrt", Op.ABS: "fabs", Op.FLOOR: "floor", Op.ROUND: "roundeven"}


@record(eq=False)
class TextMachine:
    """Writes the instructions of a formula for so many lanes."""

    out: FunctionText
    lanes: int

    def constant(self, value: int | float, dtype: DType) -> str:
        return constant(value, dtype.with_lanes(self.lanes))

    def apply(self, kind: Kind, dtype: DType, *items: object) -> str:
        if kind is Neg:
            return self.out.value(f"fneg {self._type(dtype)} {items[0]}")
        if kind is ShiftRight:
            name = "ashr" if dtype.is_signed else "lshr"
        else:
            name = _OPERATORS[kind][dtype.is_float]
        return self.out.value(f"{name} {self._type(dtype)} {items[0]}, {items[1]}")

    def call(self, op: Op, dtype: DType, item: object) -> str:
        return self.out.intrinsic(_INTRINSICS[op], dtype.with_lanes(self.lanes), str(item))

    def select(self, dtype: DType, condition: object, yes: object, no: object) -> str:
        kind = self._type(dtype)
        return self.out.value(f"select {self._type(bool_)} {condition}, {kind} {yes}, {kind} {no}")

    def convert(self, source: DType, target: DType, item: object) -> str:
        if source.is_float:
            name = "fpext" if target.bits > source.bits else "fptrunc"
        elif target.bits < source.bits:
            name = "trunc"
        else:
            name = "sext" if source.is_signed else "zext"
        return self.out.value(f"{name} {self._type(source)} {item} to {self._type(target)}")

    def lookup(self, table: tuple[float, ...], item: object) -> str:
        name = self.out.module.table(", ".join(f"double {constant(value, f64)}" for value in table), len(table))
        if self.lanes == 1:
            return self._element(name, str(item))
        result = "poison"
        for lane in range(self.lanes):
            index = self.out.value(f"extractelement {self._type(i64)} {item}, i64 {lane}")
            value = self._element(name, index)
            result = self.out.value(f"insertelement {self._type(f64)} {result}, double {value}, i64 {lane}")
        return result

    def _element(self, table: str, index: str) -> str:
        pointer = self.out.value(f"getelementptr inbounds double, ptr {table}, i64 {index}")
        return self.out.value(f"load double, ptr {pointer}, align 8")

    def reinterpret(self, source: DType, target: DType, item: object) -> str:
        old, new = self._type(source), self._type(target)
        return str(item) if old == new else self.out.value(f"bitcast {old} {item} to {new}")

    def _type(self, dtype: DType) -> str:
        return register_type(dtype.with_lanes(self.lanes))


def call_formula(
    out: FunctionText, name: str, formula: Formula, result: DType, operands: list[tuple[DType, str]]
) -> str:
    """The value of `formula` on operands with their types, whose lanes are those of `result`."""
    module, lanes = out.module, result.lanes
    attributes = "alwaysinline" if out.inlined_lines < MOST_INLINED else "noinline"
    full = f"tirlite.{name}" + (f".v{lanes}" if lanes > 1 else "") + (".far" if attributes == "noinline" else "")
    kinds = [register_type(dtype) for dtype, _ in operands]
    if full not in module.inlined:
        body = FunctionText(module)
        machine = TextMachine(body, lanes)
        value = formula(*(Term(machine, dtype.scalar, f"%x{i}") for i, (dtype, _) in enumerate(operands)))
        body.effect(f"ret {register_type(result)} {value.item}")
        parameters = ", ".join(f"{kind} %x{number}" for number, kind in enumerate(kinds))
        module.inlined[full] = body.definition(
            f"internal {register_type(result)} @{full}({parameters}) {attributes} nounwind willreturn memory(none)"
        )
    out.inlined_lines += module.inlined[full].count("\n") if attributes == "alwaysinline" else 0
    arguments = ", ".join(f"{kind} {value}" for kind, (_, value) in zip(kinds, operands, strict=True))
    return out.value(f"call {register_type(result)} @{full}({arguments})")
