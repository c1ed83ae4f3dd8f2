"""Draws charts as pictures: as SVG of a size that does not grow with the number of rectangles."""

from __future__ import annotations

from math import ceil

from tirlite.record import record
from tirlite.show.chart import Chart, Grid, Rectangle, extent, runs
from tirlite.show.html import escaped

# Tints of like lightness, so that black text is readable on each.
_FILLS = ("#8ecae6", "#ffb703", "#b7e4c7", "#f4acb7", "#cdb4db", "#ffd6a5", "#a3c4f3", "#d9ed92", "#e5989b", "#90dbf4")
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 16, 48, 44
_LETTER_WIDTH = 6.2
_GRID, _FRAME, _LINE, _SHADE = "#ddd", "#333", "#c1121f", "#33658a"
# Up to so many rectangles are drawn one by one. Of more, the largest are, and the rest as shades of so many levels, in
# cells of so many pixels.
_MANY, _LARGEST, _LEVELS, _CELL = 2000, 800, 4, 4
_MOST_MARKS = 50
# Numbers from here on are rounded on the axes.
_LONG = 10**12


@record
class _Frame:
    """From the chart's units to pixels, and the edges of the plane in pixels."""

    left: int
    bottom: int
    per_time: float
    per_byte: float
    floor: int
    right_edge: int

    def x(self, value: int) -> float:
        return _LEFT + (value - self.left) * self.per_time

    def y(self, value: int) -> float:
        return self.floor - (value - self.bottom) * self.per_byte


def chart_svg(chart: Chart, width: int = 960, height: int = 540) -> str:
    """The chart as an SVG picture of `width` x `height` pixels; rectangles tell their note under the pointer.

    Of more than some thousand rectangles the largest are drawn, and the others as shades: half a megabyte at most.
    """
    left, right, bottom, top = extent(chart)
    per_time = (width - _LEFT - _RIGHT) / (right - left)
    per_byte = (height - _TOP - _BOTTOM) / (top - bottom)
    frame = _Frame(left, bottom, per_time, per_byte, height - _BOTTOM, width - _RIGHT)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
        "<style>g:hover>rect{stroke-width:2.5}</style>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{_LEFT}" y="20" font-size="14">{escaped(chart.title)}</text>',
        *_axes(chart, frame),
    ]
    drawn = chart.rectangles
    if len(drawn) > _MANY:
        drawn, small = _divided(chart)
        parts += _shades(chart, small, frame)
        parts.append(_text(frame.right_edge, 20, f"the largest {len(drawn)} drawn, {len(small)} as shades", "end"))
    fills: dict[str, str] = {}
    shared = _shared([rectangle.label for rectangle in drawn])
    for rectangle in drawn:
        fill = fills.setdefault(rectangle.label, _FILLS[len(fills) % len(_FILLS)])
        parts += _drawn(rectangle, frame, fill, shared)
    for value, label in chart.instants:
        parts.append(_instant(frame, value))
        x, room = frame.x(value), len(label) * _LETTER_WIDTH
        at_right = x + 4 + room > frame.right_edge
        if at_right and x - room < _LEFT:  # on neither side, but beside the name of the axis
            x = frame.right_edge
        parts.append(_text(x, _TOP - 4, label, "end" if at_right else "start", _LINE))
    # Labels of lines keep away from those of instants.
    edge, anchor = frame.right_edge, "end"
    if any(frame.x(value) > (_LEFT + frame.right_edge) / 2 for value, _ in chart.instants):
        edge, anchor = _LEFT, "start"
    for value, label in chart.lines:
        parts.append(_level(frame, value, _LINE, "5 3"))
        parts.append(_text(edge, frame.y(value) - 4, label, anchor, _LINE))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _divided(chart: Chart) -> tuple[tuple[Rectangle, ...], list[Rectangle]]:
    """The largest rectangles, and the others, both in their order."""
    boxes = chart.rectangles
    area = [(box.right - box.left) * (box.top - box.bottom) for box in boxes]
    largest = sorted(range(len(boxes)), key=lambda index: (-area[index], index))[:_LARGEST]
    chosen = bytearray(len(boxes))
    for index in largest:
        chosen[index] = 1
    others = [box for box, is_large in zip(boxes, chosen, strict=True) if not is_large]
    return tuple(boxes[index] for index in sorted(largest)), others


