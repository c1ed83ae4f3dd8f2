"""Source lines by address: reads the line table of an object file, and writes one for debuggers.

Source: DWARF 4, section 6.2.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterator, Mapping, Sequence

from tirlite.record import record

_VERSION = 4
_HEADER = struct.Struct("<IHIBBBbBB")
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _SET_COLUMN = 1, 2, 3, 4, 5
_CONST_ADD_PC, _FIXED_ADVANCE_PC, _SET_ISA = 8, 9, 12
_END_SEQUENCE, _SET_ADDRESS = 1, 2
# The number of operands of the standard opcodes, from 1 on.
_OPERANDS = bytes((0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1))


@record
class Stretch:
    """A range of code from one line; `start` and `end` are offsets in an image."""

    start: int
    end: int
    file: str
    line: int


def stretches_of(table: bytes, addresses: Mapping[int, int], heads: Container[int]) -> tuple[Stretch, ...]:
    """The ranges in a section `.debug_line`, in order; `addresses`: those that relocations fill in, by offset.
    No range extends over the start of a function (`heads`), as gdb would stop after it. Raises ValueError for a table
    of another version.
    """
    found: list[Stretch] = []
    at = 0
    while at < len(table):
        end = at + 4 + struct.unpack_from("<I", table, at)[0]
        rows = _Reader(table, at, addresses).rows(end)
        last: tuple[int, str, int] | None = None
        for address, file, line, is_end in rows:
            if last is not None and last[0] < address and last[2]:
                _add(found, Stretch(last[0], address, last[1], last[2]), heads)
            last = None if is_end else (address, file, line)
        at = end
    return tuple(sorted(found, key=lambda each: each.start))


def _add(found: list[Stretch], new: Stretch, heads: Container[int]) -> None:
    goes_on = bool(found) and (found[-1].end, found[-1].file, found[-1].line) == (new.start, new.file, new.line)
    if goes_on and new.start not in heads:
        new = Stretch(found.pop().start, new.end, new.file, new.line)
    found.append(new)


class _Reader:
    """The line program of one unit."""

    def __init__(self, table: bytes, at: int, addresses: Mapping[int, int]) -> None:
        self._data = table
        self._addresses = addresses
        _, version, length, self._least, _, _, self._base, self._range, self._opcodes = _HEADER.unpack_from(table, at)
        if version != _VERSION:
            raise ValueError(f"a table of lines of version {version}")
        self._start = at + 10 + length
        self._at = at + _HEADER.size
        self._lengths = [self._byte() for _ in range(self._opcodes - 1)]
        folders = list(self._texts())
        self._files = [""]
        while name := self._text():
            folder, _, _ = self._number(), self._number(), self._number()
            self._files.append(f"{folders[folder - 1]}/{name}" if folder and not name.startswith("/") else name)

    def rows(self, end: int) -> Iterator[tuple[int, str, int, bool]]:
        """Yields address, file, line, and whether the sequence ends."""
        self._at = self._start
        address, file, line = 0, 1, 1
        while self._at < end:
            code = self._byte()
            if code >= self._opcodes:
                steps, lines = divmod(code - self._opcodes, self._range)
                address, line = address + steps * self._least, line + self._base + lines
                yield address, self._files[file], line, False
            elif code == 0:
                length = self._number()
                after, kind = self._at + length, self._byte()
                if kind == _SET_ADDRESS:
                    address = self._addresses.get(self._at, 0)
                elif kind == _END_SEQUENCE:
                    yield address, self._files[file], line, True
                    address, file, line = 0, 1, 1
                self._at = after
            elif code == _COPY:
                yield address, self._files[file], line, False
            elif code == _ADVANCE_PC:
                address += self._number() * self._least
            elif code == _ADVANCE_LINE:
                line += self._signed()
            elif code == _SET_FILE:
                file = self._number()
            elif code == _CONST_ADD_PC:
                address += (255 - self._opcodes) // self._range * self._least
            elif code == _FIXED_ADVANCE_PC:
                address += struct.unpack_from("<H", self._data, self._at)[0]
                self._at += 2
            else:
                for _ in range(self._lengths[code - 1]):
                    self._number()

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _number(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def _signed(self) -> int:
        begun = self._at
        value = self._number()
        bits = 7 * (self._at - begun)
        return value - (1 << bits) if value >> (bits - 1) else value

    def _text(self) -> str:
        end = self._data.index(b"\0", self._at)
        text = self._data[self._at : end].decode("utf-8", "surrogateescape")
        self._at = end + 1
        return text

    def _texts(self) -> Iterator[str]:
        while text := self._text():
            yield text


def written_table(stretches: Sequence[Stretch], base: int) -> bytes:
    """A section `.debug_line` for code that is loaded at `base`."""
    files = {name: number for number, name in enumerate(dict.fromkeys(each.file for each in stretches), 1)}
    # Special opcodes would start at the 13th; none is used.
    tail = bytes((1, 1, 1, 1, 1, len(_OPERANDS) + 1)) + _OPERANDS + b"\0"
    tail += b"".join(name.encode("utf-8", "surrogateescape") + b"\0\0\0\0" for name in files) + b"\0"
    body = bytearray()
    line, end = 1, -1
    for each in stretches:
        if each.start != end and end >= 0:
            body += _address(base + end) + bytes((0, 1, _END_SEQUENCE))
            line = 1
        body += _address(base + each.start) + bytes((_SET_FILE,)) + unsigned(files[each.file])
        body += bytes((_ADVANCE_LINE,)) + _signed(each.line - line) + bytes((_COPY,))
        line, end = each.line, each.end
    if stretches:
        body += _address(base + end) + bytes((0, 1, _END_SEQUENCE))
    head = struct.pack("<HI", _VERSION, len(tail))
    return struct.pack("<I", len(head) + len(tail) + len(body)) + head + tail + bytes(body)


def _address(address: int) -> bytes:
    return bytes((0, 9, _SET_ADDRESS)) + struct.pack("<Q", address)


def unsigned(value: int) -> bytes:
    """A number in LEB128: seven bits per byte, lowest first."""
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes((*made, value))


def _signed(value: int) -> bytes:
    made = bytearray()
    while not -64 <= value < 64:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes((*made, value & 127))
