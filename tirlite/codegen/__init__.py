"""Generates LLVM text and object code from a PrimFunc."""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.codegen.functions.callees import Callees as Callees, offered_ahead as offered_ahead
    from tirlite.codegen.llvm.held import held_text as held_text
    from tirlite.codegen.llvm.machine import (
        MACHINES as MACHINES,
        Effort as Effort,
        Optimised as Optimised,
        compile_exported as compile_exported,
        compile_text as compile_text,
        optimised as optimised,
    )
    from tirlite.codegen.llvm.pool import pool_text as pool_text
    from tirlite.codegen.llvm.side_by_side import (
        SideBySide as SideBySide,
        compile_module as compile_module,
    )
    from tirlite.codegen.llvm.signals import signals_text as signals_text
    from tirlite.codegen.lower import Lowered as Lowered, lower as lower
    from tirlite.codegen.reports import FaultReport as FaultReport
    from tirlite.codegen.storage import Workspace as Workspace
else:
    __getattr__, __all__ = late_names(__name__)
