"""How things look: tables and charts as text and SVG, styled text as ANSI and HTML. Knows nothing of compilers."""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.show.ansi import coloured, wants_colour, write
    from tirlite.show.carets import framed, marked_text
    from tirlite.show.chart import chart_text
    from tirlite.show.environment import full_traceback
    from tirlite.show.html import block, escaped, folded, framed_page, picture
    from tirlite.show.page import page
    from tirlite.show.python_text import python_text
    from tirlite.show.rectangle import Chart, Rectangle
    from tirlite.show.shown import shown
    from tirlite.show.styled import Piece, Role, Styled, plain
    from tirlite.show.svg import chart_svg
    from tirlite.show.table import table
else:
    __getattr__ = late_names(
        __name__,
        {
            "ansi": "coloured wants_colour write",
            "carets": "framed marked_text",
            "chart": "chart_text",
            "environment": "full_traceback",
            "html": "block escaped folded framed_page picture",
            "page": "page",
            "python_text": "python_text",
            "rectangle": "Chart Rectangle",
            "shown": "shown",
            "styled": "Piece Role Styled plain",
            "svg": "chart_svg",
            "table": "table",
        },
    )

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
    "framed_page",
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
