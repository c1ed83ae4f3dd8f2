"""Loads images into this process, as C functions that Python can call."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from struct import Struct
from typing import TYPE_CHECKING, Any, TypeAlias

from tirlite.diag import Message
from tirlite.show.environment import gdb_is_wanted, perf_is_wanted
from tirlite.target.convention import MOST_PARAMETERS, SLOT_BYTES

if TYPE_CHECKING:
    from tirlite.runtime.artifact.image import Image

Native: TypeAlias = Callable[..., int]

# The C types of parameters, by the letters of `struct`.
_TYPES: Mapping[str, type[ctypes._SimpleCData[Any]]] = {
    "P": ctypes.c_void_p,
    "b": ctypes.c_int8,
    "h": ctypes.c_int16,
    "i": ctypes.c_int32,
    "q": ctypes.c_int64,
    "B": ctypes.c_uint8,
    "H": ctypes.c_uint16,
    "I": ctypes.c_uint32,
    "Q": ctypes.c_uint64,
    "f": ctypes.c_float,
    "d": ctypes.c_double,
}


class UnknownSymbol(Message):
    """An extern function is nowhere in this process.

    Example: `tl.call_extern("f64", "cbrtt", x)`.
    """

    title = "the extern function `{name}` is not in this process"
    help = "load its library first: `ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)`"


class Library:
    """Code loaded into the process; it stays as long as this object."""

    def __init__(self, owner: object, addresses: Mapping[str, int]) -> None:
        """`owner`: the object that keeps the code loaded. `addresses`: those of its functions."""
        self._owner = owner
        self._addresses = addresses

    def address(self, symbol: str) -> int:
        """The address of the function `symbol`."""
        return self._addresses[symbol]

    def function(self, symbol: str, parameters: str) -> Native:
        """The function `symbol`, which returns an i64; `parameters` are its types as letters of `struct`.

        Calls release the GIL.
        """
        address = self._addresses[symbol]
        if len(parameters) <= MOST_PARAMETERS:
            return ctypes.CFUNCTYPE(ctypes.c_int64, *(_TYPES[each] for each in parameters))(address)
        native: Callable[[bytes], int] = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p)(address)
        record = Struct("=" + "".join(map(_slot, parameters)))

        def packed(*operands: int | float) -> int:
            return native(record.pack(*operands))

        return packed


def _slot(letter: str) -> str:
    """The `struct` format of a value in a slot of `SLOT_BYTES`."""
    return f"{'Q' if letter == 'P' else letter}{SLOT_BYTES - ctypes.sizeof(_TYPES[letter])}x"


def loaded(image: Image, known: Mapping[str, int]) -> Library:
    """Loads an image; `known` are the addresses of externs that cannot be looked up by name.

    Raises KernelError for a missing extern.
    """
    from mmap import MAP_ANONYMOUS, MAP_PRIVATE, PROT_EXEC, PROT_READ, PROT_WRITE, mmap  # not on every system

    externs = {name: known[name] if name in known else address_of(name) for name in image.externs}
    size = image.code_bytes + image.data_bytes
    memory = mmap(-1, size, flags=MAP_PRIVATE | MAP_ANONYMOUS, prot=PROT_READ | PROT_WRITE)
    bytes_of_it = (ctypes.c_char * size).from_buffer(memory)
    base = ctypes.addressof(bytes_of_it)
    memory[: len(image.code)] = image.code
    memory[image.code_bytes : image.code_bytes + len(image.data)] = image.data
    for slot in image.slots:
        address = (externs[slot.symbol] if slot.symbol else base) + slot.addend
        memory[slot.offset : slot.offset + 8] = (address % (1 << 64)).to_bytes(8, "little")
    # Never writable and executable at once.
    if c_function("mprotect")(ctypes.c_void_p(base), ctypes.c_size_t(image.code_bytes), PROT_READ | PROT_EXEC):
        raise OSError("the system does not let memory be made executable")
    if perf_is_wanted():
        _add_to_perf_map(image, base)
    if gdb_is_wanted():
        from tirlite.runtime.artifact.debugger import register_with_gdb

        register_with_gdb(image, base)
    return Library(bytes_of_it, {symbol.name: base + symbol.offset for symbol in image.symbols})


def _add_to_perf_map(image: Image, base: int) -> None:
    """Adds the functions to the map file in which perf looks up names of JIT code.

    If lines are known, each line of a function is an entry of its own.
    """
    lines = [f"{base + start:x} {size:x} {name}\n" for start, size, name in _named(image)]
    with suppress(OSError):
        # Do not follow a symbolic link, which another user may have put there.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        with os.fdopen(os.open(f"/tmp/perf-{os.getpid()}.map", flags, 0o600), "w") as file:
            file.write("".join(lines))


def _named(image: Image) -> Iterator[tuple[int, int, str]]:
    """The offset, size and name of each range of the code."""
    for symbol in image.symbols:
        at, end = symbol.offset, symbol.offset + symbol.size
        for each in image.lines:
            if at <= each.start < end:
                if at < each.start:
                    yield at, each.start - at, symbol.name
                yield each.start, each.end - each.start, f"{symbol.name}@{os.path.basename(each.file)}:{each.line}"  # noqa: PTH119
                at = each.end
        if at < end:
            yield at, end - at, symbol.name


def address_of(name: str) -> int:
    """The address of a C function in this process. Raises KernelError if there is none."""
    try:
        found = ctypes.cast(c_function(name), ctypes.c_void_p).value
    except AttributeError:
        # Symbols added by `llvmlite.binding.add_symbol` are known only to LLVM.
        binding = sys.modules.get("llvmlite.binding")
        found = None if binding is None else binding.address_of_symbol(name)
    if not found:
        raise UnknownSymbol(name).error()
    return int(found)


def c_function(name: str) -> ctypes._NamedFuncPointer:
    """A C function of this process, to be called by ctypes. Raises AttributeError if there is none."""
    # On Windows, Python's library finds only its own symbols.
    libraries: list[ctypes.CDLL] = [ctypes.pythonapi]
    if os.name == "nt":
        libraries.append(ctypes.CDLL("ucrtbase"))
    for library in libraries:
        with suppress(AttributeError):
            return library[name]
    raise AttributeError(name)
