"""Tells the standard module `logging` what is compiled, under the name `tirlite`; quiet unless a program listens.

A program that listens has loaded `logging`: tirlite does not load it for those that do not.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def log_compiled(name: str, form: str, stages: Sequence[tuple[str, float]], note: str) -> None:
    """A line of level DEBUG for a function that is ready to run, with the milliseconds of each stage."""
    logging = sys.modules.get("logging")
    if logging is None:
        return
    logger = logging.getLogger("tirlite")
    if logger.isEnabledFor(logging.DEBUG):
        took = ", ".join(f"{stage} {1000 * seconds:.1f} ms" for stage, seconds in stages)
        logger.debug("compiled %s (%s): %s%s", name, form, took, f"; {note}" if note else "")
