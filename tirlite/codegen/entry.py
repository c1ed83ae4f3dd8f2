"""The parameters of a function that is called from outside in, its definition out: one pointer stands for very many.

A call through ctypes takes at most 1,024 arguments. A graph has a parameter for each of its constants, easily more.
"""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.codegen.text import FunctionText, ModuleText

# A function with more parameters takes the address of a record instead, in which each has `SLOT_BYTES`.
MOST_PARAMETERS = 256
SLOT_BYTES = 8


def define_entry(out: FunctionText, name: str, parameters: Sequence[str]) -> None:
    """Ends a function that returns an i64 and adds it to its module, under the name by which it is called."""
    if len(parameters) <= MOST_PARAMETERS:
        out.define(f"i64 @{name}({', '.join(parameters)})")
        return
    inner = f"{name}_unpacked"
    # Copied into its only caller, each promise about a pointer would become notes on all accesses.
    out.define(f"internal i64 @{inner}({', '.join(parameters)}) noinline")
    _define_unpacking(out.module, name, inner, parameters)


def _define_unpacking(module: ModuleText, name: str, inner: str, parameters: Sequence[str]) -> None:
    out = FunctionText(module)
    operands = []
    for number, parameter in enumerate(parameters):
        kind = parameter.split(" ", 1)[0]
        slot = out.value(f"getelementptr inbounds i8, ptr %record, i64 {SLOT_BYTES * number}")
        operands.append(f"{kind} {out.value(f'load {kind}, ptr {slot}, align 1')}")
    fault = out.value(f"call i64 @{inner}({', '.join(operands)})")
    out.effect(f"ret i64 {fault}")
    out.define(f"i64 @{name}(ptr noalias %record)")
