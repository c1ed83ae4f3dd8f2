"""Values in messages."""

from __future__ import annotations

import pytest

from tirlite.show import shown, visible


@pytest.mark.parametrize("value", [3, -2.5, "text", None, (1, 2), 10**1000], ids=lambda value: type(value).__name__)
def test_most_values_are_shown_as_python_writes_them(value: object) -> None:
    assert shown(value) == repr(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (10**5000, "1.0e+5000"),
        (-(10**5000), "-1.0e+5000"),
        (9996 * 10**6000, "1.0e+6004"),
        (314 * 10**5000, "3.1e+5002"),
        ((10**5000,), "a value of type tuple"),
    ],
    ids=["one", "negative", "carried", "digits", "inside"],
)
def test_integers_that_python_does_not_write_are_rounded(value: object, text: str) -> None:
    with pytest.raises(ValueError, match="4300"):
        repr(value)
    assert shown(value) == text


def test_what_a_terminal_would_obey_is_shown_by_a_sign() -> None:
    assert visible("a\x1b[31mb\x00\r\x7f\x9b\u202e") == "a␛[31mb␀␍␡\ufffd\ufffd"
    for text in ("plain", "größer\tα\nβ"):
        assert visible(text) == text
