"""Loads object code into this process, as C functions that Python can call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from struct import Struct
from typing import TYPE_CHECKING, Any, TypeAlias

from tirlite.codegen import MOST_PARAMETERS, SLOT_BYTES
from tirlite.diag import KernelError, Message
from tirlite.ir import DType, TypeCode

if TYPE_CHECKING:
    from llvmlite.binding import TargetMachine

CType: TypeAlias = "type[ctypes._SimpleCData[Any]]"
Native: TypeAlias = Callable[..., int]

_INTEGERS: dict[tuple[TypeCode, int], CType] = {
    (TypeCode.BOOL, 1): ctypes.c_uint8,
    (TypeCode.INT, 8): ctypes.c_int8,
    (TypeCode.INT, 16): ctypes.c_int16,
    (TypeCode.INT, 32): ctypes.c_int32,
    (TypeCode.INT, 64): ctypes.c_int64,
    (TypeCode.UINT, 8): ctypes.c_uint8,
    (TypeCode.UINT, 16): ctypes.c_uint16,
    (TypeCode.UINT, 32): ctypes.c_uint32,
    (TypeCode.UINT, 64): ctypes.c_uint64,
    (TypeCode.FLOAT, 16): ctypes.c_float,
    (TypeCode.BFLOAT, 16): ctypes.c_float,
    (TypeCode.FLOAT, 32): ctypes.c_float,
    (TypeCode.FLOAT, 64): ctypes.c_double,
}


class UnknownSymbol(Message):
    """An extern function is nowhere in this process.

    Example: `tl.call_extern("f64", "cbrtt", x)`.
    Fix: Correct the name, or load the library first: `ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)`.
    """

    code = "unknown-symbol"
    raises = KernelError
    title = "the extern function `{name}` is not in this process"
    help = "load its library first: ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)"

    name: str


class Library:
    """Object code that has been linked into the process. It stays there as long as this object."""

    def __init__(
        self,
        data: bytes,
        symbols: Sequence[str],
        externs: Sequence[str],
        addresses: Sequence[tuple[str, int]] = (),
    ) -> None:
        """`symbols` are the functions that the object defines, `addresses` those that it calls and that have no name.

        Raises KernelError for an extern that is missing.
        """
        from llvmlite import binding

        # The engine must outlive the code; the process has symbols for LLVM from its first engine on.
        self._engine = binding.create_lljit_compiler(_linker_machine())
        for name in externs:
            # LLVM names a missing symbol only on the terminal.
            if binding.address_of_symbol(name) is None:
                raise UnknownSymbol(name).error()
        builder = binding.JITLibraryBuilder().add_object_img(data).add_current_process()
        for symbol in symbols:
            builder.export_symbol(symbol)
        for symbol, address in addresses:
            builder.import_symbol(symbol, address)
        self._code = builder.link(self._engine, "kernel")

    def address(self, symbol: str) -> int:
        """Where the function `symbol` is."""
        return int(self._code[symbol])

    def function(self, symbol: str, parameters: Sequence[CType]) -> Native:
        """The function `symbol`, which returns an i64. Calls of it let other Python threads run."""
        if len(parameters) <= MOST_PARAMETERS:
            return ctypes.CFUNCTYPE(ctypes.c_int64, *parameters)(self._code[symbol])
        native: Callable[[bytes], int] = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p)(self._code[symbol])
        record = Struct("=" + "".join(map(_slot, parameters)))

        def packed(*operands: int | float) -> int:
            return native(record.pack(*operands))

        return packed


@cache
def _linker_machine() -> TargetMachine:
    """What an engine takes for the machine: linking needs no features, and LLVM reads the list of them for a while."""
    from llvmlite import binding

    return binding.Target.from_default_triple().create_target_machine()


def _slot(kind: CType) -> str:
    """How `struct` packs a value of this type into a slot of its own."""
    size = ctypes.sizeof(kind)
    if issubclass(kind, (ctypes.c_float, ctypes.c_double)):
        code = {4: "f", 8: "d"}[size]
    else:
        code = {1: "b", 2: "h", 4: "i", 8: "q"}[size]
        code = code if kind(-1).value == -1 else code.upper()
    return f"{code}{SLOT_BYTES - size}x"


def scalar_type(dtype: DType) -> CType:
    """What a scalar of this type is passed as; one of 16-bit floating point comes as f32 and is rounded inside."""
    return _INTEGERS[dtype.code, dtype.bits]
