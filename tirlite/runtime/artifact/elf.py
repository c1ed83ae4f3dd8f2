"""Links an object file (ELF, x86-64) to a flat image.

Sections are laid side by side, so that what they ask of one another is known at once. Each function from outside gets a
jump of sixteen bytes at the end of the code, half of it the word with its address: that is all which is left to whoever
loads the image, besides words in constants that hold addresses of the image.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterator, Mapping
from typing import NamedTuple

from tirlite.runtime.artifact.image import PAGE, WORD, Image, Slot, Symbol
from tirlite.runtime.artifact.line_table import Stretch, stretches_of

_MACHINE = 62  # x86-64
_RELOCATABLE = 1
_SYMBOLS, _RELOCATIONS, _ZEROS = 2, 4, 8  # kinds of sections
_WRITE, _ALLOCATE = 1, 2  # flags of sections
_HEADER = 64  # bytes
_UNDEFINED = 0
_FUNCTION = 2

_ADDRESS = 1  # R_X86_64_64
_NEAR = (2, 4)  # PC32, PLT32
_OF_WORDS = (9, 41, 42)  # GOTPCREL, GOTPCRELX, REX_GOTPCRELX

# jmp *[the word behind it]
_JUMP = b"\xff\x25\x02\x00\x00\x00\xcc\xcc"


class Unlinkable(Exception):
    """An object file has something that no flat image can have."""


class _Section(NamedTuple):
    """A header of a section, as it lies in the file."""

    name: int
    kind: int
    flags: int
    address: int
    start: int
    size: int
    link: int
    info: int
    align: int
    entry: int


class _Entry(NamedTuple):
    """An entry of the symbol table."""

    name: int
    info: int
    other: int
    section: int
    value: int
    size: int


class _Relocation(NamedTuple):
    """Bytes of a section that depend on where a symbol lies."""

    section: int
    offset: int
    symbol: int
    kind: int
    addend: int


def linked(data: bytes) -> Image:
    """The image of an object file. Raises Unlinkable for another kind of file, and for what LLVM seldom makes."""
    if data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<HH", data, 16) != (_RELOCATABLE, _MACHINE):
        raise Unlinkable("another format")
    return _Linker(data).image()


class _Linker:
    def __init__(self, data: bytes) -> None:
        self.data = data
        (start,), (count,) = struct.unpack_from("<Q", data, 40), struct.unpack_from("<H", data, 60)
        headers = data[start : start + _HEADER * count]
        self.sections = [_Section(*each) for each in struct.iter_unpack("<IIQQQQIIQQ", headers)]
        self.section_names = self.sections[struct.unpack_from("<H", data, 62)[0]]
        table = next(each for each in self.sections if each.kind == _SYMBOLS)
        self.symbols = [_Entry(*each) for each in struct.iter_unpack("<IBBHQQ", self._bytes(table))]
        self.symbol_names = self.sections[table.link]
        self.base: dict[int, int] = {}  # where sections lie in the image
        self.words: dict[int, int] = {}  # where the words with the addresses of symbols lie
        self.slots: list[Slot] = []

    def image(self) -> Image:
        kept = {number: each for number, each in enumerate(self.sections) if self._is_kept(each)}
        relocations = list(self._relocations(kept))
        code_end = self._place(0, {n: each for n, each in kept.items() if not self._is_written(each)})
        wanted = dict.fromkeys(each.symbol for each in relocations if self._wants_word(each))
        first = -(-code_end // (2 * WORD)) * 2 * WORD
        self.words = {symbol: first + 2 * WORD * k + WORD for k, symbol in enumerate(wanted)}
        code_end = first + 2 * WORD * len(wanted)
        data_start = -(-code_end // PAGE) * PAGE
        end = self._place(data_start, {n: each for n, each in kept.items() if self._is_written(each)})
        memory = bytearray(end)
        for number, section in kept.items():
            if section.kind != _ZEROS:
                memory[self.base[number] : self.base[number] + section.size] = self._bytes(section)
        for symbol, at in self.words.items():
            memory[at - WORD : at] = _JUMP
            self._hold(at, symbol, 0)
        for each in relocations:
            self._relocate(memory, each)
        functions = tuple(self._functions())
        # What begins as zeros is not kept.
        data = bytes(memory[data_start:]).rstrip(b"\0")
        return Image(bytes(memory[:code_end]), data, end - data_start, tuple(self.slots), functions, self._lines())

    def _lines(self) -> tuple[Stretch, ...]:
        """Where the code comes from, where that was asked for."""
        for number, section in enumerate(self.sections):
            if self._text(self.section_names, section.name) == ".debug_line":
                addresses = {
                    each.offset: self._address(each.symbol) + each.addend for each in self._relocations({number})
                }
                return stretches_of(self._bytes(section), addresses)
        return ()

    def _place(self, at: int, sections: Mapping[int, _Section]) -> int:
        """Lays sections side by side from `at` on, and returns where they end."""
        for number, section in sections.items():
            if section.align > PAGE:
                raise Unlinkable(f"a section aligned to {section.align} bytes")
            at = -(-at // max(section.align, 1)) * max(section.align, 1)
            self.base[number] = at
            at += section.size
        return at

    def _relocations(self, kept: Container[int]) -> Iterator[_Relocation]:
        for section in self.sections:
            if section.kind == _RELOCATIONS and section.info in kept:
                for offset, info, addend in struct.iter_unpack("<QQq", self._bytes(section)):
                    yield _Relocation(section.info, offset, info >> 32, info & 0xFFFFFFFF, addend)

    def _wants_word(self, each: _Relocation) -> bool:
        return each.kind in _OF_WORDS or (each.kind in _NEAR and self._is_extern(each.symbol))

    def _relocate(self, memory: bytearray, each: _Relocation) -> None:
        here = self.base[each.section] + each.offset
        if each.kind == _ADDRESS:
            self._hold(here, each.symbol, each.addend)
            return
        if each.kind in _OF_WORDS:
            target = self.words[each.symbol]
        elif each.kind in _NEAR:
            target = self.words[each.symbol] - WORD if self._is_extern(each.symbol) else self._address(each.symbol)
        else:
            raise Unlinkable(f"a relocation of kind {each.kind}")
        struct.pack_into("<i", memory, here, target + each.addend - here)

    def _hold(self, at: int, symbol: int, addend: int) -> None:
        """Lets the word at `at` hold the address of a symbol."""
        if self._is_extern(symbol):
            self.slots.append(Slot(at, self._text(self.symbol_names, self.symbols[symbol].name), addend))
        else:
            self.slots.append(Slot(at, "", self._address(symbol) + addend))

    def _address(self, symbol: int) -> int:
        entry = self.symbols[symbol]
        if entry.section not in self.base:
            raise Unlinkable(f"the symbol `{self._text(self.symbol_names, entry.name)}` in no section")
        return self.base[entry.section] + entry.value

    def _functions(self) -> Iterator[Symbol]:
        for each in self.symbols:
            if each.info & 15 == _FUNCTION and each.section in self.base:
                name = self._text(self.symbol_names, each.name)
                yield Symbol(name, self.base[each.section] + each.value, each.size)

    def _is_extern(self, symbol: int) -> bool:
        return self.symbols[symbol].section == _UNDEFINED

    def _is_kept(self, section: _Section) -> bool:
        # Nothing is thrown through a kernel.
        return bool(section.flags & _ALLOCATE) and not self._text(self.section_names, section.name).startswith(".eh_")

    def _is_written(self, section: _Section) -> bool:
        name = self._text(self.section_names, section.name)
        return bool(section.flags & _WRITE) and not name.startswith(".data.rel.ro")

    def _bytes(self, section: _Section) -> bytes:
        return self.data[section.start : section.start + section.size]

    def _text(self, strings: _Section, at: int) -> str:
        start = strings.start + at
        return self.data[start : self.data.index(b"\0", start)].decode()
