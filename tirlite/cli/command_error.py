"""The error of a command line that is wrong."""

from __future__ import annotations

from tirlite.diag import TirliteError


class CommandError(TirliteError):
    """The command line is wrong: whoever typed it must change it."""
