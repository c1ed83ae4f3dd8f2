"""Messages: frozen records of values with words in their class."""

from __future__ import annotations

import pytest

from tirlite.diag import KernelError, Message, Source, Span


class Misspelt(Message):
    code = "misspelt"
    title = "`{name}` is not known"
    label = "here"
    help = "did you mean `{near}`?"

    name: str
    near: str = "color"


class Shouted(Misspelt):
    title = "`{name}` is not known{mark}"

    mark: str = "!"


SPAN = Span(Source.of("a.py", "x = colour"), 1, 4, 1, 10)


def test_fields_come_by_position_or_name_and_places_by_name() -> None:
    message = Misspelt("colour", span=SPAN)
    assert (message.name, message.near, message.span, message.related) == ("colour", "color", SPAN, None)
    assert Misspelt(near="a", name="b") == Misspelt("b", "a")
    assert Misspelt("b", "a") != Misspelt("b", "c")
    assert len({Misspelt("a"), Misspelt("a"), Shouted("a")}) == 2


def test_what_a_class_does_not_declare_its_templates_name_in_order() -> None:
    class Unwanted(Message):
        title = "`{name}` takes {wanted}, and {{no}} {given.kind}"
        help = "give `{name}` {other:>3}"

    assert repr(Unwanted("a", 1, "b", other=2)) == f"{Unwanted.__qualname__}(name='a', wanted=1, given='b', other=2)"
    assert Unwanted(1, 2, 3, 4).say("{other:>3}") == "  4"


def test_a_subclass_adds_its_fields_behind() -> None:
    assert Shouted("a", "b", "?").mark == "?"
    assert repr(Shouted("a")) == "Shouted(name='a', near='color', mark='!')"


@pytest.mark.parametrize("call", ["()", "('a', 'b', 'c')", "('a', name='b')", "('a', color=1)"])
def test_wrong_fields_are_a_type_error(call: str) -> None:
    with pytest.raises(TypeError, match=r"Misspelt\.__init__\(\)"):
        eval(f"Misspelt{call}")


def test_it_is_frozen() -> None:
    with pytest.raises(AttributeError, match="cannot assign to field 'name'"):
        Misspelt("a").name = "b"  # type: ignore[misc]


def test_its_text_is_heading_source_carets_and_help() -> None:
    error = Misspelt("colour", span=SPAN).error()
    assert isinstance(error, KernelError)
    assert str(error) == "\n".join(
        [
            "error[misspelt]: `colour` is not known",
            " --> a.py:1:5",
            "  |",
            "1 | x = colour",
            "  |     ^^^^^^ here",
            "  |",
            "  = help: did you mean `color`?",
        ]
    )


def test_of_a_very_long_line_the_part_around_the_place_is_shown() -> None:
    line = "x = " + "1 + " * 300 + "colour" + " + 1" * 300
    start = line.index("colour")
    shown = str(Misspelt("colour", span=Span(Source.of("a.py", line), 1, start, 1, start + 6)).error()).splitlines()
    assert shown[1] == f" --> a.py:1:{start + 1}"
    assert all(len(each) < 220 for each in shown)
    assert shown[3].startswith("1 | ...")
    assert shown[3].endswith("...")
    assert shown[3][shown[4].index("^") :].startswith("colour + 1")
    assert shown[4].endswith("^^^^^^ here")
