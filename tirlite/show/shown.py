"""Writes any value as text for a message, also where Python refuses to write it, and how many things there are."""

from __future__ import annotations

from math import log10


def shown(value: object) -> str:
    """`repr(value)`; of an integer with more digits than Python writes, how many it has, as in `-1.0e+5000`."""
    try:
        return repr(value)
    except ValueError:
        return _rounded(value) if isinstance(value, int) else f"a value of type {type(value).__name__}"


def counted(count: int, noun: str) -> str:
    """A number of things, as in `1 file` and `2 files`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _rounded(value: int) -> str:
    """An integer beyond all floats by two digits: the bits behind the first 64 change neither."""
    rest = abs(value).bit_length() - 64
    exponent = log10(abs(value) >> rest) + rest * log10(2)
    digits, _, carried = f"{10 ** (exponent % 1):.1e}".partition("e")
    return f"{'-' if value < 0 else ''}{digits}e+{int(exponent) + int(carried)}"
