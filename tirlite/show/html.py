"""Makes HTML of styled text, escaped and styled in place, for light and dark pages alike; and whole pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from tirlite.show.styled import Piece, Role

# Of middle lightness, so that each can be read on white as well as on black.
COLOURS = {
    Role.ERROR: "#d13438",
    Role.MAIN_MARK: "#d13438",
    Role.RELATED_MARK: "#3a7bd5",
    Role.KEYWORD: "#a35bc9",
    Role.WORD: "#1c8591",
    Role.NUMBER: "#b06a10",
    Role.TEXT: "#3d8b40",
}
_STYLES = {
    **{role: f"color:{colour}" for role, colour in COLOURS.items()},
    Role.ERROR: f"color:{COLOURS[Role.ERROR]};font-weight:bold",
    Role.STRONG: "font-weight:bold",
    Role.FAINT: "opacity:0.6",
}
_BLOCK = "text-align:left;white-space:pre;overflow-x:auto;line-height:1.35;background:none;margin:0.4em 0"
# XML, and so SVG, has no control characters but three, however they are written.
_CONTROLS = {chr(code): "\ufffd" for code in range(32) if chr(code) not in "\t\n\r"}
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"} | _CONTROLS)
_STYLE = (
    "body{font-family:sans-serif;max-width:1000px;margin:2em auto;padding:0 1em;color-scheme:light dark}"
    "h1{font-size:1.4em}h2{font-size:1.1em;margin-top:2em}svg{max-width:100%;height:auto}"
)


def escaped(text: str) -> str:
    """`text` for HTML and SVG, between tags as well as in attributes."""
    return text.translate(_ESCAPES)


def block(pieces: Iterable[Piece]) -> str:
    """Styled text as preformatted lines."""
    return f'<pre style="{_BLOCK}">{"".join(_span(piece) for piece in pieces)}</pre>'


def _span(piece: Piece) -> str:
    style = _STYLES.get(piece.role)
    return f'<span style="{style}">{escaped(piece.text)}</span>' if style else escaped(piece.text)


def folded(heading: str, inside: str) -> str:
    """HTML under a heading of plain text that opens and closes at a click."""
    return f'<details><summary style="cursor:pointer">{escaped(heading)}</summary>{inside}</details>'


def picture(svg: str) -> str:
    """An SVG picture, no wider than what it stands in."""
    return f'<div style="max-width:960px;overflow-x:auto">{svg}</div>'


def framed_page(page: str) -> str:
    """A whole page inside of another one; its script runs, and reaches nothing outside of the frame."""
    style = "width:100%;height:820px;border:0"
    return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{escaped(page)}"></iframe>'


def page(title: str, sections: Sequence[tuple[str, str]]) -> str:
    """A page with a heading and a fragment for each section: (heading in plain text, HTML)."""
    parts = [f"<section><h2>{escaped(heading)}</h2>\n{inside}</section>" for heading, inside in sections]
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escaped(title)}</title>'
        f"<style>{_STYLE}</style></head>\n<body><h1>{escaped(title)}</h1>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


class _Printer(Protocol):
    """What IPython hands to `_repr_pretty_`."""

    def text(self, text: str, /) -> None: ...


class Readable(str):
    """A text whose lines are lines in Jupyter and IPython, which else show texts in quotes."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return block([Piece(str(self))])

    def _repr_pretty_(self, printer: _Printer, cycle: bool) -> None:
        printer.text(str(self))
