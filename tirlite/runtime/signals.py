"""What kernels call in Python: polling for signals and printing, and the exceptions of both.

A kernel that stops leaves a record of its fault, from which the message is made.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from threading import get_ident
from typing import TYPE_CHECKING

from tirlite.gate import GATE
from tirlite.ir.dtype import DType, dtype_of
from tirlite.ir.printing import printed, put
from tirlite.record import record
from tirlite.runtime.artifact.artifact import library_of
from tirlite.runtime.artifact.load import c_function
from tirlite.runtime.cache import code_called
from tirlite.target.convention import POLL, PRINT, PRINTER, RAISE, STOP

if TYPE_CHECKING:
    from tirlite.codegen import FaultReport
    from tirlite.diag import Message
    from tirlite.runtime.artifact.artifact import Code


# Exceptions of printing, by thread, until the kernel that they ended has returned.
_FAILED: dict[int, BaseException] = {}


def print_values(at: int, length: int, values: int) -> bool:
    """Prints the text at an address, see `codegen.printing`, with its values; returns whether that failed.

    The output goes to the current `sys.stdout`.
    """
    try:
        types, text = _parts(ctypes.string_at(at, length))
        bits = (ctypes.c_int64 * len(types)).from_address(values) if types else ()
        put(printed(text, [number_of(each, dtype) for each, dtype in zip(bits, types, strict=True)], types))
    except BaseException as error:
        _FAILED[get_ident()] = error
        return True
    return False


def raise_own() -> None:
    """Raises the exception that printing raised in this thread, if any."""
    error = _FAILED.pop(get_ident(), None)
    if error is not None:
        raise error


@lru_cache(256)
def _parts(data: bytes) -> tuple[tuple[DType, ...], str]:
    types, _, text = data.partition(b"\0")
    names = types.decode().split(",") if types else []
    found = tuple(dtype for name in names if (dtype := dtype_of(name)) is not None)
    return found, text.decode("utf-8", "surrogatepass")


_API = (
    "PyGILState_GetThisThreadState",
    "PyGILState_Ensure",
    "PyGILState_Release",
    "PyErr_CheckSignals",
    "PyErr_Fetch",
    "PyErr_Restore",
    "PyObject_CallFunction",
    "PyObject_IsTrue",
    "Py_DecRef",
)


@record
class _Signals:
    """The addresses that kernels and the pool are linked to, and the function that raises a kept exception."""

    addresses: dict[str, int]
    raise_kept: Callable[[], None]


def signal_addresses() -> dict[str, int]:
    """The addresses of `tirlite.poll`, `tirlite.stop` and `tirlite.print`, see `codegen.llvm.signals`."""
    return _signals().addresses


def raise_kept() -> None:
    """Raises the exception of the signal handler, or of the printing, that ended a kernel."""
    raise_own()
    _signals().raise_kept()


def _signals() -> _Signals:
    with GATE.inside(_loaded):
        return _loaded()


@cache
def _loaded() -> _Signals:
    known = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in _API}
    library = library_of(code_called("signals", _compiled), known)
    # Workers may poll until the process ends, so it must never be unloaded.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))
    # PYFUNCTYPE calls with the GIL held, and raises the error that the function leaves.
    raises = ctypes.PYFUNCTYPE(ctypes.c_int64)(library.address(RAISE))
    ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.py_object)(library.address(PRINTER))(print_values)
    return _Signals({name: library.address(name) for name in (POLL, STOP, PRINT)}, raises)


def _compiled() -> Code:
    from tirlite.codegen import Effort, compile_text, signals_text
    from tirlite.runtime.artifact.build import code_of

    return code_of([compile_text(signals_text(), Effort.NONE)], (POLL, RAISE, STOP, PRINT, PRINTER), _API)


def message_at(address: int, faults: Mapping[int, FaultReport]) -> Message:
    """The message of the fault record at `address`, which is freed."""
    report = faults[ctypes.c_int64.from_address(address).value]
    types = report.types
    bits = (ctypes.c_int64 * (1 + len(types))).from_address(address)[1:]
    message = report.message([number_of(each, dtype) for each, dtype in zip(bits, types, strict=True)])
    c_function("free")(ctypes.c_void_p(address))
    return message


def number_of(bits: int, dtype: DType) -> bool | int | float:
    """A number from its bits, as made by `codegen.faults.as_bits`."""
    if dtype.is_float:
        number: float = struct.unpack("d", struct.pack("q", bits))[0]
        return number
    return bits % (1 << dtype.bits) if not dtype.is_signed else bits
