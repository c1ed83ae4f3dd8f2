"""Finds the line of the user's program that led to a call, from the call's frame."""

from __future__ import annotations

import linecache
import sys

from tirlite.diag import Source, Span

_OURS = "tirlite.graph"


def user_line() -> Span | None:
    """The line outside of this package that is being executed."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    file, number = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(file, number).rstrip("\n")
    column = len(text) - len(text.lstrip())
    return Span(Source(file, (text,) if text else (), number), number, column, number, max(len(text), column + 1))
