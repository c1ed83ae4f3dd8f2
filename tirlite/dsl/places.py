"""Finds the span of the source that a node of Python's syntax tree came from."""

from __future__ import annotations

import ast
from dataclasses import field
from typing import cast

from tirlite.diag import Source, Span
from tirlite.record import record


def lines_of(text: str) -> tuple[str, ...]:
    """The lines of `text` as Python counts them."""
    # It ends them here alone; str.splitlines knows more.
    return tuple(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))


@record
class Places:
    """Where the nodes of one tree stand: line 1 of the tree is line `1 + shift` of the source."""

    source: Source
    shift: int = 0
    _is_ascii: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_is_ascii", all(line.isascii() for line in self.source.lines))

    def span(self, node: ast.AST) -> Span:
        """The span of a statement, expression, argument or keyword."""
        placed = cast(ast.expr, node)
        line, end_line = placed.lineno + self.shift, (placed.end_lineno or placed.lineno) + self.shift
        start, end = placed.col_offset, placed.end_col_offset
        end = start + 1 if end is None else end
        if not self._is_ascii:
            start, end = self._column(line, start), self._column(end_line, end)
        return Span(self.source, line, start, end_line, end)

    def text(self, node: ast.AST) -> str:
        """The source of a node, on one line."""
        span = self.span(node)
        lines = [self.source.line(number) or "" for number in range(span.line, span.end_line + 1)]
        lines[-1] = lines[-1][: span.end_column]
        lines[0] = lines[0][span.column :]
        return " ".join(line.strip() for line in lines)

    def _column(self, line: int, offset: int) -> int:
        """Characters for Python's bytes."""
        text = self.source.line(line) or ""
        return len(text.encode()[:offset].decode(errors="replace"))
