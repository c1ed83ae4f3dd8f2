"""How things look: tables and charts as text and SVG, styled text as ANSI and HTML. Knows nothing of compilers."""

from tirlite.show.ansi import coloured, wants_colour, write
from tirlite.show.carets import framed, marked_text
from tirlite.show.chart import chart_text
from tirlite.show.environment import full_traceback
from tirlite.show.html import block, escaped, folded, picture
from tirlite.show.page import page
from tirlite.show.python_text import python_text
from tirlite.show.rectangle import Chart, Rectangle
from tirlite.show.shown import shown
from tirlite.show.styled import Piece, Role, Styled, plain
from tirlite.show.svg import chart_svg
from tirlite.show.table import table

__all__ = [
    "Chart",
    "Piece",
    "Rectangle",
    "Role",
    "Styled",
    "block",
    "chart_svg",
    "chart_text",
    "coloured",
    "escaped",
    "folded",
    "framed",
    "full_traceback",
    "marked_text",
    "page",
    "picture",
    "plain",
    "python_text",
    "shown",
    "table",
    "wants_colour",
    "write",
]
