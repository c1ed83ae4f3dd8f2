"""Places in source text: a Source holds the text, a Span points into it."""

from __future__ import annotations

from dataclasses import field

from tirlite.record import record


@record(eq=False)
class Source:
    """The text of a file, or of the part of it that was read.

    `lines[0]` is line `first_line` (counted from 1) of the file called `name`.
    The text is kept, so that a message can show it when the file is gone or never was one.
    """

    name: str
    lines: tuple[str, ...] = field(repr=False)
    first_line: int = 1

    @classmethod
    def of(cls, name: str, text: str, first_line: int = 1) -> Source:
        """The source with the lines of `text`, the first of which is line `first_line` of the file."""
        # As Python counts lines: str.splitlines knows more line ends.
        return cls(name, tuple(text.replace("\r\n", "\n").replace("\r", "\n").split("\n")), first_line)

    def line(self, number: int) -> str | None:
        """Line `number` of the file, or None where this source does not hold it."""
        index = number - self.first_line
        return self.lines[index] if 0 <= index < len(self.lines) else None


@record
class Span:
    """A stretch of source text. Lines count from 1, columns from 0 in characters; the end is exclusive."""

    source: Source
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column + 1}"
