"""Charts of rectangles, as text and as SVG."""

from xml.etree import ElementTree

from tirlite.show import Chart, Rectangle, chart_svg, chart_text

BOXES = (Rectangle("a", 0, 2, 0, 2, "first"), Rectangle("b", 1, 4, 2, 3), Rectangle("c<d>", 2, 4, 0, 1))


def test_text_has_time_across_and_bytes_upward():
    assert chart_text(Chart("title", BOXES, "time", "bytes")).splitlines() == [
        "title",
        "bytes",
        "3 |.BBB",
        "2 |AA..",
        "1 |AACC",
        "0 +----",
        "   0  4  time",
        "",
        "A first",
        "B b",
        "C c<d>",
    ]


def test_what_is_too_small_for_a_cell_still_shows():
    text = chart_text(
        Chart("title", (Rectangle("big", 0, 1000, 0, 1000), Rectangle("thin", 10, 11, 1000, 1001)), "time", "bytes"),
        10,
        5,
    )
    assert "B" in text.split("\n\nA big")[0]


def test_an_empty_chart_says_so():
    assert chart_text(Chart("title", (), "", "")) == "title\n(nothing to show)"
    ElementTree.fromstring(chart_svg(Chart("title", (), "", "")))


def test_svg_is_well_formed_and_names_what_lies_under_the_pointer():
    root = ElementTree.fromstring(chart_svg(Chart("a & b", BOXES, "time", "bytes", ((3, "bound"),), (0, 2))))
    space = "{http://www.w3.org/2000/svg}"
    assert [title.text for title in root.iter(space + "title")] == ["first", "b", "c<d>"]
    assert any(text.text == "bound" for text in root.iter(space + "text"))


def test_svg_is_well_formed_whatever_names_are_made_of():
    name = "".join(map(chr, range(128)))
    chart = Chart(name, (Rectangle(name, 0, 9, 0, 9, name),), name, name, lines=((3, name),), instants=((4, name),))
    text = "".join(ElementTree.fromstring(chart_svg(chart)).itertext())
    assert """&'()*+,-./0123456789:;<=>?@""" in text
    assert "\x1b" not in text


def test_svg_rectangles_stand_where_their_numbers_say():
    root = ElementTree.fromstring(chart_svg(Chart("", BOXES, "time", "bytes")))
    space = "{http://www.w3.org/2000/svg}"
    a, b, c = (group.find(space + "rect") for group in root.iter(space + "g"))
    assert float(b.get("x")) < float(a.get("x")) + float(a.get("width")) == float(c.get("x"))
    assert float(b.get("y")) + float(b.get("height")) == float(a.get("y")), "b rests on a"


def test_svg_keeps_the_numbers_on_its_axes_inside():
    chart = Chart("title", (Rectangle("a", 0, 1_000_000, 0, 3 * 10**15),), "time", "bytes")
    texts = list(ElementTree.fromstring(chart_svg(chart)).iter("{http://www.w3.org/2000/svg}text"))
    placed = {text.text: (float(text.get("x") or 0), text.get("text-anchor")) for text in texts}
    assert placed["1000000"] == (960.0, "end")
    assert placed["500000"][1] == "middle"
    assert "5e+14" in placed


SPACE = "{http://www.w3.org/2000/svg}"


def test_svg_shows_of_long_names_what_tells_them_apart():
    widths = {
        "layer_1_output": 20,
        "layer_12_output": 12,
        "layer_13_output": 7,
        "layer_14_output": 5,
        "layer_9_output": 2,
    }
    boxes, at = [], 0
    for name, width in widths.items():
        boxes.append(Rectangle(name, at, at + width, 0, 1))
        at += width
    picture = ElementTree.fromstring(chart_svg(Chart("", tuple(boxes), "", "", least_top=1), 460))
    shown = [group.findtext(SPACE + "text") for group in picture.iter(SPACE + "g")]
    assert shown == ["layer_1_output", "layer_12…", "…13…", "…14…", "9"]
    alone = ElementTree.fromstring(chart_svg(Chart("", (Rectangle("layer_1_output", 0, 1, 0, 1),), "", ""), 160))
    assert alone.find(SPACE + "g").findtext(SPACE + "text") == "layer_1_…"


def test_svg_keeps_the_labels_of_lines_away_from_those_of_instants():
    for time, side in ((1, "end"), (3, "start")):
        chart = Chart("", BOXES, "", "", lines=((3, "bound"),), instants=((time, "peak"),))
        texts = {text.text: text for text in ElementTree.fromstring(chart_svg(chart)).iter(SPACE + "text")}
        assert texts["bound"].get("text-anchor") == side


def test_svg_keeps_the_label_of_an_instant_off_the_axis_where_neither_side_has_room():
    chart = Chart("", BOXES, "", "", instants=((2, "as long as the plane is wide"),))
    texts = {text.text: text for text in ElementTree.fromstring(chart_svg(chart, 320, 200)).iter(SPACE + "text")}
    label = texts["as long as the plane is wide"]
    assert (label.get("x"), label.get("text-anchor")) == ("304.0", "end")
