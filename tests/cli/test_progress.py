"""Progress of a search: shown on terminals alone, and cleared away."""

from __future__ import annotations

import io

import pytest

from tirlite.cli import progress
from tirlite.cli.progress import showing, told
from tirlite.plan.search.engine import Progress

STEP = Progress(nodes=34_000, seconds=1.25, total=1_100_000, bound=1_000_000)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_one_line() -> None:
    line = told(STEP)
    assert line == "1.2 s, 34,000 nodes: 1,100,000 bytes, 10.00% over the bound of 1,000,000 (Ctrl-C takes it)"


def test_nothing_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    with showing(stream) as listener:
        assert listener is None
    assert stream.getvalue() == ""


def test_nothing_of_a_search_that_is_soon_over() -> None:
    stream = Terminal()
    with showing(stream) as listener:
        assert listener is not None
        listener(STEP)
    assert stream.getvalue() == ""


def test_a_long_search_shows_a_line_and_clears_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_QUIET", 0.0)
    stream = Terminal()
    with showing(stream) as listener:
        assert listener is not None
        listener(STEP)
        listener(STEP)
    assert stream.getvalue() == f"\r\x1b[K{told(STEP)}\r\x1b[K"
