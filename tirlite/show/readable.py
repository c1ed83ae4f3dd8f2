"""Makes a text whose lines are lines in notebooks and consoles, which else show texts in quotes."""

from __future__ import annotations

from typing import Protocol

from tirlite.show.html import block
from tirlite.show.styled import Piece


class _Printer(Protocol):
    """What IPython hands to `_repr_pretty_`."""

    def text(self, text: str, /) -> None: ...


class Readable(str):
    """A text. Jupyter and IPython show its lines as lines."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return block([Piece(str(self))])

    def _repr_pretty_(self, printer: _Printer, cycle: bool) -> None:
        printer.text(str(self))
