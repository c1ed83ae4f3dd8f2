"""Object files that LLVM itself links and loads, on systems whose format images do not support."""

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
    """Object files, the functions that callers need from them, and the external functions that they call."""

    objects: tuple[bytes, ...]
    symbols: tuple[str, ...]
    externs: tuple[str, ...]


def jit_loaded(code: ObjectFiles, known: Mapping[str, int]) -> Library:
    """Loads the objects; `known` are the addresses of externs that cannot be looked up by name.

    Raises KernelError for a missing extern.
    """
    from llvmlite import binding

    # The engine must outlive the code. Creating it also makes the process's symbols known to LLVM.
    engine = binding.create_lljit_compiler(_linker_machine())
    for name in code.externs:
        # Check here, as LLVM reports a missing symbol only on stderr.
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
    """The target machine of an engine, without features, which linking does not need and LLVM parses slowly."""
    from llvmlite import binding

    return binding.Target.from_default_triple().create_target_machine()
