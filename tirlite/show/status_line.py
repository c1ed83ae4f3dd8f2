"""Writes one line over and over on a terminal, to tell how far something is."""

from __future__ import annotations

from shutil import get_terminal_size
from time import perf_counter
from typing import TextIO

# What is over sooner shows nothing, and seconds between two lines.
_QUIET, _EVERY = 0.5, 0.2
_CLEAR = "\r\x1b[K"


class StatusLine:
    """A line on a terminal; nothing where `stream` is None, or no terminal is open there."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream if stream is not None and stream.isatty() else None
        self._next = perf_counter() + _QUIET
        self._is_shown = False

    @property
    def is_open(self) -> bool:
        return self._stream is not None

    def show(self, text: str) -> None:
        """Writes as much of a text as has room, unless the last one is too new."""
        if self._stream is None or perf_counter() < self._next:
            return
        self._next = perf_counter() + _EVERY
        self._is_shown = True
        self._stream.write(_CLEAR + text[: get_terminal_size().columns - 1])
        self._stream.flush()

    def clear(self) -> None:
        """Leaves nothing of it."""
        if self._stream is not None and self._is_shown:
            self._stream.write(_CLEAR)
            self._stream.flush()
