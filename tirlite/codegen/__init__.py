"""Native code: a PrimFunc in, LLVM text and object code out."""

from tirlite.codegen.lower import Lowered, lower
from tirlite.codegen.machine import Effort, ObjectCode, assembly, compile_module, optimised_text
from tirlite.codegen.told import Told
from tirlite.codegen.workspace import Workspace

__all__ = [
    "Effort",
    "Lowered",
    "ObjectCode",
    "Told",
    "Workspace",
    "assembly",
    "compile_module",
    "lower",
    "optimised_text",
]
