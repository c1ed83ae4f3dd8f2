"""Makes native code of a PrimFunc: LLVM text and object code."""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.codegen.llvm.machine import (
        MACHINES,
        Effort,
        ObjectCode,
        Optimised,
        compile_exported,
        compile_module,
        compile_text,
        optimised,
    )
    from tirlite.codegen.llvm.pool import pool_text
    from tirlite.codegen.llvm.signals import signals_text
    from tirlite.codegen.lower import Lowered, lower
    from tirlite.codegen.reports import Told
    from tirlite.codegen.workspace import Workspace
else:
    __getattr__ = late_names(
        __name__,
        {
            "llvm.machine": (
                "Effort MACHINES ObjectCode Optimised compile_exported compile_module compile_text optimised"
            ),
            "llvm.pool": "pool_text",
            "llvm.signals": "signals_text",
            "lower": "Lowered lower",
            "reports": "Told",
            "workspace": "Workspace",
        },
    )

__all__ = [
    "Effort",
    "Lowered",
    "MACHINES",
    "ObjectCode",
    "Optimised",
    "Told",
    "Workspace",
    "compile_exported",
    "compile_module",
    "compile_text",
    "lower",
    "optimised",
    "pool_text",
    "signals_text",
]
