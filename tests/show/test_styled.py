"""Text in pieces with roles becomes plain text, ANSI and HTML."""

from __future__ import annotations

import re
from io import StringIO

import pytest

from tirlite.show import Piece, Role, block, coloured, escaped, folded, marked_text, plain, python_text, write
from tirlite.show.html import COLOURS
from tirlite.show.styled import carets, framed, unframed

PIECES = (Piece("error", Role.ERROR), Piece(": a < b\n"), Piece("^^\n^", Role.MAIN_MARK))


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _no_wishes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)


def test_plain_text_has_no_colours() -> None:
    assert plain(PIECES) == "error: a < b\n^^\n^"


def test_no_colour_spans_the_end_of_a_line() -> None:
    shown = coloured(PIECES)
    assert shown == "\x1b[1;31merror\x1b[0m: a < b\n\x1b[31m^^\x1b[0m\n\x1b[31m^\x1b[0m"
    assert re.sub(r"\x1b\[[\d;]*m", "", shown) == plain(PIECES)


@pytest.mark.parametrize(
    ("stream", "wishes", "is_coloured"),
    [
        (Terminal, {}, True),
        (StringIO, {}, False),
        (Terminal, {"NO_COLOR": "1"}, False),
        (Terminal, {"NO_COLOR": ""}, True),
        (Terminal, {"TERM": "dumb"}, False),
        (StringIO, {"FORCE_COLOR": "1"}, True),
        (Terminal, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    ],
)
def test_colour_is_where_a_terminal_is_unless_somebody_has_a_wish(
    stream: type[StringIO], wishes: dict[str, str], is_coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in wishes.items():
        monkeypatch.setenv(name, value)
    out = stream()
    write(PIECES, out)
    assert ("\x1b" in out.getvalue()) is is_coloured
    assert out.getvalue().endswith("\n")


def test_html_is_escaped_and_stands_alone() -> None:
    shown = block([Piece("<script>'\"&", Role.TEXT)])
    assert "&lt;script&gt;&#39;&quot;&amp;" in shown
    assert not re.search("class=|href=|src=|<style", shown)
    assert folded("a < b", shown).startswith("<details><summary")
    assert "a &lt; b" in folded("a < b", shown)


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("role", COLOURS)
def test_colours_can_be_read_on_light_and_dark_pages(role: Role) -> None:
    own, dark = luminance(COLOURS[role]), luminance("#1e1e1e")
    assert 1.05 / (own + 0.05) > 3.3
    assert (own + 0.05) / (dark + 0.05) > 3.3


SOURCE = '@tl.kernel\ndef f(x: tl.f32[n]):  # why "not"\n    x[0] = tl.f32(1.5e-3) if s == "for" else 0x1F\n'


def test_python_is_told_apart_into_roles() -> None:
    pieces = python_text(SOURCE)
    assert plain(pieces) == SOURCE
    roles = {role: [piece.text for piece in pieces if piece.role is role] for role in Role}
    assert roles[Role.KEYWORD] == ["def", "if", "else"]
    assert roles[Role.WORD] == ["@tl.kernel", "tl.f32", "tl.f32"]
    assert roles[Role.NUMBER] == ["0", "1.5e-3", "0x1F"]
    assert roles[Role.TEXT] == ['"for"']
    assert roles[Role.FAINT] == ['# why "not"']


@pytest.mark.parametrize("text", ["", '"open', "12| for i in range(3):", "x = '''", "\\", "é1"])
def test_fragments_come_out_as_they_are(text: str) -> None:
    assert plain(python_text(text)) == text


def test_carets_stand_under_what_is_framed() -> None:
    line = "a + " + framed("b * " + framed("c")) + " + d"
    assert unframed(line) == "a + b * c + d"
    assert carets(line) == "    ^^^^^"


def test_marked_text_says_where_nothing_is_marked() -> None:
    assert plain(marked_text(f"a\n  {framed('b')} c\nd")) == "a\n  b c\n  ^\nd"
    assert plain(marked_text("a", missing="# none")) == "a\n# none"
    assert escaped("it's") == "it&#39;s"
