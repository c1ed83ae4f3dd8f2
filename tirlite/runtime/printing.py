"""Prints what a kernel hands over, by Python's own print, and keeps the exception where that fails."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from threading import get_ident

from tirlite.ir.dtype import DType, dtype_of
from tirlite.ir.printing import printed, put
from tirlite.runtime.fault_record import number_of

# What printing raised in a thread, until the kernel that it ended has come back there.
_FAILED: dict[int, BaseException] = {}


def print_values(at: int, length: int, values: int) -> bool:
    """Prints the text in these bytes, see `codegen.printing`, with the values at this address; whether that failed.

    It goes to `sys.stdout`, as it is at that moment.
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
    """Raises what printing has raised in this thread, if anything."""
    error = _FAILED.pop(get_ident(), None)
    if error is not None:
        raise error


@lru_cache(256)
def _parts(data: bytes) -> tuple[tuple[DType, ...], str]:
    types, _, text = data.partition(b"\0")
    names = types.decode().split(",") if types else []
    found = tuple(dtype for name in names if (dtype := dtype_of(name)) is not None)
    return found, text.decode("utf-8", "surrogatepass")
