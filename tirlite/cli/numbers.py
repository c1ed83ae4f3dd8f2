"""Reads a number in its range from the text of an option: types for argparse, which tells what is wrong."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable
from math import inf


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """A type of whole numbers from `least` to `most`, both included."""
    wanted = f"a whole number from {least} on" if most is None else f"a whole number from {least} to {most}"

    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least or (most is not None and value > most):
            raise ArgumentTypeError(f"`{text}` is not {wanted}")
        return value

    return number


def seconds(text: str) -> float:
    """A type of times, zero or more."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < inf:
        raise ArgumentTypeError(f"`{text}` is not a number of seconds, zero or more")
    return value
