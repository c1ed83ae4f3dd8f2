"""How things look: tables and charts as text and SVG, styled text as ANSI and HTML. Knows nothing of compilers."""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.show.chart import Chart as Chart, Rectangle as Rectangle, chart_text as chart_text
    from tirlite.show.environment import full_traceback as full_traceback
    from tirlite.show.html import (
        block as block,
        escaped as escaped,
        folded as folded,
        framed_page as framed_page,
        page as page,
        picture as picture,
    )
    from tirlite.show.shown import counted as counted, shown as shown, visible as visible
    from tirlite.show.styled import (
        Piece as Piece,
        Role as Role,
        Styled as Styled,
        coloured as coloured,
        framed as framed,
        marked_text as marked_text,
        plain as plain,
        python_text as python_text,
        write as write,
    )
    from tirlite.show.svg import chart_svg as chart_svg
    from tirlite.show.table import table as table
else:
    __getattr__, __all__ = late_names(__name__)
