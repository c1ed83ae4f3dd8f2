"""Tuning: varies tirlite's schedule, or an author's, times the candidates in turns, and returns the fastest."""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.tune.autotune import Tuned as Tuned, autotune as autotune
    from tirlite.tune.contest import Trial as Trial
else:
    __getattr__, __all__ = late_names(__name__)
