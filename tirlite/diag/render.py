"""Messages as text: a heading, the source lines with carets, the help.

error[unknown-name]: `colour` is not defined
  --> blur.py:12:9
   |
12 |     y[i] = colour
   |            ^^^^^^ no such name here
   |
   = help: did you mean `color`?
"""

from __future__ import annotations

from dataclasses import dataclass

from tirlite.diag.source import Span


@dataclass(frozen=True, slots=True)
class Place:
    """A span to show, what to write under it, and the mark to underline it with."""

    span: Span
    label: str
    mark: str


def render(code: str, title: str, places: tuple[Place, ...], help_text: str) -> str:
    """The whole text of one message, without a final newline."""
    width = max((len(str(place.span.line)) for place in places), default=1)
    margin = " " * width
    lines = [f"error[{code}]: {title}"]
    for number, place in enumerate(places):
        arrow = "-->" if number == 0 else ":::"
        lines += [f"{margin}{arrow} {place.span}", *_excerpt(place, width)]
    if help_text:
        lines += [f"{margin} |"] if places else []
        lines += [f"{margin} = help: {help_text}"]
    return "\n".join(lines)


def _excerpt(place: Place, width: int) -> list[str]:
    margin = " " * width
    span = place.span
    text = span.source.line(span.line)
    if text is None:
        return [f"{margin} = {place.label}"] if place.label else []
    end = span.end_column if span.end_line == span.line else len(text)
    marks = place.mark * max(1, end - span.column)
    # Tabs are kept in the padding, so that the marks stand under the text at any tab width.
    padding = "".join("\t" if c == "\t" else " " for c in text[: span.column])
    return [
        f"{margin} |",
        f"{span.line:>{width}} | {text}",
        f"{margin} | {padding}{marks} {place.label}".rstrip(),
    ]
