"""The address of a record that a kernel left when an assert failed in, the message out; the record is freed."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping

from tirlite.diag import Message
from tirlite.ir import Assert, DType, failure, shown


def told_by(address: int, asserts: Mapping[int, Assert]) -> Message:
    """The message of the assert whose number, and whose values as bits, stand at `address`."""
    number = ctypes.c_int64.from_address(address).value
    stmt = asserts[number]
    types = shown(stmt).types
    bits = (ctypes.c_int64 * (1 + len(types))).from_address(address)[1:]
    message = failure(stmt, [_number(each, dtype) for each, dtype in zip(bits, types, strict=True)])
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    free(address)
    return message


def _number(bits: int, dtype: DType) -> bool | int | float:
    if dtype.is_float:
        number: float = struct.unpack("d", struct.pack("q", bits))[0]
        return number
    return bits % (1 << dtype.bits) if not dtype.is_signed else bits
