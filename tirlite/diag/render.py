"""Messages as styled text: a heading, the source lines with carets, the help.

error[unknown-name]: `colour` is not defined
  --> blur.py:12:9
   |
12 |     y[i] = colour
   |            ^^^^^^ no such name here
   |
   = help: did you mean `color`?
"""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.diag.source import Span
from tirlite.record import record
from tirlite.show import Piece, Role, Styled, visible

WIDEST = 200  # characters of a line of source; of one that a program wrote, the part around the place is shown


@record
class Annotation:
    """A span to show, what to write under it, and whether it is the main place or a related one."""

    span: Span
    label: str
    is_main: bool = True


def render(code: str, title: str, annotations: tuple[Annotation, ...], help_text: str) -> Styled:
    """The whole text of one message, without a final newline."""
    width = max((len(str(annotation.span.line)) for annotation in annotations), default=1)
    margin = " " * width
    pieces = [Piece(f"error[{code}]", Role.ERROR), Piece(f": {title}", Role.STRONG)]
    for number, annotation in enumerate(annotations):
        arrow = "-->" if number == 0 else ":::"
        pieces += [Piece(f"\n{margin}{arrow} ", Role.FAINT), Piece(str(annotation.span)), *_excerpt(annotation, width)]
    if help_text:
        bar = f"\n{margin} |" if annotations else ""
        pieces += [Piece(f"{bar}\n{margin} = ", Role.FAINT), Piece("help", Role.STRONG), Piece(f": {help_text}")]
    return tuple(Piece(visible(text), role) for text, role in pieces)


def _excerpt(annotation: Annotation, width: int) -> Iterator[Piece]:
    margin = " " * width
    span = annotation.span
    text = span.source.line(span.line)
    if text is None:
        if annotation.label:
            yield Piece(f"\n{margin} = ", Role.FAINT)
            yield Piece(annotation.label)
        return
    end = span.end_column if span.end_line == span.line else len(text)
    text, start, end = _shown_part(text, span.column, end)
    marks = ("^" if annotation.is_main else "-") * max(1, end - start)
    # Tabs are kept in the padding, so that the marks stand under the text at any tab width.
    padding = "".join("\t" if c == "\t" else " " for c in text[:start])
    yield Piece(f"\n{margin} |\n{span.line:>{width}} | ", Role.FAINT)
    yield Piece(text)
    yield Piece(f"\n{margin} | ", Role.FAINT)
    role = Role.MAIN_MARK if annotation.is_main else Role.RELATED_MARK
    yield Piece(f"{padding}{marks} {annotation.label}".rstrip(), role)


def _shown_part(text: str, start: int, end: int) -> tuple[str, int, int]:
    """What is shown of a line, and where the place from `start` to `end` stands in that."""
    if len(text) <= WIDEST:
        return text, start, end
    low = max(0, min(start - WIDEST // 2, len(text) - WIDEST))
    before, after = "..." if low else "", "..." if low + WIDEST < len(text) else ""
    part = before + text[low : low + WIDEST] + after
    shift = low - len(before)
    return part, start - shift, min(end - shift, len(part))
