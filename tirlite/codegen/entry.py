"""A function that is called from outside in, its definition out: one pointer stands for very many parameters.

A call through ctypes takes at most 1,024 arguments. A graph has a parameter for each of its constants, easily more.
"""

from __future__ import annotations

from tirlite.codegen.text import FunctionText
from tirlite.codegen.values import integer
from tirlite.ir import handle, i64

# A function with more parameters takes the address of a record instead, in which each has `SLOT_BYTES`.
MOST_PARAMETERS = 256
SLOT_BYTES = 8


def define_entry(out: FunctionText, name: str) -> None:
    """Ends a function that returns an i64 and adds it to its module, under the name by which it is called."""
    if len(out.parameters) <= MOST_PARAMETERS:
        out.define(f"i64 @{name}")
        return
    inner = f"{name}_unpacked"
    # Copied into its only caller, each promise about a pointer would become notes on all accesses.
    out.define(f"internal i64 @{inner}", "noinline")
    _define_unpacking(out, name, inner)


def _define_unpacking(inner: FunctionText, name: str, inner_name: str) -> None:
    out = FunctionText(inner.module)
    record = out.parameter(handle, "%record", " noalias")
    operands = []
    for number, parameter in enumerate(inner.parameters):
        slot = out.move(record, integer(SLOT_BYTES * number))
        operands.append(out.load(parameter.dtype, slot, ", align 1"))
    out.effect(f"ret i64 {out.invoke(i64, inner_name, operands).text}")
    out.define(f"i64 @{name}")
