"""Registers the names and lines of loaded functions with gdb, by its JIT compilation interface.

The debugger watches a function and a list in the process, `__jit_debug_register_code` and `__jit_debug_descriptor`.
LLVM's library has both but exports neither, so they are looked up in its symbol table. Each registered file is an ELF
image in memory with only symbols and a line table.
"""

from __future__ import annotations

import ctypes
from functools import cache
from mmap import ACCESS_READ, mmap
from struct import calcsize, iter_unpack, pack, unpack_from
from typing import TYPE_CHECKING

from tirlite.record import record
from tirlite.runtime.artifact.line_table import written_table

if TYPE_CHECKING:
    from tirlite.runtime.artifact.image import Image

_HEADER = "<16sHHIQQQIHHHHHH"
_SECTION = "<IIQQQQIIQQ"
_SYMBOL = "<IBBHQQ"
_EXECUTABLE, _X86_64 = 2, 62
_SYMBOLS, _STRINGS, _NO_BITS = 2, 3, 8
_ALLOCATED, _CODE = 2, 4
_FUNCTION = 0x12  # global
_REGISTER = 1
_BITS = 1  # PROGBITS
_C99 = 0x0C
# A section `.debug_abbrev`: a unit has name, language, line table, first address and size; a function has name, first
# address and size; a block the last two; a label has name and address. Source: DWARF 4, section 7.5.
_KINDS = b"".join(
    map(
        bytes.fromhex,
        (
            "0111010308130510171101120700 00",
            "022e0103081101120700 00",
            "030b011101120700 00",
            "040a0003081101 0000",
            "00",
        ),
    )
)


class _Entry(ctypes.Structure):
    """jit_code_entry."""

    _fields_ = (
        ("next", ctypes.c_void_p),
        ("previous", ctypes.c_void_p),
        ("file", ctypes.c_void_p),
        ("size", ctypes.c_uint64),
    )


class _Descriptor(ctypes.Structure):
    """jit_descriptor."""

    _fields_ = (
        ("version", ctypes.c_uint32),
        ("action", ctypes.c_uint32),
        ("relevant", ctypes.c_void_p),
        ("first", ctypes.c_void_p),
    )


@record
class _Watched:
    """The addresses of the function and the list that the debugger watches."""

    register: int
    descriptor: int


# The files that gdb reads are kept for the life of the process: images are rarely unloaded.
_KEPT: list[object] = []


def register_with_gdb(image: Image, base: int) -> bool:
    """Registers the functions of an image loaded at `base`; False if LLVM's library lacks the symbols."""
    watched = _watched()
    if watched is None:
        return False
    file = ctypes.create_string_buffer(symbol_file(image, base))
    descriptor = _Descriptor.from_address(watched.descriptor)
    entry = _Entry(descriptor.first, None, ctypes.addressof(file), len(file) - 1)
    _KEPT.extend((file, entry))
    if descriptor.first:
        _Entry.from_address(descriptor.first).previous = ctypes.addressof(entry)
    descriptor.first = descriptor.relevant = ctypes.addressof(entry)
    descriptor.action = _REGISTER
    ctypes.CFUNCTYPE(None)(watched.register)()
    return True


