"""Errors: one or several messages, as text, in one line, as HTML, copied, pickled, and as kinds of Python's own."""

from __future__ import annotations

import copy
import logging
import pickle

import numpy as np
import pytest

import tirlite as tl
from tirlite.diag import KernelError, Message, Source, Span
from tirlite.plan import Problem, Request, solve

SOURCE = Source.of("blur.py", "def blur(x):\n\ty[i] = colour < 1")


class Unknown(Message):
    code = "unknown-for-the-test"
    title = "`{name}` is not defined"
    label = "no such name here"
    related_label = "in this function"
    help = "did you mean `{nearest}`?"

    name: str
    nearest: str


PLACE, FUNCTION = Span(SOURCE, 2, 8, 2, 14), Span(SOURCE, 1, 4, 1, 8)


def test_a_message_shows_its_places_and_what_to_do() -> None:
    assert str(Unknown("colour", "color", span=PLACE, related=FUNCTION)) == (
        "error[unknown-for-the-test]: `colour` is not defined\n"
        " --> blur.py:2:9\n"
        "  |\n"
        "2 | \ty[i] = colour < 1\n"
        "  | \t       ^^^^^^ no such name here\n"
        " ::: blur.py:1:5\n"
        "  |\n"
        "1 | def blur(x):\n"
        "  |     ---- in this function\n"
        "  |\n"
        "  = help: did you mean `color`?"
    )


def test_a_place_beyond_the_known_text_keeps_its_label() -> None:
    place = Span(SOURCE, 40, 0, 40, 3)
    assert str(Unknown("a", "b", span=place)).splitlines()[1:3] == ["  --> blur.py:40:1", "   = no such name here"]


def test_no_name_makes_a_terminal_do_anything() -> None:
    source = Source.of("bl\x1bur.py", "\x1by = \x9bcolour")
    text = str(Unknown("\x1b[31mcolour", "\u202ecolor\x07", span=Span(source, 1, 6, 1, 12)))
    assert text.isascii() is False
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    marked, marks = text.splitlines()[3:5]
    assert marked[marks.index("^") : marks.index("^") + 6] == "colour"

    problem = Problem([Request("\x1b[2Ja\r", 4, (0, 2)), Request("b", 4, (1, 3))])
    plan = solve(problem, "share")
    for shown in (str(plan), plan.explain(), plan.explain("b"), plan.to_text()):
        assert all(letter.isprintable() or letter == "\n" for letter in shown)


def several() -> KernelError:
    return KernelError(*(Unknown(name, "color", span=PLACE) for name in ("colour", "kolor")))


def test_an_error_of_several_messages_shows_all() -> None:
    error = several()
    assert error.code == "unknown-for-the-test"
    assert str(error) == "\n\n".join(str(message) for message in error.messages)


def test_an_error_is_one_line_in_a_log() -> None:
    assert repr(several()) == "<KernelError error[unknown-for-the-test]: `colour` is not defined and 1 more>"


def test_a_log_holds_the_text(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise several()
    except KernelError:
        logging.getLogger("test").exception("failed")
    assert "did you mean `color`?" in caplog.text


def test_errors_can_be_copied_and_sent_to_other_processes() -> None:
    error = several()
    for twin in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert type(twin) is KernelError
        assert str(twin) == str(error)
        assert twin.code == error.code


def test_a_notebook_shows_the_text_escaped() -> None:
    shown = several()._repr_html_()
    assert "colour &lt; 1" in shown
    assert "colour < 1" not in shown


def test_errors_are_also_pythons_own_kinds() -> None:
    kernel = tl.parse("@tl.kernel\ndef f(x: tl.f32[4]):\n    x[0] = 1")
    with pytest.raises(TypeError):
        tl.compile(kernel)("text")
    with pytest.raises(ValueError, match="axis 0 of `x`"):
        tl.compile(kernel)(np.ones(3, np.float32))


def test_a_misspelt_strategy_is_answered_with_the_nearest() -> None:
    with pytest.raises(tl.PlanError, match=r"unknown-strategy(.|\n)*did you mean `share`\?"):
        solve(Problem((Request("a", 4, (0, 2)),)), strategy="shared")


def test_names_that_a_kernel_cannot_use_are_not_offered() -> None:
    scale, chr_table = 2.0, "abc"

    def wrong(x: tl.f32[4]):
        x[0] = scal + locls + opn

    with pytest.raises(tl.KernelError) as caught:
        tl.kernel(wrong)
    assert "did you mean `scale`?" in str(caught.value)
    assert "locals" not in str(caught.value)


def test_up_to_twenty_mistakes_are_told_in_the_order_of_the_source() -> None:
    lines = [f"    x[{number}] = wrong_{number}" for number in range(30)]
    with pytest.raises(tl.KernelError) as caught:
        tl.parse("\n".join(["@tl.kernel", "def f(x: tl.f32[30]):", *lines]))
    assert [message.span.line for message in caught.value.messages] == list(range(3, 23))
