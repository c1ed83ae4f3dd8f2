"""Emits the call that prints: text and value types as constant bytes, the values in a stack buffer."""

from __future__ import annotations

from tirlite.codegen.faults import KernelFunction, as_bits
from tirlite.codegen.llvm.values import NULL, Value, integer
from tirlite.ir import handle, i64
from tirlite.target.convention import PRINT

_WORD = 8


def emit_print(out: KernelFunction, text: str, values: list[Value]) -> None:
    """Emits a print, and ends the function if it fails. `runtime.printing` decodes the bytes."""
    types = ",".join(value.dtype.name for value in values)
    data = f"{types}\0{text}".encode("utf-8", "surrogatepass")
    held = out.alloca(_WORD * len(values), _WORD) if values else NULL
    for place, value in enumerate(values):
        out.store(as_bits(out, value), out.move(held, integer(place), "i64", flags=""))
    out.module.externs[PRINT] = None
    constant = Value(handle, out.module.constant_bytes(data))
    out.check(out.call(i64, PRINT, constant, integer(len(data)), held))
