"""Makes the message from the record, given by its address, that a kernel left when it stopped, and frees the record."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tirlite.runtime.artifact.load import c_function

if TYPE_CHECKING:
    from tirlite.codegen import Told
    from tirlite.diag import Message
    from tirlite.ir import DType


def told_by(address: int, faults: Mapping[int, Told]) -> Message:
    """The message of the fault whose number, and whose values as bits, stand at `address`."""
    told = faults[ctypes.c_int64.from_address(address).value]
    types = told.types
    bits = (ctypes.c_int64 * (1 + len(types))).from_address(address)[1:]
    message = told.message([number_of(each, dtype) for each, dtype in zip(bits, types, strict=True)])
    c_function("free")(ctypes.c_void_p(address))
    return message


def number_of(bits: int, dtype: DType) -> bool | int | float:
    """A number from its bits as `codegen.faults.as_bits` hands them on."""
    if dtype.is_float:
        number: float = struct.unpack("d", struct.pack("q", bits))[0]
        return number
    return bits % (1 << dtype.bits) if not dtype.is_signed else bits
