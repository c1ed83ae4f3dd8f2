"""Reads a number in its range from the text of an option: types for argparse, which tells what is wrong."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from math import inf

_WHOLE = re.compile(r"[+-]?\d{1,4000}", re.ASCII)
_BYTES = re.compile(r"(?P<number>-?\d{1,4000})\s*(?P<unit>[A-Za-z]*)", re.ASCII)
UNITS: Mapping[str, int] = {
    "": 1,
    "B": 1,
    "kB": 1000,
    **{f"{letter}B": 1000**power for power, letter in enumerate("KMGT", 1)},
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", 1)},
}


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """A type of whole numbers from `least` to `most`, both included."""
    wanted = f"a whole number from {least} on" if most is None else f"a whole number from {least} to {most}"

    def number(text: str) -> int:
        value = int(text) if _WHOLE.fullmatch(text) else least - 1
        if value < least or (most is not None and value > most):
            raise ArgumentTypeError(f"`{text}` is not {wanted}")
        return value

    return number


def is_integer(text: str) -> bool:
    """Whether `text` is an integer in the digits 0 to 9."""
    return _WHOLE.fullmatch(text) is not None


def integer(text: str) -> int:
    """An integer in the digits 0 to 9."""
    if not is_integer(text):
        raise ArgumentTypeError(f"`{text}` is not an integer")
    return int(text)


def byte_count(text: str) -> int:
    """A number of bytes: `65536`, `64KiB` of 1024 bytes each, `1MB` of a million."""
    match = _BYTES.fullmatch(text.strip())
    if match is None or match["unit"] not in UNITS:
        raise ArgumentTypeError(f"`{text}` is not a number of bytes, as in 65536, 64KiB or 1MB")
    return int(match["number"]) * UNITS[match["unit"]]


def decimal(text: str) -> float:
    """A number as Python writes it, in the digits 0 to 9, without `_` between them."""
    try:
        return float(text if text.isascii() and "_" not in text else "")
    except ValueError:
        raise ArgumentTypeError(f"`{text}` is not a number") from None


def seconds(text: str) -> float:
    """A type of times, zero or more."""
    try:
        value = decimal(text)
    except ArgumentTypeError:
        value = -1.0
    if not 0 <= value < inf:
        raise ArgumentTypeError(f"`{text}` is not a number of seconds, zero or more")
    return value
