"""Charts of very many rectangles: bounded in size, and still true."""

from random import Random
from xml.etree import ElementTree

import pytest

from tirlite.show import Chart, Rectangle, chart_svg, chart_text, page
from tirlite.show.chart import Grid, runs

SVG = "{http://www.w3.org/2000/svg}"


def tiles(count):
    """`count` rectangles that cover the lower half of the plane, in 100 rows, and one large one above."""
    across = count // 100
    small = (Rectangle(f"b{i}", i % across, i % across + 1, i // across, i // across + 1) for i in range(count))
    return Chart(
        "many", (*small, Rectangle("large", 0, across, 100, 150, "the large one")), "time", "bytes", ((200, ""),)
    )


def test_coverage_is_the_area_of_each_cell_that_is_covered():
    grid = Grid(0, 8, 0, 4, columns=4, rows=2)
    parts = grid.coverage([Rectangle("a", 0, 3, 0, 2), Rectangle("b", 5, 8, 1, 4)])
    assert parts == [[1.0, 0.5, 0.25, 0.5], [0.0, 0.0, 0.5, 1.0]]


def test_coverage_adds_up_to_the_area():
    random = Random(1)
    boxes = []
    for number in range(300):
        left, bottom = random.randrange(90), random.randrange(40)
        boxes.append(Rectangle(str(number), left, random.randrange(left, 91), bottom, random.randrange(bottom, 41)))
    parts = Grid(0, 90, 0, 40, columns=7, rows=9).coverage(boxes)
    cell = 90 / 7 * 40 / 9
    area = sum((box.right - box.left) * (box.top - box.bottom) for box in boxes)
    assert sum(map(sum, parts)) * cell == pytest.approx(area)


def test_runs_of_equal_levels():
    assert runs([0, 0, 2, 2, 1, 0, 1]) == [(2, 2, 4), (1, 4, 5), (1, 6, 7)]


def test_text_tells_density_where_letters_run_out():
    lines = chart_text(tiles(6000), width=40, height=4).splitlines()
    plane = [line.partition("|")[2] for line in lines[2:6]]
    assert [set(row) for row in plane] == [{"."}, {"#"}, {"#"}, {"#"}]
    assert lines[-1].startswith("6001 rectangles: `.` free")
    assert max(map(len, lines[2:7])) <= 40


def test_text_has_a_legend_of_limited_length():
    boxes = tuple(Rectangle(f"b{i}", i, i + 1, 0, 1) for i in range(30))
    lines = chart_text(Chart("", boxes, "time", "bytes"), legend=5).splitlines()
    assert lines[-5:] == ["A b0", "B b1", "C b2", "D b3", "... 26 more ..."]


def test_a_picture_of_few_rectangles_names_each():
    root = ElementTree.fromstring(chart_svg(tiles(500)))
    assert len(list(root.iter(SVG + "title"))) == 501
    assert list(root.iter(SVG + "path")) == []


def test_a_picture_of_very_many_names_the_largest_and_shades_the_others():
    text = chart_svg(tiles(60_000))
    assert len(text) < 600_000
    root = ElementTree.fromstring(text)
    assert "the large one" in [title.text for title in root.iter(SVG + "title")]
    assert len(list(root.iter(SVG + "title"))) == 800
    assert len(list(root.iter(SVG + "path"))) > 0
    assert any(text.text == "the largest 800 drawn, 59201 as shades" for text in root.iter(SVG + "text"))


def test_instants_are_vertical_lines_with_a_label():
    root = ElementTree.fromstring(chart_svg(Chart("", (Rectangle("a", 0, 4, 0, 1),), "", "", instants=((2, "peak"),))))
    (line,) = (line for line in root.iter(SVG + "line") if line.get("x1") == line.get("x2"))
    (box,) = (group.find(SVG + "rect") for group in root.iter(SVG + "g"))
    assert float(line.get("x1")) == float(box.get("x")) + float(box.get("width")) / 2
    assert "peak" in [text.text for text in root.iter(SVG + "text")]


def test_a_page_stands_alone():
    text = page("a < b", [("first & last", "<p>inside</p>")])
    assert text.startswith("<!DOCTYPE html>")
    assert "<h1>a &lt; b</h1>" in text
    assert "<h2>first &amp; last</h2>\n<p>inside</p>" in text
