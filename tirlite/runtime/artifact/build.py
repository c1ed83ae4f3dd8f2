"""Makes artifacts and images from object files."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from tirlite.analysis import shape_plan
from tirlite.codegen import Lowered
from tirlite.diag import Message
from tirlite.ir import Buffer, DType, PrimFunc, TypeCode, Var
from tirlite.ir.checked import asks_for_order, asks_for_the_other
from tirlite.record import record
from tirlite.runtime.artifact.artifact import Artifact, Code
from tirlite.runtime.artifact.image import PAGE, WORD, Image, Slot, Symbol
from tirlite.runtime.signature import Signature
from tirlite.target.convention import FORK_JOIN, HOLDS, POLL

if TYPE_CHECKING:
    from tirlite.runtime.artifact.line_table import Stretch

_MACHINE = 62  # x86-64
_RELOCATABLE = 1
_SYMBOLS, _RELOCATIONS, _ZEROS = 2, 4, 8  # kinds of sections
_WRITE, _ALLOCATE = 1, 2  # flags of sections
_HEADER = 64  # bytes
_UNDEFINED = 0
_LOCAL = 0  # binding of symbols that are not visible in other files
_FUNCTION = 2

_ADDRESS = 1  # R_X86_64_64
_NEAR = (2, 4)  # PC32, PLT32
_OF_WORDS = (9, 41, 42)  # GOTPCREL, GOTPCRELX, REX_GOTPCRELX

# jmp *[rip + 2]: through the word that follows
_JUMP = b"\xff\x25\x02\x00\x00\x00\xcc\xcc"


class Unlinkable(Exception):
    """The object files contain something that a flat image cannot express."""


@record(guarded=False, eq=False)
class _Section:
    """A section header, in the layout of the file."""

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


@record(guarded=False, eq=False)
class _Entry:
    """An entry of the symbol table."""

    name: int
    info: int
    other: int
    section: int
    value: int
    size: int


class _Object:
    """One object file: its sections and symbols, and the offsets of its sections in the image."""

    def __init__(self, data: bytes) -> None:
        if data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<HH", data, 16) != (_RELOCATABLE, _MACHINE):
            raise Unlinkable("another format")
        self.data = data
        (start,), (count,) = struct.unpack_from("<Q", data, 40), struct.unpack_from("<H", data, 60)
        headers = data[start : start + _HEADER * count]
        self.sections = [_Section(*each) for each in struct.iter_unpack("<IIQQQQIIQQ", headers)]
        self.section_names = self.sections[struct.unpack_from("<H", data, 62)[0]]
        table = next(each for each in self.sections if each.kind == _SYMBOLS)
        self.symbols = [_Entry(*each) for each in struct.iter_unpack("<IBBHQQ", self.bytes_of(table))]
        self.symbol_names = self.sections[table.link]
        self.kept = [number for number, each in enumerate(self.sections) if self._is_kept(each)]
        self.base: dict[int, int] = {}

    def bytes_of(self, section: _Section) -> bytes:
        return self.data[section.start : section.start + section.size]

    def section_name(self, number: int) -> str:
        return self._text(self.section_names, self.sections[number].name)

    def symbol_name(self, number: int) -> str:
        return self._text(self.symbol_names, self.symbols[number].name)

    def is_undefined(self, number: int) -> bool:
        return self.symbols[number].section == _UNDEFINED

    def is_written(self, number: int) -> bool:
        """Whether the code writes to a section."""
        return bool(self.sections[number].flags & _WRITE) and not self.section_name(number).startswith(".data.rel.ro")

    def address(self, symbol: int) -> int:
        """The offset of a symbol in the image."""
        entry = self.symbols[symbol]
        if entry.section not in self.base:
            raise Unlinkable(f"the symbol `{self.symbol_name(symbol)}` in no section")
        return self.base[entry.section] + entry.value

    def shared(self) -> Iterator[tuple[str, int]]:
        """The names and numbers of the symbols that are visible to other files."""
        for number, each in enumerate(self.symbols):
            if each.section != _UNDEFINED and each.info >> 4 != _LOCAL:
                yield self.symbol_name(number), number

    def functions(self) -> Iterator[Symbol]:
        for number, each in enumerate(self.symbols):
            if each.info & 15 == _FUNCTION and each.section in self.base:
                yield Symbol(self.symbol_name(number), self.address(number), each.size)

    def _is_kept(self, section: _Section) -> bool:
        # Unwind tables are not needed, as no exception passes through a kernel.
        return bool(section.flags & _ALLOCATE) and not self._text(self.section_names, section.name).startswith(".eh_")

    def _text(self, strings: _Section, at: int) -> str:
        start = strings.start + at
        return self.data[start : self.data.index(b"\0", start)].decode()


@record(guarded=False)
class _Symbol:
    """A symbol, by its number in the file that defines it; an external one has a name and no file."""

    file: _Object | None
    number: int
    name: str = ""

    @property
    def address(self) -> int:
        assert self.file is not None
        return self.file.address(self.number)


@record(guarded=False, eq=False)
class _Relocation:
    """A place in a section that depends on the address of a symbol."""

    file: _Object
    section: int
    offset: int
    symbol: _Symbol
    kind: int
    addend: int


def linked(objects: Sequence[bytes]) -> Image:
    """Links object files to an image. Raises Unlinkable for other formats and for rare features."""
    return _Linker([_Object(data) for data in objects]).image()


class _Linker:
    def __init__(self, files: Sequence[_Object]) -> None:
        self.files = files
        self.shared = {name: _Symbol(file, number) for file in files for name, number in file.shared()}
        self.words: dict[_Symbol, int] = {}  # the offsets of words with the addresses of symbols (the GOT)
        self.slots: list[Slot] = []

    def image(self) -> Image:
        relocations = [each for file in self.files for number in file.kept for each in self._relocations(file, number)]
        code_end = self._place(0, is_written=False)
        wanted = dict.fromkeys(each.symbol for each in relocations if self._wants_word(each))
        first = -(-code_end // (2 * WORD)) * 2 * WORD
        self.words = {symbol: first + 2 * WORD * k + WORD for k, symbol in enumerate(wanted)}
        code_end = first + 2 * WORD * len(wanted)
        data_start = -(-code_end // PAGE) * PAGE
        end = self._place(data_start, is_written=True)
        memory = bytearray(end)
        for file in self.files:
            for number in file.kept:
                section = file.sections[number]
                if section.kind != _ZEROS:
                    memory[file.base[number] : file.base[number] + section.size] = file.bytes_of(section)
        for symbol, at in self.words.items():
            memory[at - WORD : at] = _JUMP
            self._hold(at, symbol, 0)
        for each in relocations:
            self._relocate(memory, each)
        functions = tuple(symbol for file in self.files for symbol in file.functions())
        # Trailing zeros are not stored.
        data = bytes(memory[data_start:]).rstrip(b"\0")
        lines = self._lines({each.offset for each in functions})
        return Image(bytes(memory[:code_end]), data, end - data_start, tuple(self.slots), functions, lines)

    def _lines(self, heads: set[int]) -> tuple[Stretch, ...]:
        """The source lines of the code, if the files have line tables; functions begin at `heads`."""
        lines: list[Stretch] = []
        for file in self.files:
            for number, section in enumerate(file.sections):
                if file.section_name(number) == ".debug_line":
                    from tirlite.runtime.artifact.line_table import stretches_of

                    relocations = self._relocations(file, number)
                    addresses = {each.offset: each.symbol.address + each.addend for each in relocations}
                    lines += stretches_of(file.bytes_of(section), addresses, heads)
        return tuple(lines)

    def _place(self, at: int, *, is_written: bool) -> int:
        """Lays out sections from `at` on, and returns the end."""
        for file in self.files:
            for number in file.kept:
                section = file.sections[number]
                if file.is_written(number) != is_written:
                    continue
                if section.align > PAGE:
                    raise Unlinkable(f"a section aligned to {section.align} bytes")
                at = -(-at // max(section.align, 1)) * max(section.align, 1)
                file.base[number] = at
                at += section.size
        return at

    def _relocations(self, file: _Object, number: int) -> Iterator[_Relocation]:
        """The relocations of one section."""
        for section in file.sections:
            if section.kind == _RELOCATIONS and section.info == number:
                for offset, info, addend in struct.iter_unpack("<QQq", file.bytes_of(section)):
                    yield _Relocation(file, number, offset, self._resolved(file, info >> 32), info & 0xFFFFFFFF, addend)

    def _resolved(self, file: _Object, symbol: int) -> _Symbol:
        """The symbol in the file that defines it, or an external one."""
        if not file.is_undefined(symbol):
            return _Symbol(file, symbol)
        name = file.symbol_name(symbol)
        return self.shared.get(name) or _Symbol(None, 0, name)

    def _wants_word(self, each: _Relocation) -> bool:
        return each.kind in _OF_WORDS or (each.kind in _NEAR and each.symbol.file is None)

    def _relocate(self, memory: bytearray, each: _Relocation) -> None:
        here = each.file.base[each.section] + each.offset
        if each.kind == _ADDRESS:
            self._hold(here, each.symbol, each.addend)
            return
        if each.kind in _OF_WORDS:
            target = self.words[each.symbol]
        elif each.kind in _NEAR:
            target = self.words[each.symbol] - WORD if each.symbol.file is None else each.symbol.address
        else:
            raise Unlinkable(f"a relocation of kind {each.kind}")
        struct.pack_into("<i", memory, here, target + each.addend - here)

    def _hold(self, at: int, symbol: _Symbol, addend: int) -> None:
        """Adds a slot that will hold the address of a symbol."""
        if symbol.file is None:
            self.slots.append(Slot(at, symbol.name, addend))
        else:
            self.slots.append(Slot(at, "", symbol.address + addend))


def artifact_of(
    func: PrimFunc, signature: Signature, lowered: Lowered, objects: Sequence[bytes], small_below: int, large_from: int
) -> Artifact:
    """The artifact of a compiled function; `signature` is as callers see it, without the plan."""
    has_plan = shape_plan(func) is not None
    has_workspace = not lowered.workspace.is_empty
    dims = "q" * len(signature.dims)
    own = (*[FORK_JOIN] * lowered.needs_pool, *[POLL] * lowered.polls, *[HOLDS] * lowered.asks_caches)
    externs = (*lowered.externs, *own)
    symbols = [symbol for symbol in (lowered.name, lowered.size_name) if symbol]
    return Artifact(
        code=code_of(objects, symbols, externs),
        entry=lowered.name,
        parameters=letters_of(func) + dims + "P" * has_workspace,
        size_entry=lowered.size_name,
        size_parameters="".join(letter_of(each.var.dtype) for each in signature.scalars) + "P" * has_plan + dims,
        has_workspace=has_workspace,
        workspace_bytes=lowered.workspace.bytes,
        alignment=lowered.alignment,
        plan_at=len(func.params) - 1 if has_plan else -1,
        small_below=small_below,
        large_from=large_from,
        elsewhere=_fault_of(asks_for_the_other, lowered),
        in_order=_fault_of(asks_for_order, lowered),
        addresses=lowered.addresses,
    )


def _fault_of(is_asked: Callable[[Message], bool], lowered: Lowered) -> int:
    """The number of the first such fault, or 0."""
    return next((k for k, each in enumerate(lowered.faults, 1) if is_asked(each)), 0)


def code_of(objects: Sequence[bytes], symbols: Sequence[str], externs: Sequence[str] = ()) -> Code:
    """Object files as one image, or as they are if they cannot be linked."""
    try:
        return linked(objects)
    except Unlinkable:
        from tirlite.runtime.artifact.object_files import ObjectFiles

        return ObjectFiles(tuple(objects), tuple(symbols), tuple(externs))


def letters_of(func: PrimFunc) -> str:
    """The letters of `struct` for the types of the parameters."""
    return "".join(map(_letter, func.params))


def _letter(param: Var | Buffer) -> str:
    """The letter of a parameter's type; a 16-bit float is passed as f32 and rounded inside."""
    return "P" if isinstance(param, Buffer) else letter_of(param.dtype)


def letter_of(dtype: DType) -> str:
    """The letter of `struct` for the type that a number is passed as."""
    if dtype.is_float:
        return "d" if dtype.bits == 64 else "f"
    letter = {1: "b", 8: "b", 16: "h", 32: "i", 64: "q"}[dtype.bits]
    return letter if dtype.code is TypeCode.INT else letter.upper()
