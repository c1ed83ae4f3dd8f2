"""How things look: tables and charts as text and SVG. Knows nothing of compilers."""

from tirlite.show.chart import Chart, Rectangle, chart_text
from tirlite.show.svg import chart_svg
from tirlite.show.table import table

__all__ = ["Chart", "Rectangle", "chart_svg", "chart_text", "table"]