def symbol_file(image: Image, base: int) -> bytes:
    """An ELF file with the functions of an image at the address `base` and their lines, but no code."""
    names, table = b"\0", pack(_SYMBOL, 0, 0, 0, 0, 0, 0)
    for each in image.symbols:
        table += pack(_SYMBOL, len(names), _FUNCTION, 0, 1, base + each.offset, each.size)
        names += each.name.encode() + b"\0"
    # Name, kind, flags, address, bytes, link, info, alignment, size of an entry.
    sections: list[tuple[bytes, int, int, int, bytes, int, int, int, int]] = [
        (b".symtab", _SYMBOLS, 0, 0, table, 3, 1, 8, calcsize(_SYMBOL)),
        (b".strtab", _STRINGS, 0, 0, names, 0, 0, 1, 0),
    ]
    if image.lines:
        debug = {
            b".debug_line": written_table(image.lines, base),
            b".debug_abbrev": _KINDS,
            b".debug_info": _unit(image, base),
        }
        sections += [(name, _BITS, 0, 0, data, 0, 0, 1, 0) for name, data in debug.items()]
    titles = b"\0.text\0.shstrtab\0"
    at, head = calcsize(_HEADER), calcsize(_SECTION)
    headers = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (1, _NO_BITS, _ALLOCATED | _CODE, base, at, image.code_bytes, 0, 0, 16, 0),
    ]
    content = b""
    for name, kind, flags, address, data, link, info, alignment, size in sections:
        headers.append((len(titles), kind, flags, address, at + len(content), len(data), link, info, alignment, size))
        titles, content = titles + name + b"\0", content + data
    headers.append((7, _STRINGS, 0, 0, at + len(content), len(titles), 0, 0, 1, 0))
    ident = b"\x7fELF\2\1\1".ljust(16, b"\0")
    end = at + len(content) + len(titles)
    last = len(headers) - 1
    header = pack(_HEADER, ident, _EXECUTABLE, _X86_64, 1, 0, 0, end, 0, at, 0, 0, head, len(headers), last)
    return header + content + titles + b"".join(pack(_SECTION, *each) for each in headers)


def _unit(image: Image, base: int) -> bytes:
    """A section `.debug_info`: one unit with the functions of the image."""
    # gdb looks a source file up by the name of the unit.
    name = image.lines[0].file.encode("utf-8", "surrogateescape")
    parts = b"\1" + name + b"\0" + pack("<HIQQ", _C99, 0, base, image.code_bytes)
    for each in image.symbols:
        start, end = each.offset, each.offset + each.size
        parts += b"\2" + each.name.encode() + b"\0" + pack("<QQ", base + start, each.size)
        for part in (part for part in image.lines if start <= part.start < end):
            # gdb stops at one address per line and block. A loop's line has several (vectorized and remainder loop), so
            # each stretch gets a block of its own.
            label = f"line_{part.line}".encode() + b"\0" + pack("<Q", base + part.start)
            parts += b"\3" + pack("<QQ", base + part.start, part.end - part.start) + b"\4" + label + b"\0"
        parts += b"\0"
    whole = pack("<HIB", 4, 0, 8) + parts + b"\0"
    return pack("<I", len(whole)) + whole


@cache
def _watched() -> _Watched | None:
    """The addresses in LLVM's library, which is loaded for this."""
    from llvmlite import binding

    binding.get_host_cpu_name()  # the library is loaded by the first call
    with open("/proc/self/maps") as maps:  # noqa: PTH123
        starts = [line for line in maps if line.rstrip().endswith("libllvmlite.so")]
    if not starts:
        return None
    base = int(starts[0].split("-", 1)[0], 16) - int(starts[0].split()[2], 16)
    path = starts[0].split(maxsplit=5)[5].rstrip("\n")
    with open(path, "rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:  # noqa: PTH123
        found = _values(content, (b"__jit_debug_register_code", b"__jit_debug_descriptor"))
    return _Watched(base + found[0], base + found[1]) if len(found) == 2 else None


def _values(content: mmap, names: tuple[bytes, ...]) -> list[int]:
    """The values of symbols in a shared library, of those that it has."""
    _, _, _, _, _, _, table, _, _, _, _, size, count, _ = unpack_from(_HEADER, content)
    headers = [unpack_from(_SECTION, content, table + number * size) for number in range(count)]
    found = []
    for symbols in (each for each in headers if each[1] == _SYMBOLS):
        strings = headers[symbols[6]]
        for name in names:
            at = content.find(b"\0" + name + b"\0", strings[4], strings[4] + strings[5])
            if at >= 0:
                wanted = at + 1 - strings[4]
                every = iter_unpack(_SYMBOL, content[symbols[4] : symbols[4] + symbols[5]])
                found += [value for text, _, _, _, value, _ in every if text == wanted][:1]
    return found
