"""Writes debug metadata: the file and line that each instruction comes from."""

from __future__ import annotations

from tirlite.diag import Span

# `runtime.artifact.line_table` reads the tables that LLVM makes of it.
DWARF_VERSION = 4


class Lines:
    """The source locations of one module, as metadata nodes appended to `metadata`."""

    def __init__(self, metadata: list[str]) -> None:
        self._metadata = metadata
        self._files: dict[str, str] = {}
        self._places: dict[tuple[str, str, int, int], str] = {}
        self._blocks: dict[tuple[str, str], str] = {}
        self._begins: dict[str, tuple[str, int]] = {}
        self._signature = self._node("!DISubroutineType(types: !{null})")
        self._unit = self._node(
            f'distinct !DICompileUnit(language: DW_LANG_C, file: {self._file("")}, producer: "tirlite",'
            " isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly)"
        )
        self._flags = (
            self._node('!{i32 2, !"Debug Info Version", i32 3}'),
            self._node(f'!{{i32 7, !"Dwarf Version", i32 {DWARF_VERSION}}}'),
        )

    def function(self, span: Span | None) -> str:
        """The node of a function whose emission begins; `define` completes it."""
        made = self._node("")
        self._begins[made] = ("", 0) if span is None else (span.source.name, span.line)
        return made

    def define(self, function: str, name: str) -> str:
        """Completes the function's node; returns the text that follows its head."""
        file, line = self._begins[function]
        self._metadata[int(function[1:])] = (
            f'{function} = distinct !DISubprogram(name: "{name}", file: {self._file(file)}, line: {line},'
            f" scopeLine: {line}, type: {self._signature},"
            f" unit: {self._unit}, spFlags: DISPFlagDefinition | DISPFlagOptimized)"
        )
        return f" !dbg {function}"

    def place(self, function: str, span: Span | None) -> str:
        """The text that attaches a source location to an instruction of the function."""
        name, line, column = ("", 0, 0) if span is None else (span.source.name, span.line, span.column + 1)
        block = (function, name)
        if block not in self._blocks:
            of = f"!DILexicalBlockFile(scope: {function}, file: {self._file(name)}, discriminator: 0)"
            self._blocks[block] = self._node(of)
        key = (function, name, line, column)
        if key not in self._places:
            where = f"line: {line}, column: {min(column, 65535)}, scope: {self._blocks[block]}"
            self._places[key] = self._node(f"!DILocation({where})")
        return f", !dbg {self._places[key]}"

    @property
    def named(self) -> list[str]:
        """The named metadata that makes LLVM emit line tables."""
        return [f"!llvm.dbg.cu = !{{{self._unit}}}", f"!llvm.module.flags = !{{{', '.join(self._flags)}}}"]

    def _file(self, name: str) -> str:
        if name not in self._files:
            told = "".join(map(_spelled, name)) or "unknown"  # LLVM rejects an empty file name
            self._files[name] = self._node(f'!DIFile(filename: "{told}", directory: "")')
        return self._files[name]

    def _node(self, text: str) -> str:
        name = f"!{len(self._metadata)}"
        self._metadata.append(f"{name} = {text}")
        return name


def _spelled(letter: str) -> str:
    if letter.isascii() and letter.isprintable() and letter not in '"\\':
        return letter
    return "".join(f"\\{byte:02X}" for byte in letter.encode("utf-8", "surrogateescape"))
