"""Writes any value as text for a message, also where Python refuses to write it, and how many things there are."""

from __future__ import annotations

from math import log10


def shown(value: object) -> str:
    """`repr(value)`; of an integer with more digits than Python writes, how many it has, as in `-1.0e+5000`."""
    try:
        return repr(value)
    except ValueError:
        return _rounded(value) if isinstance(value, int) else f"a value of type {type(value).__name__}"


# Pictures for ASCII's control characters; a sign for the others, and for those that change the direction of writing.
_SIGNS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {0x7F: 0x2421}
_SIGNS |= dict.fromkeys((*range(0x80, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD)


def visible(text: str) -> str:
    """`text` with signs of the same width for characters that a terminal would obey, but for tabs and ends of lines."""
    return text if text.isascii() and text.isprintable() else text.translate(_SIGNS)


def counted(count: int, noun: str) -> str:
    """A number of things, as in `1 file` and `2 files`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _rounded(value: int) -> str:
    """An integer beyond all floats by two digits: the bits behind the first 64 change neither."""
    rest = abs(value).bit_length() - 64
    exponent = log10(abs(value) >> rest) + rest * log10(2)
    digits, _, carried = f"{10 ** (exponent % 1):.1e}".partition("e")
    return f"{'-' if value < 0 else ''}{digits}e+{int(exponent) + int(carried)}"