def _shades(chart: Chart, rectangles: list[Rectangle], frame: _Frame) -> list[str]:
    """What the rectangles cover, one path for each level of density."""
    columns, rows = (frame.right_edge - _LEFT) // _CELL, (frame.floor - _TOP) // _CELL
    wide, high = (frame.right_edge - _LEFT) / columns, (frame.floor - _TOP) / rows
    paths: list[list[str]] = [[] for _ in range(_LEVELS + 1)]
    for row, parts in enumerate(Grid(*extent(chart), columns, rows).coverage(rectangles)):
        y = frame.floor - (row + 1) * high
        levels = [min(_LEVELS, ceil(part * _LEVELS - 0.01)) for part in parts]
        for level, begin, end in runs(levels):
            x = _LEFT + begin * wide
            paths[level].append(f"M{x:.1f} {y:.1f}h{(end - begin) * wide:.1f}v{high:.1f}H{x:.1f}z")
    return [
        f'<path d="{"".join(path)}" fill="{_SHADE}" fill-opacity="{level / (_LEVELS + 1):.2f}"/>'
        for level, path in enumerate(paths)
        if path
    ]


def _axes(chart: Chart, frame: _Frame) -> list[str]:
    left, right, bottom, top = extent(chart)
    parts = []
    for value in _ticks(bottom, top):
        parts.append(_level(frame, value, _GRID))
        parts.append(_text(_LEFT - 6, frame.y(value) + 4, _number(value), "end"))
    parts += [_below(frame, value) for value in _ticks(left, right)]
    if len(chart.marks) <= _MOST_MARKS:  # more of them would hide what lies between
        parts += [_level(frame, value, _FRAME) for value in chart.marks]
    parts.append(_text(frame.right_edge, frame.floor + 34, chart.across, "end"))
    parts.append(_text(_LEFT - 6, _TOP - 8, chart.up, "end"))
    return parts


def _drawn(rectangle: Rectangle, frame: _Frame, fill: str, shared: tuple[int, int]) -> list[str]:
    x, y = frame.x(rectangle.left), frame.y(rectangle.top)
    width, height = frame.x(rectangle.right) - x, frame.y(rectangle.bottom) - y
    label = _fitted(rectangle.label, int((width - 4) / _LETTER_WIDTH), shared)
    box = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    # Frames of thin rectangles would be all that is seen of them.
    stroke = min(0.8, width / 6, height / 6)
    parts = [
        f"<g><title>{escaped(rectangle.note or rectangle.label)}</title>",
        f'<rect {box} fill="{fill}" stroke="{_FRAME}" stroke-width="{stroke:.2g}"/>',
    ]
    if label and height >= 11:
        parts.append(_text(x + width / 2, y + height / 2 + 4, label))
    return [*parts, "</g>"]


def _shared(labels: list[str]) -> tuple[int, int]:
    """How many letters at their begin and at their end all labels have in common: these tell nothing apart."""
    low, high = min(labels, default=""), max(labels, default="")
    if low == high:
        return 0, 0
    head = _common(low, high)
    ends = [label[:head:-1] for label in labels]
    return head, _common(min(ends), max(ends))


def _common(low: str, high: str) -> int:
    """How many letters the first and the last of texts in order begin with alike, and so do those between."""
    return next((place for place, pair in enumerate(zip(low, high, strict=False)) if pair[0] != pair[1]), len(low))


def _fitted(label: str, room: int, shared: tuple[int, int]) -> str:
    """The label, or as much of it as there is room for, where it differs from others first."""
    head, tail = shared
    own = label[head : len(label) - tail]
    before, after = "…" * (head > 0), "…" * (tail > 0)
    for shown in (label, f"{label[:head]}{own}{after}", f"{before}{own}{after}", own):
        if len(shown) <= room:
            return shown
    return f"{own[: room - 1]}…" if room >= 3 else ""


def _level(frame: _Frame, value: int, stroke: str, dashes: str = "") -> str:
    y = f"{frame.y(value):.1f}"
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<line x1="{_LEFT}" x2="{frame.right_edge}" y1="{y}" y2="{y}" stroke="{stroke}"{dashed}/>'


def _instant(frame: _Frame, value: int) -> str:
    x = f"{frame.x(value):.1f}"
    return (
        f'<line x1="{x}" x2="{x}" y1="{_TOP}" y2="{frame.floor}" stroke="{_LINE}" stroke-dasharray="2 3" '
        f'pointer-events="none"/>'
    )


def _below(frame: _Frame, value: int) -> str:
    """The number of a time on the axis, inside of the picture."""
    text, x, edge = _number(value), frame.x(value), frame.right_edge + _RIGHT
    if x + len(text) * _LETTER_WIDTH / 2 > edge:
        return _text(edge, frame.floor + 15, text, "end")
    return _text(x, frame.floor + 15, text)


def _number(value: int) -> str:
    """A number that has room beside the plane."""
    return str(value) if abs(value) < _LONG else f"{value:.4g}"


def _text(x: float, y: float, text: str, anchor: str = "middle", fill: str = "black") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}">{escaped(text)}</text>'


def _ticks(low: int, high: int) -> range:
    """Round numbers in [low, high], five to ten of them."""
    step = 1
    while (high - low) // step > 10:
        step = step * 2 if str(step)[0] in "15" else step * 5 // 2
    return range(-(-low // step) * step, high + 1, step)
