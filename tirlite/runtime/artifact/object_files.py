"""Object files that LLVM itself links and loads: where they have another format than images are made of."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from tirlite.record import record
from tirlite.runtime.artifact.load import Library, UnknownSymbol

if TYPE_CHECKING:
    from llvmlite.binding import TargetMachine


@record
class ObjectFiles:
    """The bytes of object files, the functions that are asked of them, and those from outside that they call."""

    objects: tuple[bytes, ...]
    symbols: tuple[str, ...]
    externs: tuple[str, ...]


def jit_loaded(code: ObjectFiles, known: Mapping[str, int]) -> Library:
    """The objects in this process; `known` are the addresses of externs that have no name here.

    Raises KernelError for an extern that is missing.
    """
    from llvmlite import binding

    # The engine must outlive the code; the process has symbols for LLVM from its first engine on.
    engine = binding.create_lljit_compiler(_linker_machine())
    for name in code.externs:
        # LLVM names a missing symbol only on the terminal.
        if name not in known and binding.address_of_symbol(name) is None:
            raise UnknownSymbol(name).error()
    builder = binding.JITLibraryBuilder().add_current_process()
    for data in code.objects:
        builder.add_object_img(data)
    for symbol in code.symbols:
        builder.export_symbol(symbol)
    for symbol, address in known.items():
        builder.import_symbol(symbol, address)
    linked = builder.link(engine, "kernel")
    return Library((engine, linked), {symbol: int(linked[symbol]) for symbol in code.symbols})


@cache
def _linker_machine() -> TargetMachine:
    """What an engine takes for the machine: linking needs no features, and LLVM reads the list of them for a while."""
    from llvmlite import binding

    return binding.Target.from_default_triple().create_target_machine()
